"""The commands of a submitter: find one's submissions, end a run, start another one, appeal, answer a
reviewer, read what was found."""

from typing import Any

import click

from vskill_client.output import plain, print_json, print_table
from vskill_client.wire.findings import FindingsAnswer
from vskill_client.wire.submissions import RunsAnswer, SubmissionView
from vskill_core.plural import counted
from vskill_platform.actions.review.appeals import APPEAL
from vskill_platform.actions.review.change_requests import ANSWER
from vskill_platform.actions.submissions.findings import FINDINGS, SARIF
from vskill_platform.actions.submissions.hand_ins import SHOW_HAND_IN, HandInView
from vskill_platform.actions.submissions.submission_lists import LIST, SubmissionsAnswer
from vskill_platform.actions.submissions.submissions import CANCEL, RERUN, RUNS
from vskill_platform.cli.action_commands import command_for
from vskill_platform.cli.output import show_text_time


def show_submissions(found: SubmissionsAnswer) -> None:
    rows = [
        (one.id, one.state, one.skill_name, show_text_time(one.updated_at), one.reason)
        for one in found.submissions
    ]
    columns = ("submission", "state", "skill", "last change (UTC)", "why")
    print_table(
        f"{counted(len(rows), 'submission')}{'; there are more' if found.has_more else ''}", columns, rows
    )
    if found.after is not None:
        click.echo(f"More: --after {found.after}")
    if found.unreadable:
        click.echo(f"{counted(found.unreadable, 'record')} could not be read; the log names them.", err=True)


def show_hand_in(found: HandInView) -> None:
    rows = [
        (
            one.submission.skill_name if one.submission else one.skill_path or one.repo_url,
            one.submission.state if one.submission else "refused",
            one.submission.id if one.submission else "",
            one.submission.reason if one.submission else one.reason,
        )
        for one in found.skills
    ]
    title = f"{found.id}: {'ended' if found.ended else 'still being checked'}"
    print_table(title, ("skill", "state", "submission", "why"), rows)


def show_state(shown: SubmissionView) -> None:
    click.echo(f"{shown.id}: {shown.state} ({shown.meaning})")


def show_runs(found: RunsAnswer) -> None:
    rows = [(run.run, run.state, run.updated_at, run.reason) for run in found.runs]
    print_table(found.id, ("run", "state", "last change", "why"), rows)


def show_rerun(shown: SubmissionView) -> None:
    if shown.rerun_requested:
        click.echo(f"{shown.id}: the next run begins when run {shown.run} is over ({shown.state})")
    else:
        click.echo(f"{shown.id}: run {shown.run}, {shown.state}")


def show_findings(found: FindingsAnswer) -> None:
    click.echo(plain(f"{found.id}, run {found.run}: {found.state}, {found.reason}"))
    for finding in found.findings:
        where = f"{finding.file}:{finding.line}" if finding.line else finding.file or "the whole skill"
        click.echo(plain(f"{where}: {finding.severity} {finding.kind} {finding.rule_id}"))
        if finding.excerpt:
            click.echo(plain(f"    {finding.excerpt}"))
        click.echo(plain(f"    {finding.why} {finding.remedy}".rstrip()))
    for note in found.notes:
        click.echo(plain(f"SKILL.md:{note.line}: note {note.code}"))
        click.echo(plain(f"    {note.sentence} {note.fix}"))
    for remedy in found.remedies:
        click.echo(f"What to do: {remedy}")
    if found.ruleset is None:
        click.echo("Its content was not scanned in this run.")
    elif not found.findings:
        click.echo("Nothing was found.")


def show_sarif(document: dict[str, Any]) -> None:
    print_json(document)


COMMANDS = (
    command_for(LIST, show_submissions),
    command_for(CANCEL, show_state),
    command_for(RERUN, show_rerun),
    command_for(APPEAL, show_state),
    command_for(ANSWER, show_state),
    command_for(RUNS, show_runs),
    command_for(FINDINGS, show_findings),
    command_for(SARIF, show_sarif),
    command_for(SHOW_HAND_IN, show_hand_in),
)
