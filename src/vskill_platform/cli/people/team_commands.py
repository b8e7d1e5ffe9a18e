"""The commands of `team`."""

import click

from vskill_client.output import print_table
from vskill_platform.actions.people.teams import (
    ADD_TO_TEAM,
    CREATE_TEAM,
    DELETE_TEAM,
    LIST_TEAMS,
    REMOVE_FROM_TEAM,
    SHOW_TEAM,
    TeamList,
    TeamView,
)
from vskill_platform.cli.action_commands import command_for


def show_teams(found: TeamList) -> None:
    rows = [(one.name, len(one.members), ", ".join(one.namespaces)) for one in found.teams]
    print_table(f"{len(rows)} teams", ("name", "members", "member of"), rows)


def show_team(team: TeamView) -> None:
    click.echo(f"{team.name}: {', '.join(team.members) or 'no members'}")
    if team.namespaces:
        click.echo(f"It is a member of {', '.join(team.namespaces)}.")


COMMANDS = (
    command_for(LIST_TEAMS, show_teams),
    command_for(SHOW_TEAM, show_team),
    command_for(CREATE_TEAM, show_team),
    command_for(ADD_TO_TEAM, show_team, arguments=("accounts",)),
    command_for(REMOVE_FROM_TEAM, show_team, arguments=("accounts",)),
    command_for(DELETE_TEAM, lambda _: click.echo("The team is deleted.")),
)
