"""`review`: what a reviewer decides, and `block`: what nobody may publish. Each goes through the store's one function
for it, with the reason in the history."""

import click

from vskill_platform.cli.errors import ActionGroup
from vskill_platform.cli.output import json_option, print_json, print_table, show_time
from vskill_platform.cli.process import OPERATOR, run_in_env

_reason = click.option("--reason", required=True, help="Why; shown in the history.")


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.review_commands")
def review() -> None:
    """Decide about submissions that wait for a person."""


@review.command("list")
@json_option
def waiting(*, as_json: bool) -> None:
    """List what waits for a person, latest first."""
    from vskill_platform.domain.states import State
    from vskill_platform.submission_store import list_submissions

    page = run_in_env(lambda: list_submissions([State.NEEDS_REVIEW], limit=100))
    if as_json:
        print_json(list(page.items))
        return
    rows = [(one.id, one.skill_name, show_time(one.updated_at), one.history[-1].reason) for one in page.items]
    print_table(f"{len(rows)} wait for a person", ("submission", "skill", "since (UTC)", "why"), rows)


@review.command("cancel")
@click.argument("submission_id")
@_reason
def cancel(*, submission_id: str, reason: str) -> None:
    """Take a submission off the queue."""
    from vskill_platform.store.actions import cancel as act

    record = run_in_env(lambda: act(submission_id, by=OPERATOR, reason=reason))
    click.echo(f"{record.id}: {record.state}")


@review.command("again")
@click.argument("submission_id")
@_reason
def again(*, submission_id: str, reason: str) -> None:
    """Start a new run, or make a waiting one due now."""
    from vskill_platform.store.actions import run_again

    record = run_in_env(lambda: run_again(submission_id, by=OPERATOR, reason=reason))
    click.echo(f"{record.id}: run {record.run}, {record.state}")


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.block_commands")
def block() -> None:
    """Keep skills from being published, and take down those that are."""
