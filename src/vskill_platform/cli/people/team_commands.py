"""The commands of `team`."""

from vskill_platform.actions.people import teams
from vskill_platform.cli.action_commands import Part, command_for, table, when

_TEAM: Part = (
    when("members", "{name}: {members}", "{name}: no members"),
    when("namespaces", "It is a member of {namespaces}."),
)

COMMANDS = (
    command_for(
        teams.LIST_TEAMS,
        table("{#teams} teams", "teams", "name", ("members", "{#members}"), ("member of", "namespaces")),
    ),
    command_for(teams.SHOW_TEAM, _TEAM),
    command_for(teams.CREATE_TEAM, _TEAM),
    command_for(teams.ADD_TO_TEAM, _TEAM, arguments=("accounts",)),
    command_for(teams.REMOVE_FROM_TEAM, _TEAM, arguments=("accounts",)),
    command_for(teams.DELETE_TEAM, "The team is deleted."),
)
