"""`token`: the API tokens of every account; `account` has one's own."""

import click

from vskill_platform.cli.errors import ActionGroup


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.people.token_commands")
def token() -> None:
    """Manage the API tokens of accounts; `account` has your own."""
