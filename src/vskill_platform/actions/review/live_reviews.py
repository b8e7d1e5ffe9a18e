"""Live versions under review as items of the review queue: a rescan has doubts, and a reviewer decides whether
the version stays. The item is the mark in the skill's record, so nothing else has to be opened or closed with it. It is
shown and decided as its submission, at the bytes that are live."""

import msgspec

from vskill_core.errors import TransitionError
from vskill_platform.actions.action import Services
from vskill_platform.actions.four_eyes import mark_own, require_other_eyes
from vskill_platform.actions.principal import Principal, audiences_of
from vskill_platform.domain import keys
from vskill_platform.domain.audience import Audiences
from vskill_platform.domain.skills import skill, skill_changes
from vskill_platform.domain.skills.skill import PublishedSkill, StatusRole, VersionRef
from vskill_platform.domain.skills.skill_changes import StatusChange
from vskill_platform.domain.submissions import submission
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Event, RecordedDecision, Step, Submission
from vskill_platform.store.recall.withdrawals import MoreWrites, alter_skill
from vskill_platform.store.skills.skills import list_under_review, read_skill
from vskill_platform.submission_store import RecordChange, get_submission, get_submissions


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
    """Every live version that waits for a reviewer, as its submission."""
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
