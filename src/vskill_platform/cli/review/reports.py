"""`report`: what users say about published skills, and what a reviewer makes of it. `audit`: who did what."""

import click

from vskill_platform.cli.errors import ActionGroup


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.review.report_commands")
def report() -> None:
    """Report a skill; decide about the reports of users."""


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.operation.audit_commands")
def audit() -> None:
    """See who did what, when and why."""
