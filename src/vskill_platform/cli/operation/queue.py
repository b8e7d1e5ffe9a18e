"""`queue`: what an operator asks of the queue and does to it."""

import click

from vskill_platform.cli.errors import ActionGroup


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.operation.queue_commands")
def queue() -> None:
    """Look at the queue, recover, pause and resume it."""
