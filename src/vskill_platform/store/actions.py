"""What people do to a submission: cancel, approve, reject, run again. Each is one compare-and-swap with a reason in
the history; a worker that holds the submission meanwhile loses its claim and stops."""

from collections.abc import Callable

import msgspec

from vskill_platform.domain import submission
from vskill_platform.domain.errors import Blocked, TransitionError
from vskill_platform.domain.messages import submission_send
from vskill_platform.domain.states import State
from vskill_platform.domain.submission import Step, Submission
from vskill_platform.kv.entries import Put
from vskill_platform.store.audit import record_audit, was_audited
from vskill_platform.store.blocklist import assert_blocklist, why_blocked
from vskill_platform.submission_store import (
    Change,
    Decide,
    get_submission,
    next_run,
    require_reason,
    update_submission,
)
from vskill_platform.worker_context import require_env


async def cancel(submission_id: str, *, by: str, reason: str) -> Submission:
    """End a run that is not over. That it was to run again is forgotten too."""

    async def decide(record: Submission) -> Change:
        if record.state.terminal:
            raise TransitionError(
                f"it is {record.state} already; there is nothing to cancel", submission=record.id
            )
        ended = submission.move(submission.cancel_rerun(record), State.DEQUEUED, step())
        return Change(ended, (_audit("cancel", record, step()),))

    step = _stepper(by, reason)
    return await _update(submission_id, decide, step().event_id)


async def run_again(submission_id: str, *, by: str, reason: str) -> Submission:
    """A new run of the same place, once the last one is over; one that waits is due now, one that a worker holds is
    left to it. Raises Blocked where submitting the place would be refused."""

    async def decide(record: Submission) -> Change | None:
        asserted = await assert_blocklist()
        await _refuse_blocked(record)
        if record.claim is not None or await was_audited(step().event_id):
            return None
        if record.state.ends_run:
            change = next_run(record, step(), submitter=record.submitter, upload=record.upload)
        else:
            due_now = msgspec.structs.replace(record, next_attempt_at=require_env("kv").kv.now())
            change = Change(due_now, (submission_send(record.id, record.run),))
        audit = _audit("run again", record, step())
        return Change(change.record, (*change.operations, asserted, audit))

    step = _stepper(by, reason)
    return await _update(submission_id, decide, step().event_id)


async def _refuse_blocked(record: Submission) -> None:
    """As at the door: by the place, its names, and uploaded bytes. What a repository holds now the run will see."""
    names = (record.skill_name, record.declared_name)
    reason = await why_blocked(record.identity, names, record.upload)
    if reason is not None:
        message = f"{record.identity.key} is blocked, so it cannot run again: {reason}. Lift the block first."
        raise Blocked(message, submission=record.id)


def _audit(action: str, record: Submission, step: Step) -> Put:
    """Under the id of the history's event, so that the one leads to the other."""
    details = {"run": str(record.run), "state": record.state.value, "place": record.identity.key}
    if record.digest is not None:
        details["digest"] = record.digest
    return record_audit(
        action, record.id, by=step.actor, reason=step.reason, details=details, entry_id=step.event_id
    )


def _stepper(by: str, reason: str) -> Callable[[], Step]:
    """The same event id at every try, so that an unknown outcome is recognised; the time of each."""
    env = require_env("kv")
    event_id = env.clock.new_id()
    require_reason(reason)
    return lambda: Step(event_id, env.kv.now(), by, reason)


async def _update(submission_id: str, decide: Decide, event_id: str) -> Submission:
    written = await update_submission(submission_id, decide, event_id=event_id)
    return written if written is not None else await get_submission(submission_id)
