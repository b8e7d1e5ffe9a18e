"""`access`: whom the registry lets in, and who may submit."""

import click

from vskill_platform.cli.errors import ActionGroup


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.people.access_commands")
def access() -> None:
    """Say whom the registry lets in, and who may submit."""
