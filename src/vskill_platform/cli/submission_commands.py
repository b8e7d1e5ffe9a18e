"""The commands of a submitter: end a run, start another one, appeal."""

import click

from vskill_platform.actions.appeals import APPEAL
from vskill_platform.actions.submission_views import SubmissionView
from vskill_platform.actions.submissions import CANCEL, RERUN
from vskill_platform.cli.action_commands import command_for


def show_state(shown: SubmissionView) -> None:
    click.echo(f"{shown.id}: {shown.state} ({shown.meaning})")


def show_rerun(shown: SubmissionView) -> None:
    if shown.rerun_requested:
        click.echo(f"{shown.id}: the next run begins when run {shown.run} is over ({shown.state})")
    else:
        click.echo(f"{shown.id}: run {shown.run}, {shown.state}")


COMMANDS = (
    command_for(CANCEL, show_state),
    command_for(RERUN, show_rerun),
    command_for(APPEAL, show_state),
)
