"""`repo`: how the repositories of published skills are doing, and a check on demand."""

import click

from vskill_platform.cli.errors import ActionGroup


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.skills.repo_commands")
def repo() -> None:
    """See whether the repositories of published skills are still there."""
