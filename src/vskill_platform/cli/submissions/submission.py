"""`submission`: what submitters do with their submissions."""

import click

from vskill_platform.cli.errors import ActionGroup


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.submissions.submission_commands")
def submission() -> None:
    """List submissions; cancel, rerun or appeal one, read what was found in it, and what was submitted together."""
