"""`content`: what is damaged, its repair, and what no record names."""

import click

from vskill_platform.cli.errors import ActionGroup


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.operation.content_commands")
def content() -> None:
    """See which stored content is damaged, repair it, and collect what is not needed."""
