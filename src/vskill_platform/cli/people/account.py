"""`account`: one's own account."""

import click

from vskill_platform.cli.errors import ActionGroup


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.people.account_commands")
def account() -> None:
    """Manage your own account: its password, tokens and sessions."""
