"""The end of requests for a change that nobody answered."""

from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions import submission
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import ANSWER_MS, RecordedDecision, Step, Submission
from vskill_platform.ledger.kv.collections import SUBMISSIONS
from vskill_platform.ledger.kv.query import Between, Is
from vskill_platform.records import Skips
from vskill_platform.store.recall.blocklist import find_hits, targets_for
from vskill_platform.submission_store import RecordChange, update_submission
from vskill_platform.worker_context import require_env


async def end_unanswered() -> int:
    """End every run whose author did not answer a reviewer in time; how many ended."""
    env = require_env("kv")
    skips = Skips("end_unanswered")
    ended, after = 0, None
    while True:
        page = await env.kv.select(
            SUBMISSIONS.prefix,
            audiences=EVERYTHING,
            where={
                "state": Is(State.NEEDS_REVIEW.value),
                "updated_at": Between(most=env.kv.now() - ANSWER_MS),
            },
            order_by="updated_at",
            after=after,
        )
        skips.failed(page.failed)
        for record in skips.decode_all(page.items, Submission):
            if record.change_request is not None:
                ended += await _end(record)
        after = page.after
        if after is None:
            skips.report(env)
            return ended


async def _end(record: Submission) -> bool:
    env = require_env("kv")
    event_id = env.clock.new_id()

    async def decide(current: Submission) -> RecordChange | None:
        asked, now = current.change_request, env.kv.now()
        if asked is None or asked.until > now:
            return None
        days = ANSWER_MS // (24 * 3_600_000)
        reason = f"its author did not answer a reviewer within {days} days: {asked.text}"
        is_blocked = current.appeals_block and await find_hits(targets_for(current))
        to = State.BLOCKED if is_blocked else State.REJECTED
        step = Step(event_id, now, "system", reason)
        return RecordChange(submission.move(current, to, step, decision=RecordedDecision(reason)))

    return await update_submission(record.id, decide, event_id=event_id) is not None
