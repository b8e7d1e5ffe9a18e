"""A submission: one record that holds its state, claim, next attempt and history, and the pure functions that
are the only way from one such record to the next. Stores read and write what these functions return.

The invariant that they keep: a record is at rest (terminal, or waiting for a person), or is claimed until a
deadline, or has a next attempt time. `violation` says which record breaks it.
"""

import enum
from collections.abc import Sequence
from typing import Protocol

import msgspec

from vskill_core.errors import TransitionError
from vskill_core.identity import Identity
from vskill_platform.domain.audience import PUBLIC
from vskill_platform.domain.evidence import Evidence
from vskill_platform.domain.messages import Send, submission_send
from vskill_platform.domain.submissions.states import State, may_move, may_start_run

STUCK_THRESHOLD_MS = 300_000

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

#: How long an author has to answer a reviewer who asks for a change.
ANSWER_MS = 14 * 24 * 3_600_000
#: How the reason of the step begins in which a reviewer asks.
ASKED = "a reviewer asks for a change: "

#: Accounts that a submission remembers as its submitters.
MOST_SUBMITTERS = 20

#: How far two estimates of the store's clock may lie apart.
CLOCK_SLACK_MS = 5_000


class EntryPoint(enum.StrEnum):
    """The entry point that a submission came through."""

    WEB = "web"
    API = "api"
    CLI = "cli"
    CRAWLER = "crawler"


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step of a submission's history."""

    #: Unique, so that whoever wrote it can recognise its own write after an unknown outcome.
    id: str
    #: Counts on through all runs without a gap.
    seq: int
    #: Never before the event before it.
    at: int
    to: State
    #: `system`, `worker:<id>`, `admin:<name>` or `user:<name>`.
    actor: str
    #: Never empty.
    reason: str
    #: None only for the first event of all.
    source: State | None = msgspec.field(default=None, name="from")


class Claim(msgspec.Struct, frozen=True):
    """A worker's hold on a submission, until a deadline on the store's clock."""

    token: str
    worker: str
    until: int


class Attempts(msgspec.Struct, frozen=True, omit_defaults=True):
    """How this run's attempts ended; only these counts, never a queue's deliveries, end a run."""

    started: int = 0
    failed: int = 0
    interrupted: int = 0
    #: Times in a row that a source or store was unavailable: it sets the pace, and counts for nothing else.
    unavailable: int = 0
    unavailable_since: int | None = None
    #: Shown as "waiting for …".
    waiting_for: str | None = None
    last_error: str | None = None


class Rerun(msgspec.Struct, frozen=True, omit_defaults=True):
    """Submitted again, or asked to run again, while a run was under way: the next run starts from this."""

    at: int
    submitter: str | None = None
    #: The upload's content digest; None for a repository.
    upload: str | None = None
    #: Who asked for the next run and why; empty where it was submitted again.
    actor: str = ""
    reason: str = ""


class Approval(msgspec.Struct, frozen=True, omit_defaults=True):
    """A reviewer's approval of exactly these bytes."""

    digest: str
    by: str
    at: int
    #: By whoever submitted it.
    own: bool = False


class Appeal(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request that a reviewer look again at how the run before this one ended."""

    by: str
    at: int
    reason: str
    #: How that run ended.
    against: State
    #: The reviewer who ended it so; None: the platform did.
    decided_by: str | None = None


class ChangeRequest(msgspec.Struct, frozen=True):
    """What a reviewer asks the author to change or to explain."""

    by: str
    at: int
    text: str
    #: When the run ends without an answer.
    until: int


class RecordedDecision(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a run ended as it did."""

    reason: str
    rule_ids: tuple[str, ...] = ()
    certification: str | None = None
    score: int | None = None


class Submission(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `sub:{id}`."""

    id: str
    repo_url: str
    identity: Identity
    skill_name: str
    skill_path: str
    state: State
    run: int
    created_at: int
    updated_at: int
    history: tuple[Event, ...]
    source: EntryPoint = EntryPoint.API
    #: The account that submitted it last.
    submitter: str | None = None
    #: Accounts that submitted it before that one, the latest first.
    earlier_submitters: tuple[str, ...] = ()
    claim: Claim | None = None
    next_attempt_at: int | None = None
    attempts: Attempts = Attempts()
    rerun_requested: Rerun | None = None
    #: Of an upload, the content digest under which its bytes are kept.
    upload: str | None = None
    commit: str | None = None
    #: Of the content that this run verifies, once it was fetched.
    digest: str | None = None
    #: The name in that content's front matter: what the blocklist knows as one of its names.
    declared_name: str | None = None
    approval: Approval | None = None
    decision: RecordedDecision | None = None
    #: What both tiers reported about the content of the digest that it names.
    evidence: Evidence | None = None
    #: The key of the published skill, never a guess by name.
    published: str | None = None
    published_version: str | None = None
    #: Why that is not the version in its front matter; empty where it is, or there is none.
    version_note: str = ""
    #: Set in a run that an appeal began.
    appeal: Appeal | None = None
    #: Set while it waits for its author; only in NEEDS_REVIEW.
    change_request: ChangeRequest | None = None
    #: Whose readers may read it (`domain.audience`).
    audience: str = PUBLIC

    @property
    def submitters(self) -> tuple[str, ...]:
        """Every account that submitted it, the latest first: each keeps its rights."""
        return () if self.submitter is None else (self.submitter, *self.earlier_submitters)

    @property
    def appeals_block(self) -> bool:
        """Whether it waits for a reviewer to decide if a block was right: until then the block does not end it."""
        waits = self.state is State.NEEDS_REVIEW
        return waits and self.appeal is not None and self.appeal.against is State.BLOCKED

    @property
    def meaning(self) -> str:
        """Where it stands, in words."""
        if self.change_request is not None:
            return "waiting for its author to answer a reviewer"
        return self.state.meaning

    @property
    def key(self) -> str:
        return f"sub:{self.id}"

    @property
    def message(self) -> Send:
        """What tells a worker to look at this run."""
        return submission_send(self.id, self.run, owner=line_owner(self.submitter, self.identity))

    @property
    def why(self) -> str:
        """Why it stands where it does: of a success what it has passed, otherwise the reason of its last step."""
        if self.state.success and self.decision is not None:
            return self.decision.reason
        return next((event.reason for event in reversed(self.history)), "")

    def held_by(self, token: str) -> bool:
        return self.claim is not None and self.claim.token == token

    def wrote(self, event_id: str) -> bool:
        """Whether the history has this event: decides whether a write with unknown outcome was applied."""
        return any(event.id == event_id for event in self.history)


def line_owner(submitter: str | None, identity: Identity) -> str:
    """Whose work a submission is while it waits: the submitter's, or where nobody signed in, the repository owner's."""
    return f"account:{submitter}" if submitter else f"{identity.host}/{identity.owner}".lower()


class Step(msgspec.Struct, frozen=True):
    """Who does something, when, why, and under which event id."""

    event_id: str
    at: int
    actor: str
    reason: str


def create(
    *,
    submission_id: str,
    identity: Identity,
    repo_url: str,
    skill_name: str,
    step: Step,
    source: EntryPoint = EntryPoint.API,
    submitter: str | None = None,
    upload: str | None = None,
) -> Submission:
    """The first record of a place: waiting for a worker, due now."""
    event = Event(step.event_id, 1, step.at, State.RECEIVED, step.actor, _reason(step))
    return Submission(
        id=submission_id,
        repo_url=repo_url,
        identity=identity,
        skill_name=skill_name,
        skill_path=identity.path,
        state=State.RECEIVED,
        run=1,
        created_at=step.at,
        updated_at=step.at,
        history=(event,),
        source=source,
        submitter=submitter,
        next_attempt_at=step.at,
        upload=upload,
    )


def move(record: Submission, to: State, step: Step, **changes: object) -> Submission:
    """The record in its next state, with the event that says so.

    The claim is kept only where the caller holds it (`claim=`); an active record without one is due now unless
    `next_attempt_at=` says later; a record that ends has neither. Whatever its author was asked is over.
    """
    if not may_move(record.state, to):
        raise TransitionError(
            f"a submission cannot go from {record.state} to {to}",
            submission=record.id,
            source=record.state,
            to=to,
        )
    event = _event(record, to, step)
    fields: dict[str, object] = {"claim": None, "next_attempt_at": None, "change_request": None, **changes}
    if to.active and fields["claim"] is None and fields["next_attempt_at"] is None:
        # Not the event's time, which after the clock went back is that of the event before.
        fields["next_attempt_at"] = step.at
    return msgspec.structs.replace(
        record, state=to, updated_at=event.at, history=(*record.history, event), **fields
    )


def make_due(record: Submission, step: Step) -> Submission:
    """A submission that waits for a worker, due now. The state stays, and the history says who wanted it."""
    if record.state is not State.RECEIVED or record.claim is not None:
        raise TransitionError(
            "only a submission that waits for a worker can be made due", submission=record.id
        )
    event = _event(record, State.RECEIVED, step)
    return msgspec.structs.replace(
        record, updated_at=event.at, history=(*record.history, event), next_attempt_at=step.at
    )


def request_change(record: Submission, step: Step) -> Submission:
    """A submission that waits for a reviewer, waiting for its author instead. The state stays."""
    asked = ChangeRequest(step.actor, step.at, step.reason, step.at + ANSWER_MS)
    return _wait_on(record, msgspec.structs.replace(step, reason=f"{ASKED}{step.reason}"), asked)


def close_request(record: Submission, step: Step) -> Submission:
    """The same submission, waiting for a reviewer again."""
    return _wait_on(record, step, None)


def _wait_on(record: Submission, step: Step, asked: ChangeRequest | None) -> Submission:
    event = _event(record, State.NEEDS_REVIEW, step)
    return msgspec.structs.replace(
        record, updated_at=event.at, history=(*record.history, event), change_request=asked
    )


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
    """Whether a worker may claim it: active, due, and no live worker holds it."""
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
    if record.state is State.RECEIVED:
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
        _reachable(record.attempts), failed=record.attempts.failed + 1, last_error=step.reason
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
    since = before.unavailable_since if before.unavailable_since is not None else step.at
    attempts = msgspec.structs.replace(
        before,
        unavailable=before.unavailable + 1,
        unavailable_since=since,
        waiting_for=waiting_for,
        last_error=step.reason,
    )
    if is_given_up(before, step.at - since):
        reason = f"{waiting_for} was unavailable for 24 hours; the last error: {step.reason}"
        return move(
            record, State.NEEDS_REVIEW, msgspec.structs.replace(step, reason=reason), attempts=attempts
        )
    return _back(record, step, attempts, unavailable_delay(before.unavailable))


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


def start_run(record: Submission, step: Step, *, submitter: str | None, upload: str | None) -> Submission:
    """The next run of a submission whose last one is over. The caller keeps the old record at `subrun:`."""
    if not may_start_run(record.state):
        raise TransitionError(
            f"a new run starts only when the last one is over, not in {record.state}", submission=record.id
        )
    event = _event(record, State.RECEIVED, step)
    submitters = _submitters(record, submitter)
    return msgspec.structs.replace(
        record,
        state=State.RECEIVED,
        run=record.run + 1,
        updated_at=event.at,
        history=(event,),
        submitter=next(iter(submitters), None),
        earlier_submitters=submitters[1:],
        claim=None,
        next_attempt_at=step.at,
        attempts=Attempts(),
        rerun_requested=None,
        upload=upload,
        commit=None,
        digest=None,
        declared_name=None,
        approval=None,
        decision=None,
        evidence=None,
        version_note="",
        appeal=None,
        change_request=None,
    )


def _submitters(record: Submission, submitter: str | None) -> tuple[str, ...]:
    """Every submitter after one more, the latest first; None is nobody who signed in."""
    if submitter is None:
        return record.submitters
    earlier = (name for name in record.submitters if name != submitter)
    return (submitter, *earlier)[:MOST_SUBMITTERS]


def request_rerun(record: Submission, rerun: Rerun) -> Submission:
    """Remember that it is to run again; the latest wins. State and claim stay as they are."""
    return msgspec.structs.replace(record, rerun_requested=rerun)


def refresh(record: Submission, *, now: int, submitter: str | None, upload: str | None) -> Submission:
    """Submitted again while it waits for a worker: the same run looks at the new content, now.

    What failed was the old content, so only interruptions go on counting; and what was to run next is older than
    what was submitted now.
    """
    if record.state is not State.RECEIVED or record.claim is not None:
        raise TransitionError(
            "only a submission that waits for a worker can be refreshed", submission=record.id
        )
    kept = Attempts(started=record.attempts.started, interrupted=record.attempts.interrupted)
    submitters = _submitters(record, submitter)
    return msgspec.structs.replace(
        record,
        upload=upload,
        submitter=next(iter(submitters), None),
        earlier_submitters=submitters[1:],
        commit=None,
        digest=None,
        declared_name=None,
        evidence=None,
        next_attempt_at=now,
        attempts=kept,
        rerun_requested=None,
    )


def cancel_rerun(record: Submission) -> Submission:
    """Forget the requested rerun, for cancelling and blocking."""
    return msgspec.structs.replace(record, rerun_requested=None)


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
    event = _event(record, record.state, step)
    return msgspec.structs.replace(
        record,
        attempts=attempts,
        claim=None,
        next_attempt_at=at,
        updated_at=event.at,
        history=(*record.history, event),
    )


def _reachable(attempts: Attempts) -> Attempts:
    return msgspec.structs.replace(attempts, unavailable=0, unavailable_since=None, waiting_for=None)


def _event(record: Submission, to: State, step: Step) -> Event:
    last = record.history[-1]
    return Event(step.event_id, last.seq + 1, _at(record, step), to, step.actor, _reason(step), record.state)


def _at(record: Submission, step: Step) -> int:
    return max(step.at, record.history[-1].at)


def _reason(step: Step) -> str:
    if not step.reason.strip():
        raise TransitionError("every step of a submission's history needs a reason")
    return step.reason
