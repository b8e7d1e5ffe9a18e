"""A submission: one record that holds its state, claim, next attempt and history, and the pure functions that, with
those of `attempts`, are the only way from one such record to the next. Stores read and write what they return.
"""

import enum

import msgspec

from vskill_core.errors import TransitionError
from vskill_core.identity import Identity
from vskill_core.kind import Kind
from vskill_core.publisher import Publisher
from vskill_platform.domain.evidence import Evidence
from vskill_platform.domain.messages import Send, submission_send
from vskill_platform.domain.people.namespace import PUBLIC
from vskill_platform.domain.signals import RecordedRule
from vskill_platform.domain.submissions.cooldown import FirstSeen
from vskill_platform.domain.submissions.states import State, may_move, may_start_run

STUCK_THRESHOLD_MS = 300_000

#: How long an author has to answer a reviewer who asks for a change.
ANSWER_MS = 14 * 24 * 3_600_000
#: How the reason of the step begins in which a reviewer asks.
ASKED = "a reviewer asks for a change: "

#: Accounts that a submission remembers as its submitters.
MOST_SUBMITTERS = 20


class EntryPoint(enum.StrEnum):
    """The entry point that a submission came through."""

    WEB = "web"
    API = "api"
    CLI = "cli"
    CRAWLER = "crawler"


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step of a submission's history."""

    #: Unique, so that its writer can recognise its own write after an unknown outcome.
    id: str
    #: Counts on through all runs without a gap.
    seq: int
    #: Never before the event before it.
    at: int
    to: State
    #: `system`, `worker:<id>`, `admin:<name>`, `user:<name>`, `ci:<repository>` or
    #: `follow:<repository>`.
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
    #: The CI job that submitted it, at its own commit.
    publisher: Publisher | None = None


class Approval(msgspec.Struct, frozen=True, omit_defaults=True):
    """A reviewer's approval of exactly these bytes."""

    digest: str
    by: str
    at: int
    #: By its own submitter.
    own: bool = False
    #: By a maintainer of its namespace, which reviews itself: it publishes for the team alone.
    team: bool = False


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
    #: Digest of the policy that was in force; empty where the scan had no say.
    policy: str = ""
    #: The rules of that policy that matched, whatever they do.
    matched: tuple[RecordedRule, ...] = ()
    #: Maintainers of a namespace that reviews itself may decide instead of a reviewer.
    own_review: bool = False


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
    #: Nobody is known to have submitted what this run verifies, whoever submitted it before.
    submitter_unknown: bool = False
    claim: Claim | None = None
    next_attempt_at: int | None = None
    attempts: Attempts = Attempts()
    rerun_requested: Rerun | None = None
    #: Of an upload, the content digest under which its bytes are kept.
    upload: str | None = None
    commit: str | None = None
    #: Of the content that this run verifies, once it was fetched.
    digest: str | None = None
    #: Of the last contents, the latest first. Kept from run to run.
    first_seen: tuple[FirstSeen, ...] = ()
    #: Digest of the policy by whose rule this run waits or has waited: it goes on with the stored content.
    cooled_by: str = ""
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
    #: The CI job that submitted this run, which verifies exactly that job's commit.
    publisher: Publisher | None = None
    #: Somebody who may act for its namespace submitted it: it is fetched with the namespace's credential.
    with_credential: bool = False
    #: What a maintainer wants it published as; None: as it was before, or by its files.
    kind: Kind | None = None

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


def is_approved(record: Submission, digest: str, *, team: bool = False) -> bool:
    """Whether a reviewer approved exactly these bytes; with `team`, a maintainer of its namespace."""
    approval = record.approval
    return approval is not None and (approval.digest, approval.team) == (digest, team)


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
    fields: dict[str, object] = {"claim": None, "next_attempt_at": None, "change_request": None, **changes}
    if to.active and fields["claim"] is None and fields["next_attempt_at"] is None:
        # Not the event's time, which after the clock went back is that of the event before.
        fields["next_attempt_at"] = step.at
    return add_step(msgspec.structs.replace(record, **fields), to, step)


def add_step(record: Submission, to: State, step: Step) -> Submission:
    """The record with one more event; `move` is for a change of state."""
    event = _event(record, to, step)
    return msgspec.structs.replace(record, state=to, updated_at=event.at, history=(*record.history, event))


def make_due(record: Submission, step: Step) -> Submission:
    """A submission that no worker has, due now. The state stays, and the history says who wanted it."""
    _require_waiting(record, "made due", (State.RECEIVED, State.COOLDOWN))
    return add_step(msgspec.structs.replace(record, next_attempt_at=step.at), record.state, step)


def _require_waiting(record: Submission, what: str, states: tuple[State, ...] = (State.RECEIVED,)) -> None:
    if record.state not in states or record.claim is not None:
        raise TransitionError(f"only what waits for a worker can be {what}", submission=record.id)


def request_change(record: Submission, step: Step) -> Submission:
    """A submission that waits for a reviewer, waiting for its author instead. The state stays."""
    asked = ChangeRequest(step.actor, step.at, step.reason, step.at + ANSWER_MS)
    step = msgspec.structs.replace(step, reason=f"{ASKED}{step.reason}")
    return add_step(msgspec.structs.replace(record, change_request=asked), State.NEEDS_REVIEW, step)


def close_request(record: Submission, step: Step) -> Submission:
    """The same submission, waiting for a reviewer again."""
    return add_step(msgspec.structs.replace(record, change_request=None), State.NEEDS_REVIEW, step)


def start_run(
    record: Submission,
    step: Step,
    *,
    submitter: str | None,
    upload: str | None,
    publisher: Publisher | None = None,
) -> Submission:
    """The next run of a submission whose last one is over. The caller keeps the old record at `subrun:`."""
    if not may_start_run(record.state):
        raise TransitionError(
            f"a new run starts only when the last one is over, not in {record.state}", submission=record.id
        )
    event = _event(record, State.RECEIVED, step)
    return msgspec.structs.replace(
        _submitted_by(record, submitter, upload),
        state=State.RECEIVED,
        run=record.run + 1,
        updated_at=event.at,
        history=(event,),
        claim=None,
        next_attempt_at=step.at,
        attempts=Attempts(),
        rerun_requested=None,
        upload=upload,
        commit=publisher.commit
        if publisher
        else (record.commit if upload and upload == record.upload else None),
        publisher=publisher,
        digest=None,
        cooled_by="",
        declared_name=None,
        approval=None,
        decision=None,
        evidence=None,
        version_note="",
        appeal=None,
        change_request=None,
    )


def _submitted_by(record: Submission, submitter: str | None, upload: str | None) -> Submission:
    """With one more submitter, and whether whoever submitted this is known; None is nobody who signed in. The same
    upload is its submitter's still."""
    earlier = tuple(name for name in record.submitters if name != submitter)
    names = earlier if submitter is None else (submitter, *earlier)[:MOST_SUBMITTERS]
    is_same = upload is not None and upload == record.upload
    is_unknown = submitter is None and (record.submitter_unknown or not is_same)
    return msgspec.structs.replace(
        record, submitter=next(iter(names), None), earlier_submitters=names[1:], submitter_unknown=is_unknown
    )


def request_rerun(record: Submission, rerun: Rerun) -> Submission:
    """Remember that it is to run again; the latest wins. State and claim stay as they are."""
    return msgspec.structs.replace(record, rerun_requested=rerun)


def refresh(record: Submission, *, now: int, submitter: str | None, upload: str | None) -> Submission:
    """Submitted again while it waits for a worker: the same run looks at the new content, now.

    What failed was the old content, so only interruptions go on counting; what was to run next is older than this.
    """
    _require_waiting(record, "refreshed")
    kept = Attempts(started=record.attempts.started, interrupted=record.attempts.interrupted)
    return msgspec.structs.replace(
        _submitted_by(record, submitter, upload),
        upload=upload,
        commit=None,
        digest=None,
        cooled_by="",
        declared_name=None,
        evidence=None,
        next_attempt_at=now,
        attempts=kept,
        rerun_requested=None,
    )


def cancel_rerun(record: Submission) -> Submission:
    """Forget the requested rerun, for cancelling."""
    return msgspec.structs.replace(record, rerun_requested=None)


def _event(record: Submission, to: State, step: Step) -> Event:
    last = record.history[-1]
    at = max(step.at, last.at)
    return Event(step.event_id, last.seq + 1, at, to, step.actor, _reason(step), record.state)


def _reason(step: Step) -> str:
    if not step.reason.strip():
        raise TransitionError("every step of a submission's history needs a reason")
    return step.reason
