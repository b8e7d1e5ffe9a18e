"""`collection`: named lists of skills that an organisation is offered as a marketplace of its own."""

import click

from vskill_platform.cli.errors import ActionGroup


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.skills.collection_commands")
def collection() -> None:
    """Curate collections of verified skills; each has an address for Claude Code."""
