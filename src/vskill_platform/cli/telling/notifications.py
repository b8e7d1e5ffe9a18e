"""`notification` and `watch`: what one's account is told."""

import click

from vskill_platform.cli.errors import ActionGroup


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.telling.notification_commands")
def notification() -> None:
    """Read what you were told, and have it mailed to you once a day."""


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.telling.watch_commands")
def watch() -> None:
    """Choose the skills and namespaces that you are told of."""
