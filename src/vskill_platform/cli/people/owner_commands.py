"""The commands of owners of repositories."""

import click

from vskill_client.destination import current_destination
from vskill_client.output import show_text_time
from vskill_platform.actions.people import owners
from vskill_platform.cli.action_commands import command_for, each, table, when


def show_next_step(claim: owners.ClaimStarted) -> None:
    check = current_destination().command_line("owner", "check", claim.url)
    click.echo(f"2. Before {show_text_time(claim.expires_at)} UTC, run: {check}")


def show_owners(repository: owners.OwnedRepository) -> None:
    accounts = ", ".join(owner.account for owner in repository.owners)
    click.echo(f"{repository.url} is controlled by {accounts}.")


COMMANDS = (
    command_for(
        owners.CLAIM,
        "1. Commit a file {path} to the default branch of {url} with this line:\n   {token}",
        show_next_step,
        "The token is shown only once. Nobody else can use it, so it may be public.",
        arguments=("repo_url",),
    ),
    command_for(owners.CHECK, show_owners, arguments=("repo_url",)),
    command_for(
        owners.LIST,
        table(
            "{#repositories} repositories with owners",
            lambda owned: [(one.url, owner) for one in owned.repositories for owner in one.owners],
            ("repository", lambda row: row[0]),
            ("account", lambda row: row[1].account),
            ("how", lambda row: row[1].how),
            ("since (UTC)", lambda row: show_text_time(row[1].since)),
        ),
        when(
            "github_login",
            "Every repository of {github_login} on GitHub, by signing in with GitHub; until {github_until} UTC.",
        ),
        each("claims", "Claimed, not proved yet: {url}; until {expires_at} UTC."),
    ),
    command_for(owners.TRANSFER, show_owners, arguments=("repo_url", "to")),
)
