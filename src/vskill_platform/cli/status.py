"""`status`: how many submissions there are, or how one of them came to be where it is."""

from typing import TYPE_CHECKING

import click

from vskill_platform.cli.output import console, json_option, print_json, print_table, show_time
from vskill_platform.cli.process import run_in_env

if TYPE_CHECKING:
    from vskill_platform.cli.submit_outcomes import Explanation
    from vskill_platform.domain.submission import Submission


@click.command()
@click.argument("submission_id", required=False)
@json_option
def status(*, submission_id: str | None, as_json: bool) -> None:
    """Show the counts by state, or one submission with its history."""
    if submission_id is None:
        _show_counts(as_json=as_json)
    else:
        _show_submission(submission_id, as_json=as_json)


def _show_counts(*, as_json: bool) -> None:
    from vskill_platform.actions.submission_views import stats_view
    from vskill_platform.submission_store import count_submissions

    counts = run_in_env(count_submissions)
    if as_json:
        print_json(stats_view(counts))
        return
    rows = [(state.value, count, state.meaning) for state, count in counts.by_state.items()]
    if counts.unreadable:
        rows.append(("unreadable", counts.unreadable, "records that this version cannot read"))
    print_table(f"{counts.total} submissions", ("state", "count", "meaning"), rows)


def _show_submission(submission_id: str, *, as_json: bool) -> None:
    from vskill_platform.actions.submission_views import submission_view
    from vskill_platform.actions.visibility import OPERATOR
    from vskill_platform.cli.submit_outcomes import explain, print_explanation
    from vskill_platform.submission_store import get_submission

    async def look() -> "tuple[Submission, Explanation]":
        record = await get_submission(submission_id)
        return record, await explain(record)

    record, explanation = run_in_env(look)
    if as_json:
        print_json(submission_view(record, OPERATOR))
        return
    print_explanation(console(), explanation)
    print_table(f"\n{record.id}", ("field", "value"), _facts(record))
    rows = [(event.seq, show_time(event.at), event.to, event.actor, event.reason) for event in record.history]
    print_table(f"\nHistory of run {record.run}", ("seq", "at (UTC)", "state", "who", "why"), rows)


def _facts(record: "Submission") -> list[tuple[str, object]]:
    facts: list[tuple[str, object]] = [
        ("state", f"{record.state}: {record.state.meaning}"),
        ("place", record.repo_url),
        ("skill", record.skill_name),
        ("run", record.run),
        ("submitted", show_time(record.created_at)),
        ("attempts", f"{record.attempts.started} started, {record.attempts.failed} failed"),
        ("waiting for", record.attempts.waiting_for),
        ("claimed by", record.claim.worker if record.claim else None),
        ("next attempt", show_time(record.next_attempt_at) if record.next_attempt_at else None),
        ("published as", record.published),
        ("digest", record.digest),
        ("decision", record.decision.reason if record.decision else None),
    ]
    return [(name, value) for name, value in facts if value is not None]
