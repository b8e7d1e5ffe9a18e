"""The commands of reports: file one, list them, uphold one, dismiss one."""

import click

from vskill_client.output import print_table
from vskill_core.plural import counted
from vskill_platform.actions.review.reports import (
    DISMISS,
    FILE,
    FILED,
    UPHOLD,
    FiledReport,
    ReportList,
    ReportView,
)
from vskill_platform.cli.action_commands import command_for


def show_reports(found: ReportList) -> None:
    rows = [
        (one.id, one.skill, one.version or "", one.category, one.status, one.reporter, one.reason)
        for one in found.reports
    ]
    columns = ("report", "skill", "version", "category", "status", "reporter", "reason")
    print_table(
        f"{counted(len(rows), 'report')}{'' if found.after is None else '; there are more'}", columns, rows
    )
    if found.skipped:
        click.echo(f"{counted(found.skipped, 'record')} could not be read; the log names them.", err=True)


def show_filed(filed: FiledReport) -> None:
    if filed.new:
        click.echo(f"Report {filed.id} about {filed.skill} was filed.")
    else:
        click.echo(f"Your report {filed.id} about {filed.skill} is still open.")


def show_decision(decided: ReportView) -> None:
    blocked = decided.decision.blocked if decided.decision else ""
    click.echo(f"Report {decided.id} was {decided.status}{f'; blocked: {blocked}' if blocked else ''}.")


COMMANDS = (
    command_for(FILE, show_filed, arguments=("version",)),
    command_for(FILED, show_reports),
    command_for(UPHOLD, show_decision),
    command_for(DISMISS, show_decision),
)
