"""`team`: accounts that a namespace names as one member."""

import click

from vskill_platform.cli.errors import ActionGroup


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.people.team_commands")
def team() -> None:
    """Manage teams; a namespace names one as `team:NAME`."""
