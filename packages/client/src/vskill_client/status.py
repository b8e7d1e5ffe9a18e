"""`status`: how many submissions there are, or how one of them came to be where it is."""

import click

from vskill_client.destination import Caller, run_with_caller
from vskill_client.group import complete
from vskill_client.output import json_option, print_json, print_table, show_text_time
from vskill_client.submit_outcomes import Explanation, explain, print_explanation
from vskill_client.wire.base import NoParameters
from vskill_client.wire.submissions import SHOW, STATS, SubmissionRequest, SubmissionView
from vskill_core.plural import counted
from vskill_core.state_words import MEANING


@click.command()
@click.argument("submission_id", required=False, shell_complete=complete)
@json_option
def status(*, submission_id: str | None, as_json: bool) -> None:
    """Show the counts by state, or one submission with its history."""
    if submission_id is None:
        _show_counts(as_json=as_json)
    else:
        _show_submission(submission_id, as_json=as_json)


def _show_counts(*, as_json: bool) -> None:
    counts = run_with_caller(lambda caller: caller.call(STATS, NoParameters()))
    if as_json:
        print_json(counts)
        return
    rows = [(state, number, MEANING.get(state, "")) for state, number in counts.by_state.items()]
    if counts.unreadable:
        rows.append(("unreadable", counts.unreadable, "records that this version cannot read"))
    print_table(counted(counts.total, "submission"), ("state", "count", "meaning"), rows)


def _show_submission(submission_id: str, *, as_json: bool) -> None:
    async def look(caller: Caller) -> tuple[SubmissionView, Explanation]:
        view = await caller.call(SHOW, SubmissionRequest(submission_id=submission_id))
        return view, await explain(caller, view)

    view, explanation = run_with_caller(look)
    if as_json:
        print_json(view)
        return
    print_explanation(explanation)
    print_table(f"\n{view.id}", ("field", "value"), _facts(view))
    rows = [
        (event.seq, show_text_time(event.at), event.to, event.actor, event.reason) for event in view.history
    ]
    print_table(f"\nHistory of run {view.run}", ("seq", "at (UTC)", "state", "who", "why"), rows)


def _facts(view: SubmissionView) -> list[tuple[str, object]]:
    facts: list[tuple[str, object]] = [
        ("state", f"{view.state}: {view.meaning}"),
        ("place", view.repo_url),
        ("skill", view.skill_name),
        ("run", view.run),
        ("submitted", show_text_time(view.created_at)),
        ("attempts", f"{view.attempts.started} started, {view.attempts.failed} failed"),
        ("waiting for", view.attempts.waiting_for),
        ("claimed by", view.worker),
        ("next attempt", show_text_time(view.next_attempt_at) if view.next_attempt_at else None),
        ("published as", view.published_skill),
        ("digest", view.digest),
        ("decision", view.decision.reason if view.decision else None),
    ]
    if view.decision is not None and view.decision.policy:
        facts.append(("policy", view.decision.policy))
        facts += [(f"rule {one.name}", f"{one.then}: {one.reason}") for one in view.decision.matched]
    return [(name, value) for name, value in facts if value is not None]
