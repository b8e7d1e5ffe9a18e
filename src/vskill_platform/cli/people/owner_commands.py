"""The commands of owners of repositories."""

import shlex

import click

from vskill_client.destination import current_destination
from vskill_client.output import print_table
from vskill_platform.actions.people.owners import (
    CHECK,
    CLAIM,
    LIST,
    TRANSFER,
    ClaimStarted,
    OwnedAnswer,
    OwnedRepository,
)
from vskill_platform.cli.action_commands import command_for
from vskill_platform.cli.destination import OnThisMachine


def show_claim(started: ClaimStarted) -> None:
    click.echo(f"1. Commit a file {started.path} to the default branch of {started.url} with this line:")
    click.echo(f"   {started.token}")
    click.echo(f"2. Before {_time(started.expires_at)} UTC, run: {_check_command(started.url)}")
    click.echo("The token is shown only once. Nobody else can use it, so it may be public.")


def _check_command(url: str) -> str:
    """The command that checks the claim, on the same registry and as the same account."""
    destination = current_destination()
    words = [destination.program]
    if destination.registry:
        words += ["--registry", destination.registry]
    if isinstance(destination, OnThisMachine) and destination.account:
        words += ["--as", destination.account]
    return shlex.join([*words, "owner", "check", url])


def show_owners(repository: OwnedRepository) -> None:
    owners = ", ".join(one.account for one in repository.owners)
    click.echo(f"{repository.url} is controlled by {owners}.")


def show_owned(owned: OwnedAnswer) -> None:
    rows = [
        (one.url, owner.account, owner.how, _time(owner.since))
        for one in owned.repositories
        for owner in one.owners
    ]
    title = f"{len(owned.repositories)} repositories with owners"
    print_table(title, ("repository", "account", "how", "since (UTC)"), rows)
    if owned.github_login is not None:
        until = _time(owned.github_until or "")
        click.echo(
            f"Every repository of {owned.github_login} on GitHub, by signing in with GitHub; until {until} UTC."
        )
    for claim in owned.claims:
        click.echo(f"Claimed, not proved yet: {claim.url}; until {_time(claim.expires_at)} UTC.")


def _time(text: str) -> str:
    return text.replace("T", " ").partition(".")[0]


COMMANDS = (
    command_for(CLAIM, show_claim, arguments=("repo_url",)),
    command_for(CHECK, show_owners, arguments=("repo_url",)),
    command_for(LIST, show_owned),
    command_for(TRANSFER, show_owners, arguments=("repo_url", "to")),
)
