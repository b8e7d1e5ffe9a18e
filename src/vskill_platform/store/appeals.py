"""Asking a person to look at what the machine refused. It is a run of its own that begins where the last one ended:
the same bytes, with what was found in them, waiting for a reviewer. So it stands in the review queue like everything
else that waits there, and its history says who asked and why."""

import msgspec

from vskill_platform.domain import submission
from vskill_platform.domain.errors import TransitionError
from vskill_platform.domain.messages import Send
from vskill_platform.domain.states import State
from vskill_platform.domain.submission import Step, Submission
from vskill_platform.store.audit import record_audit
from vskill_platform.submission_store import (
    Change,
    get_submission,
    next_run,
    require_reason,
    update_submission,
)
from vskill_platform.worker_context import require_env

#: What a machine decided, and a person may see otherwise. What is blocked is unblocked, not appealed.
APPEALABLE = frozenset({State.TIER1_FAILED, State.REJECTED})


def why_not(record: Submission) -> str | None:
    """Why a review cannot be asked for, in words; None where it can."""
    if record.state not in APPEALABLE:
        return f"it is {record.state}; a review is for what the scan or the judge refused"
    if record.digest is None:
        return "nothing was fetched in that run, so there is nothing to review; submit it again"
    if record.history[-1].actor.startswith("admin:"):
        return "a person has decided about these very bytes; change the skill and submit it again"
    return None


async def ask_for_review(submission_id: str, *, by: str, reason: str) -> Submission:
    """Put the refused bytes in front of a reviewer. TransitionError says why that cannot be."""
    env = require_env("kv")
    require_reason(reason)
    event_id = env.clock.new_id()

    async def decide(record: Submission) -> Change:
        refusal = why_not(record)
        if refusal is not None:
            raise TransitionError(refusal[0].upper() + refusal[1:] + ".", submission=record.id)
        now = env.kv.now()
        begun = next_run(
            record,
            Step(f"{event_id}-run", now, by, "a review was asked for"),
            submitter=record.submitter,
            upload=record.upload,
        )
        # The bytes are the same, so what is known about them still holds.
        same = msgspec.structs.replace(
            begun.record,
            digest=record.digest,
            commit=record.commit,
            declared_name=record.declared_name,
            evidence=record.evidence,
            decision=record.decision,
        )
        waiting = submission.move(
            same, State.NEEDS_REVIEW, Step(event_id, now, by, f"review asked for: {reason}")
        )
        # Nobody is to work on it, so nothing is sent.
        kept = tuple(one for one in begun.operations if not isinstance(one, Send))
        audit = record_audit(
            "ask for review",
            record.id,
            by=by,
            reason=reason,
            details={"run": str(record.run), "state": record.state.value, "digest": record.digest or ""},
            entry_id=event_id,
        )
        return Change(waiting, (*kept, audit))

    written = await update_submission(submission_id, decide, event_id=event_id)
    return written if written is not None else await get_submission(submission_id)
