"""What waits by a rule of a policy that is not in force any more is decided again, so that a new policy counts for it
too: it goes to a reviewer, waits on, or is published, as that policy says."""

from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions import submission
from vskill_platform.domain.submissions.attempts import claimable
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Step, Submission
from vskill_platform.ledger.kv.collections import SUBMISSIONS
from vskill_platform.ledger.kv.query import Is
from vskill_platform.records import decode_readable, entries_of
from vskill_platform.store.verdicts.policy import read_policy
from vskill_platform.submission_store import RecordChange, update_submission
from vskill_platform.worker_context import require_env


async def reapply_policy(applied: str | None = None) -> str:
    """Make due what another policy lets wait; returns the digest of the policy that is in force. `applied` is the
    result of the last pass: where it is in force still, there is nothing to do."""
    kv, digest = require_env("kv").kv, (await read_policy()).policy.digest
    after: str | None = None
    while digest != applied:
        page = await kv.select(
            SUBMISSIONS.prefix,
            audiences=EVERYTHING,
            where={"state": Is(State.COOLDOWN.value)},
            order_by="due_at",
            after=after,
        )
        for record in decode_readable(entries_of(page), Submission, "reapply_policy"):
            await _decide_again(record, digest)
        after = page.after
        if after is None:
            break
    return digest


async def _decide_again(record: Submission, policy: str) -> None:
    env = require_env("kv")
    event_id = env.clock.new_id()

    async def decide(current: Submission) -> RecordChange | None:
        waits = current.state is State.COOLDOWN and not claimable(current, env.kv.now())
        if not waits or current.cooled_by == policy:
            return None
        step = Step(event_id, env.kv.now(), "system", "the policy has changed; it is decided again")
        return RecordChange(submission.make_due(current, step), (current.message,))

    await update_submission(record.id, decide, event_id=event_id)
