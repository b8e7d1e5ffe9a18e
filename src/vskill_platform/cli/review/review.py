"""`review`: what a reviewer decides, and `block`: what nobody may publish. Their commands are made from actions."""

import click

from vskill_platform.cli.errors import ActionGroup


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.review.review_commands")
def review() -> None:
    """Decide about submissions that wait for a reviewer."""


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.recall.block_commands")
def block() -> None:
    """Keep skills from being published, and take down those that are."""
