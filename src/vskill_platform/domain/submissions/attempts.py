"""Attempts at a submission: how a worker claims it and keeps the claim, what becomes of it when an attempt fails, is
interrupted or must wait, and when it is due. Pure, like `submission`, whose records these functions take and return;
tasks follow the same rules.

The invariant that they keep: a record is at rest (terminal, or waiting for a person), or is claimed until a
deadline, or has a next attempt time. `violation` says which record breaks it.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from vskill_core.errors import TransitionError
from vskill_platform.domain.submissions.states import LINE_STATES, State
from vskill_platform.domain.submissions.submission import (
    Attempts,
    Claim,
    RecordedDecision,
    Step,
    Submission,
    add_step,
    move,
)

CLAIM_MS = 15_000
RENEW_EVERY_MS = 5_000
#: After the first, second and third failed attempt; the fourth is the last.
FAILED_DELAYS_MS = (10_000, 60_000, 300_000)
#: In a decision's rules: no rule, but the number of attempts, ended the run.
EXHAUSTED = "attempts-exhausted"
#: After this many dead workers, a reviewer looks at it.
MAX_INTERRUPTED = 10
#: After this many dead workers, it runs alone in a worker process, and after the others that wait.
SUSPECT_INTERRUPTED = 3
UNAVAILABLE_FIRST_MS = 10_000
UNAVAILABLE_MOST_MS = 900_000
UNAVAILABLE_END_MS = 24 * 3_600_000
#: How far two estimates of the store's clock may lie apart.
CLOCK_SLACK_MS = 5_000


class Owed(Protocol):
    """What a submission and a task have in common: a claim and a next attempt."""

    @property
    def claim(self) -> Claim | None: ...
    @property
    def next_attempt_at(self) -> int | None: ...


class Interruptible(Protocol):
    """What a submission and a task have in common: a claim, and how earlier ones ended."""

    @property
    def claim(self) -> Claim | None: ...
    @property
    def attempts(self) -> Attempts: ...


def is_suspect(record: Interruptible) -> bool:
    """Whether workers have died over it: it then runs alone, and behind others.

    The last death is counted by the claim that follows it, so a claim that is still there is one more.
    """
    return record.attempts.interrupted + (record.claim is not None) >= SUSPECT_INTERRUPTED


def claimable(record: Submission, now: int) -> bool:
    """Whether a worker may claim it: active, due, and no live worker holds it.

    A wait by a rule of the policy may end days ahead, so its end is never taken for a clock that went back.
    """
    if record.state is State.COOLDOWN:
        return record.next_attempt_at is not None and record.next_attempt_at <= now
    return record.state.active and is_due(record, now)


def is_due(record: Owed, now: int, longest_delay_ms: int = UNAVAILABLE_MOST_MS) -> bool:
    """Its claim has ended, or its next attempt has come.

    A deadline further ahead than any that could have been set means that the store's clock went back; waiting
    for it would be a way to get stuck, so it counts as due.
    """
    due = due_at(record)
    if due is None:
        return False
    horizon = CLAIM_MS if record.claim else longest_delay_ms
    return due <= now or due > now + horizon + CLOCK_SLACK_MS


def due_at(record: Owed) -> int | None:
    """When it is due: the end of its claim, or its next attempt. None at rest."""
    return record.claim.until if record.claim else record.next_attempt_at


def claim(
    record: Submission, *, token: str, worker: str, now: int, event_ids: Sequence[str], died: bool = True
) -> Submission:
    """Claim it. Taking over from a dead worker is recorded and counted first; too many end the run.

    The caller checks `claimable`, and knows whether the last worker `died`: where the store failed until the claim
    expired, nothing is counted. The answer is claimed by `token`, or NEEDS_REVIEW where it was interrupted too often.
    """
    ids = iter(event_ids)
    if record.claim is not None:
        record = _record_interruption(record, Step(next(ids), now, f"worker:{worker}", ""), died=died)
        if not record.state.active:
            return record
    attempts = msgspec.structs.replace(record.attempts, started=record.attempts.started + 1)
    hold = Claim(token, worker, now + CLAIM_MS)
    if record.state in LINE_STATES:
        step = Step(next(ids), now, f"worker:{worker}", f"attempt {attempts.started} begins")
        return move(record, State.TIER1_SCANNING, step, claim=hold, attempts=attempts)
    return msgspec.structs.replace(record, claim=hold, next_attempt_at=None, attempts=attempts)


def renew(record: Submission, token: str, now: int) -> Submission:
    """The same record, held for longer: no history, and `updated_at` stays. An end further ahead than a claim's
    length is from before the clock went back: it is put right, or the holder would count as dead."""
    if not record.held_by(token) or record.claim is None:
        raise TransitionError("only the worker that holds a claim can renew it", submission=record.id)
    until = now + CLAIM_MS
    if record.claim.until <= until + CLOCK_SLACK_MS:
        until = max(record.claim.until, until)
    return msgspec.structs.replace(record, claim=msgspec.structs.replace(record.claim, until=until))


def record_failure(record: Submission, step: Step) -> Submission:
    """Record a failed attempt: retry after a delay, or end as REJECTED after the last one."""
    attempts = msgspec.structs.replace(
        record.attempts,
        failed=record.attempts.failed + 1,
        last_error=step.reason,
        unavailable=0,
        unavailable_since=None,
        waiting_for=None,
    )
    if attempts.failed > len(FAILED_DELAYS_MS):
        reason = f"{attempts.failed} attempts failed; the last one: {step.reason}"
        return move(
            record,
            State.REJECTED,
            msgspec.structs.replace(step, reason=reason),
            attempts=attempts,
            decision=RecordedDecision(reason, (EXHAUSTED,)),
        )
    delay = FAILED_DELAYS_MS[attempts.failed - 1]
    return _back(record, step, attempts, delay)


def record_unavailable(record: Submission, step: Step, waiting_for: str) -> Submission:
    """Record that a dependency is down; this is not an attempt. Back off to 15 minutes; NEEDS_REVIEW after 24 hours."""
    before = record.attempts
    attempts, waited_ms = wait_once_more(before, waiting_for, step.reason, step.at)
    if is_given_up(before, waited_ms):
        reason = f"{waiting_for} was unavailable for 24 hours; the last error: {step.reason}"
        return move(
            record, State.NEEDS_REVIEW, msgspec.structs.replace(step, reason=reason), attempts=attempts
        )
    return _back(record, step, attempts, unavailable_delay(before.unavailable))


def wait_once_more(before: Attempts, waiting_for: str, reason: str, now: int) -> tuple[Attempts, int]:
    """The attempts after a dependency was down again, and how long it has been down."""
    since = before.unavailable_since if before.unavailable_since is not None else now
    after = msgspec.structs.replace(
        before,
        unavailable=before.unavailable + 1,
        unavailable_since=since,
        waiting_for=waiting_for,
        last_error=reason,
    )
    return after, now - since


def unavailable_delay(times: int) -> int:
    """Before the next look at a dependency that was down so often already."""
    return min(UNAVAILABLE_FIRST_MS << times, UNAVAILABLE_MOST_MS)


def is_given_up(before: Attempts, waited_ms: int) -> bool:
    """Whether a dependency was down for a day in which this registry looked: the delays between its looks add up to a
    day too. The time in which a machine slept is not among them."""
    delays = sum(unavailable_delay(times) for times in range(before.unavailable))
    return min(waited_ms, delays) >= UNAVAILABLE_END_MS


def hand_back(record: Submission, step: Step) -> Submission:
    """Return it to the queue because the worker stops: due now, not counted as an attempt."""
    return _back(record, step, record.attempts, 0)


def _record_interruption(record: Submission, step: Step, *, died: bool) -> Submission:
    """The step lacks its reason, which is public; which worker it was stands in the step before."""
    count = record.attempts.interrupted + died
    attempts = msgspec.structs.replace(record.attempts, interrupted=count)
    lost = "its worker's claim expired"
    if died and count >= MAX_INTERRUPTED:
        reason = f"{lost}; its worker died {count} times over this submission, so a reviewer must look at it"
        step = msgspec.structs.replace(step, reason=reason)
        return move(record, State.NEEDS_REVIEW, step, attempts=attempts)
    if record.state is State.AUTO_APPROVED:
        return msgspec.structs.replace(record, attempts=attempts)
    reason = lost if died else f"the record store was unavailable until {lost}"
    return move(record, State.RECEIVED, msgspec.structs.replace(step, reason=reason), attempts=attempts)


def _back(record: Submission, step: Step, attempts: Attempts, delay: int) -> Submission:
    """What a reviewer approved stays approved: the next attempt publishes the stored bytes."""
    at = step.at + delay
    if record.state is not State.AUTO_APPROVED:
        return move(record, State.RECEIVED, step, attempts=attempts, next_attempt_at=at)
    waiting = msgspec.structs.replace(record, attempts=attempts, claim=None, next_attempt_at=at)
    return add_step(waiting, record.state, step)


def exhaustion(record: Submission) -> str | None:
    """Why this run ended by running out of attempts, or None: its message is a dead letter then."""
    last = record.history[-1]
    if record.state is State.REJECTED and record.decision and EXHAUSTED in record.decision.rule_ids:
        return record.decision.reason
    died = record.attempts.interrupted >= MAX_INTERRUPTED
    return last.reason if record.state is State.NEEDS_REVIEW and died else None


def violation(record: Submission, now: int, grace_ms: int) -> str | None:
    """What is wrong with this record, in words, or None: the invariant of the whole platform."""
    if record.state.active:
        return owed_violation(record, record.state, now, grace_ms)
    if record.claim is not None or record.next_attempt_at is not None:
        return f"{record.state} is at rest but still has a claim or a next attempt"
    return None


def owed_violation(record: Owed, state: str, now: int, grace_ms: int) -> str | None:
    """The invariant of active work: it has a next attempt, or a live worker holds it."""
    if record.claim is None:
        return None if record.next_attempt_at is not None else f"{state} with neither claim nor next attempt"
    if record.claim.until + grace_ms >= now:
        return None
    seconds = (now - record.claim.until) // 1000
    return f"its worker's claim expired {seconds} s ago and nobody took it up"
