"""`webhook`: who is told of decisions, by signed requests."""

import click

from vskill_platform.cli.errors import ActionGroup


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.telling.webhook_commands")
def webhook() -> None:
    """Tell other systems what is decided, by signed requests."""
