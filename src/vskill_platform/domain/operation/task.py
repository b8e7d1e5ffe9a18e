"""Queued work other than submissions: external scans, rescans, deliveries of webhooks, checks of repositories.

A task is a record of the same shape as a submission's: claim, next attempt, attempts by outcome, and so the same
invariant. What it does is its kind's; what it found is stored elsewhere, by the same commit that ends it.
"""

import enum

import msgspec

from vskill_core.errors import TransitionError
from vskill_platform.domain.submissions.attempts import (
    CLAIM_MS,
    CLOCK_SLACK_MS,
    MAX_INTERRUPTED,
    is_given_up,
    unavailable_delay,
    wait_once_more,
)
from vskill_platform.domain.submissions.attempts import is_due as is_claim_due
from vskill_platform.domain.submissions.submission import Attempts, Claim

#: The longest delay between two attempts at any kind of task.
LONGEST_DELAY_MS = 25 * 3_600_000


class TaskState(enum.StrEnum):
    """Where a run of a task stands."""

    ACTIVE = "ACTIVE"
    DONE = "DONE"
    FAILED = "FAILED"

    @property
    def active(self) -> bool:
        return self is TaskState.ACTIVE


class Task(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `task:{kind}:{id}`."""

    kind: str
    #: Unique within its kind, and made of what it is about: asking twice is the same task.
    id: str
    state: TaskState
    run: int
    created_at: int
    updated_at: int
    #: What it is about, in its kind's own words.
    subject: dict[str, str] = {}
    claim: Claim | None = None
    next_attempt_at: int | None = None
    attempts: Attempts = Attempts()
    #: Asked for again while a worker held it.
    rerun_requested: bool = False
    #: How the last attempt ended, for people; never empty once one has.
    outcome: str = ""

    @property
    def key(self) -> str:
        return task_key(self.kind, self.id)

    def held_by(self, token: str) -> bool:
        return self.claim is not None and self.claim.token == token


def task_key(kind: str, task_id: str) -> str:
    """Ids are made of digests and names of ours, so the key needs no escaping to be unambiguous."""
    return f"task:{kind}:{task_id}"


def create(kind: str, task_id: str, subject: dict[str, str], *, now: int, delay_ms: int = 0) -> Task:
    return Task(kind, task_id, TaskState.ACTIVE, 1, now, now, subject, next_attempt_at=now + delay_ms)


def ask_again(task: Task, subject: dict[str, str], now: int) -> Task:
    """Due now once more: a new run where the last is over, a note where a worker holds it."""
    if task.claim is not None:
        return msgspec.structs.replace(task, rerun_requested=True, subject=subject)
    if task.state.active:
        return msgspec.structs.replace(task, subject=subject, next_attempt_at=now, updated_at=now)
    return _next_run(task, subject, now)


def is_due(task: Task, now: int) -> bool:
    """Its claim has ended, or its next attempt has come; also where the clock went back since that was set.

    Delays are as long as a day, so the delay alone does not tell; but what was set later than now was not set on
    this clock. An attempt before its time is all that it costs.
    """
    went_back = task.state.active and task.claim is None and task.updated_at > now + CLOCK_SLACK_MS
    return went_back or is_claim_due(task, now, LONGEST_DELAY_MS)


def claim(task: Task, *, token: str, worker: str, now: int, died: bool = True) -> Task:
    """Take it up; taking over from a worker that `died` counts. Too many deaths end it."""
    attempts = task.attempts
    if task.claim is not None and died:
        attempts = msgspec.structs.replace(attempts, interrupted=attempts.interrupted + 1)
        if attempts.interrupted >= MAX_INTERRUPTED:
            ended = msgspec.structs.replace(task, attempts=attempts)
            return _end(ended, TaskState.FAILED, f"its worker died {attempts.interrupted} times over it", now)
    attempts = msgspec.structs.replace(attempts, started=attempts.started + 1)
    hold = Claim(token, worker, now + CLAIM_MS)
    return msgspec.structs.replace(task, claim=hold, next_attempt_at=None, attempts=attempts)


def renew(task: Task, now: int) -> Task:
    if task.claim is None:
        raise TransitionError("only a claimed task can be renewed", task=task.key)
    return msgspec.structs.replace(task, claim=msgspec.structs.replace(task.claim, until=now + CLAIM_MS))


def finish(task: Task, outcome: str, now: int) -> Task:
    return _end(task, TaskState.DONE, outcome, now)


def record_failure(task: Task, reason: str, delays_ms: tuple[int, ...], now: int) -> Task:
    """Record a failed attempt: retry after the next delay, or fail for good after the last."""
    attempts = msgspec.structs.replace(task.attempts, failed=task.attempts.failed + 1, last_error=reason)
    task = msgspec.structs.replace(task, attempts=attempts)
    if attempts.failed > len(delays_ms):
        return _end(task, TaskState.FAILED, f"{attempts.failed} attempts failed; the last one: {reason}", now)
    return _later(task, reason, now + delays_ms[attempts.failed - 1], now)


def record_unavailable(task: Task, reason: str, waiting_for: str, now: int) -> Task:
    """A dependency is down: not an attempt, but not for ever either."""
    before = task.attempts
    attempts, waited_ms = wait_once_more(before, waiting_for, reason, now)
    task = msgspec.structs.replace(task, attempts=attempts)
    if is_given_up(before, waited_ms):
        return _end(task, TaskState.FAILED, f"{waiting_for} was unavailable for 24 hours: {reason}", now)
    return _later(task, reason, now + unavailable_delay(before.unavailable), now)


def put_off(task: Task, outcome: str, at: int, now: int) -> Task:
    """It came before its time, as after the clock was set back: counted nowhere, due then."""
    return _later(task, outcome, min(at, now + LONGEST_DELAY_MS), now)


def hand_back(task: Task, reason: str, now: int) -> Task:
    """The worker stops, or its claim ran out: counted nowhere, due now."""
    return _later(task, reason, now, now)


def _later(task: Task, outcome: str, at: int, now: int) -> Task:
    return msgspec.structs.replace(task, claim=None, next_attempt_at=at, outcome=outcome, updated_at=now)


def _end(task: Task, state: TaskState, outcome: str, now: int) -> Task:
    ended = msgspec.structs.replace(
        task, state=state, claim=None, next_attempt_at=None, outcome=outcome, updated_at=now
    )
    return _next_run(ended, task.subject, now) if task.rerun_requested else ended


def _next_run(task: Task, subject: dict[str, str], now: int) -> Task:
    return msgspec.structs.replace(
        task,
        state=TaskState.ACTIVE,
        run=task.run + 1,
        subject=subject,
        next_attempt_at=now,
        attempts=Attempts(),
        rerun_requested=False,
        updated_at=now,
    )
