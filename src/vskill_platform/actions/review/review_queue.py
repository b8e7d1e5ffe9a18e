"""What waits for a reviewer, the most urgent first: known bad and critical, strong malice, signals of the registry,
what was not read whole, then the rest; of equals what is live already, and then what has waited longest. What waits
for its author comes last.

The order is made of at most a thousand records, which an index gives: those that have waited longest and those that
came last. Where more wait, the page says so.
"""

import base64

import msgspec

from vskill_client.wire.base import ActionRequest, Wire, iso_time
from vskill_core.errors import InvalidInput, TransitionError
from vskill_core.findings import ScanStatus
from vskill_core.foreign_json import read_json
from vskill_platform.actions.action import Cursor, PageSize, Services, action
from vskill_platform.actions.changes import mark_own, require_other_eyes
from vskill_platform.actions.principal import Principal, Right, audiences_of
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import Audiences, Directory, Everything, namespace_audiences
from vskill_platform.domain.review.own_review import (
    why_not_own,
    why_reserved,
)
from vskill_platform.domain.review.review_risk import risk_of
from vskill_platform.domain.skills import skill, skill_changes
from vskill_platform.domain.skills.skill import PublishedSkill, StatusRole, VersionRef
from vskill_platform.domain.skills.skill_changes import StatusChange
from vskill_platform.domain.submissions import submission
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Event, RecordedDecision, Step, Submission
from vskill_platform.ledger.kv.query import FIRST_PAGE
from vskill_platform.store.people.namespaces import read_directory
from vskill_platform.store.recall.withdrawals import MoreWrites, alter_skill
from vskill_platform.store.skills.skills import list_under_review, read_skill
from vskill_platform.store.submissions.submission_lists import find_submissions
from vskill_platform.submission_store import RecordChange, count_submissions, get_submission, get_submissions

# Live versions under review: a rescan has doubts, and a reviewer decides whether the version stays. The item is the
# mark in the skill's record, so nothing else has to be opened or closed with it. It is shown and decided as its
# submission, at the bytes that are live.


class LiveReview(msgspec.Struct, frozen=True):
    """A live version that waits for a reviewer."""

    skill: PublishedSkill
    version: VersionRef
    #: its submission, as a reviewer decides about it
    item: Submission


async def find_live_review(record: Submission) -> LiveReview | None:
    """None where the submission itself waits for a reviewer: that is decided first."""
    if record.state is State.NEEDS_REVIEW or record.published is None:
        return None
    published, _ = await read_skill(keys.parse(record.published).parts[0])
    if published is None or published.submission != record.id:
        return None
    return _live_review(record, published)


async def list_live_reviews(audiences: Audiences) -> list[Submission]:
    skills = {one.submission: one for one in await list_under_review(audiences=audiences) if one.submission}
    records = await get_submissions(skills, audiences=audiences)
    found = (
        _live_review(record, skills[record.id])
        for record in records
        if record.state is not State.NEEDS_REVIEW
    )
    return [one.item for one in found if one is not None]


def _live_review(record: Submission, published: PublishedSkill) -> LiveReview | None:
    ref = skill.newest_under_review(published)
    if ref is None or ref.review is None:
        return None
    reason = f"rescan: {ref.review.reason}; version {ref.number} stays live until a reviewer decides"
    last = record.history[-1]
    asked = Event(
        f"{last.id}-review",
        last.seq + 1,
        ref.review.since,
        State.NEEDS_REVIEW,
        "system",
        reason,
        record.state,
    )
    item = msgspec.structs.replace(
        record,
        state=State.NEEDS_REVIEW,
        digest=ref.digest,
        evidence=ref.review.evidence,
        decision=RecordedDecision(ref.review.reason, ref.review.rule_ids),
        updated_at=ref.review.since,
        history=(*record.history, asked),
        claim=None,
        next_attempt_at=None,
        appeal=None,
        change_request=None,
    )
    return LiveReview(published, ref, item)


async def decide_live_review(
    services: Services, actor: Principal, found: LiveReview, reason: str, *, stays: bool, more: MoreWrites
) -> Submission:
    """Keep the version, or take it down with the submission that is PUBLISHED with it. One commit, with `more`."""
    if stays:
        require_other_eyes(services, actor, found.item)
    digest, reason = found.version.digest, mark_own(actor, found.item, reason)

    def alter(current: PublishedSkill, now: int) -> PublishedSkill:
        if not any(ref.digest == digest and ref.review for ref in current.versions):
            message = f"Version {found.version.number} is not under review any more."
            raise TransitionError(message, submission=found.item.id)
        if stays:
            return skill_changes.keep_live(current, digest, actor.actor, now)
        change = StatusChange(StatusRole.REVIEWER, actor.actor, now, reason)
        return skill_changes.take_down(current, change, digest=digest)

    def reject_submission(record: Submission, _: VersionRef | None, step: Step) -> RecordChange | None:
        if stays or record.state is not State.PUBLISHED or record.digest != digest:
            return None
        doubted = msgspec.structs.replace(step, event_id=f"{step.event_id}-doubt", actor="system")
        doubted = msgspec.structs.replace(doubted, reason=found.item.why)
        waiting = submission.move(record, State.NEEDS_REVIEW, doubted)
        return RecordChange(
            submission.move(waiting, State.REJECTED, step, decision=RecordedDecision(step.reason))
        )

    await alter_skill(
        found.skill.canonical,
        alter,
        "approve" if stays else "reject",
        found.version.number,
        by=actor.actor,
        reason=reason,
        follow=reject_submission,
        more=more,
    )
    return await get_submission(found.item.id, audiences=audiences_of(actor))


REVIEW = "/api/v1/review"
#: From either end of the line.
MOST_FROM_AN_END = 500

#: Whether it waits for its author, level (negative), whether it is not live, waiting since, id: what the queue is
#: sorted by.
Place = tuple[bool, int, bool, int, str]


class ListWaiting(ActionRequest, frozen=True, kw_only=True):
    """Which page of what waits."""

    #: the `after` of the page before
    after: Cursor | None = None
    #: how many to show on a page
    limit: PageSize = 50


class WaitingSubmission(Wire, frozen=True):
    """A submission that waits for a reviewer: what a decision names, and what the list shows."""

    id: str
    #: `submission`, or `live`: a published version that newer rules doubt
    kind: str
    run: int
    digest: str | None
    skill_name: str
    repo_url: str
    skill_path: str
    #: why it waits
    reason: str
    #: of the static scan; null where there was none or it did not end
    score: int | None
    #: null where nobody was signed in
    submitter: str | None
    since: str
    #: how urgent it is: certain, critical, strong-malice, signal, not-read, doubt or nothing-found
    risk: str
    #: the same in words
    risk_words: str
    #: what was found, counted
    risk_reasons: tuple[str, ...]
    #: what a reviewer has asked its author; null where it waits for a reviewer
    question: str | None
    #: its namespace reviews itself, and a maintainer of it may decide
    own_review: bool


class WaitingPage(Wire, frozen=True):
    """A page of what waits."""

    #: the most urgent first
    items: tuple[WaitingSubmission, ...]
    #: asks for the next page; null on the last
    after: str | None
    #: how many wait in all
    total: int
    #: how many of those wait between the ends that are ordered here
    beyond: int
    #: records that could not be read; the log names them
    skipped: int


class OrderedQueue(msgspec.Struct, frozen=True):
    """All that is ordered."""

    records: tuple[Submission, ...]
    #: Those of them whose version is live: people install them already.
    live: frozenset[str]
    skipped: int
    #: In a maintainer's namespaces, how many more were not looked at.
    beyond: int = 0

    def following(self, submission_id: str) -> str | None:
        """The one after it, or the first other one."""
        ids = [record.id for record in self.records]
        at = ids.index(submission_id) if submission_id in ids else -1
        others = [one for one in (*ids[at + 1 :], *ids[: max(at, 0)]) if one != submission_id]
        return others[0] if others else None

    def preceding(self, submission_id: str) -> str | None:
        ids = [record.id for record in self.records]
        at = ids.index(submission_id) if submission_id in ids else 0
        return ids[at - 1] if at > 0 else None

    def place_of(self, submission_id: str) -> int | None:
        """From 1; None where it does not wait."""
        return next((at for at, one in enumerate(self.records, 1) if one.id == submission_id), None)


async def order_queue(actor: Principal) -> OrderedQueue:
    """What waits, in the order in which it should be looked at. Maintainers of namespaces that review themselves are
    shown what waits there and what they may decide of it."""
    if not actor.is_reviewer:
        return await _order_own(actor)
    audiences = audiences_of(actor)
    oldest = await find_submissions(
        audiences=audiences, states=[State.NEEDS_REVIEW], descending=False, limit=MOST_FROM_AN_END
    )
    found = {record.id: record for record in oldest.items}
    skipped = oldest.skipped
    if oldest.after is not None:
        newest = await find_submissions(
            audiences=audiences, states=[State.NEEDS_REVIEW], limit=MOST_FROM_AN_END
        )
        found |= {record.id: record for record in newest.items}
        skipped += newest.skipped
    reviews = {record.id: record for record in await list_live_reviews(audiences)}
    live = frozenset(reviews)
    ordered = sorted((found | reviews).values(), key=lambda record: _place(record, live))
    return OrderedQueue(tuple(ordered), live, skipped)


async def _order_own(actor: Principal) -> OrderedQueue:
    directory, audiences = await read_directory(), audiences_of(actor)
    own = frozenset().union(*map(namespace_audiences, actor.reviews))
    if not isinstance(audiences, Everything):
        own &= audiences
    found = await find_submissions(
        audiences=own, states=[State.NEEDS_REVIEW], descending=False, limit=2 * MOST_FROM_AN_END
    )
    decidable = [one for one in found.items if why_not_own(one, directory, actor.name, actor.groups) is None]
    ordered = sorted(decidable, key=lambda record: _place(record, frozenset()))
    counts = await count_submissions(audiences=own)
    beyond = counts.by_state[State.NEEDS_REVIEW] - len(found.items) - found.skipped
    return OrderedQueue(tuple(ordered), frozenset(), found.skipped, beyond if found.after else 0)


async def list_waiting(actor: Principal, request: ListWaiting) -> WaitingPage:
    queue, directory = await order_queue(actor), await read_directory()
    total = len(queue.records) + queue.skipped + queue.beyond
    if actor.is_reviewer:
        counts = await count_submissions(audiences=audiences_of(actor))
        total = counts.by_state[State.NEEDS_REVIEW] + len(queue.live)
    begin = None if request.after is None else _decode_place(request.after)
    rest = [record for record in queue.records if begin is None or _place(record, queue.live) > begin]
    shown = rest[: request.limit]
    return WaitingPage(
        items=tuple(_waiting(record, directory, is_live=record.id in queue.live) for record in shown),
        after=_encode_place(_place(shown[-1], queue.live)) if len(rest) > len(shown) else None,
        total=total,
        beyond=max(total - len(queue.records) - queue.skipped, 0),
        skipped=queue.skipped,
    )


def _place(record: Submission, live: frozenset[str]) -> Place:
    is_asked = record.change_request is not None
    return is_asked, -risk_of(record).level, record.id not in live, record.updated_at, record.id


def _encode_place(place: Place) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode()


def _decode_place(cursor: str) -> Place:
    try:
        place: Place = read_json(base64.urlsafe_b64decode(cursor.encode()), Place)
    except ValueError as error:
        raise InvalidInput("The cursor is not valid.", field="after", fix=FIRST_PAGE) from error
    return place


def _waiting(record: Submission, directory: Directory, *, is_live: bool) -> WaitingSubmission:
    evidence, risk = record.evidence, risk_of(record)
    return WaitingSubmission.of(
        record,
        kind="live" if is_live else "submission",
        reason=record.why,
        score=evidence.score if evidence and evidence.status is ScanStatus.COMPLETE else None,
        since=iso_time(record.updated_at),
        risk=risk.level.name.lower().replace("_", "-"),
        risk_words=risk.level.words,
        risk_reasons=risk.reasons,
        question=record.change_request.text if record.change_request else None,
        own_review=why_reserved(record, directory) is None,
    )


WAITING = action(
    list_waiting,
    "review.list",
    REVIEW,
    right=Right.OWN_REVIEWER,
    summary="List submissions that wait for a reviewer, the most urgent first",
    about="Maintainers of a namespace that reviews itself are shown what they may decide there.",
)
