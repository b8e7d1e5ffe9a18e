"""What a reviewer's decision will do, said before it is made: which version becomes the newest and who gets it, what
the author is told, and what would keep an approval from being published. Nothing is changed."""

from collections.abc import Sequence

import msgspec

from vskill_core.errors import (
    Blocked,
    ContentDamaged,
    InvalidInput,
    InvalidManifest,
    LowerVersion,
    NoSkillFound,
    SourceGone,
)
from vskill_platform.actions.principal import Principal, audiences_of
from vskill_platform.actions.review.live_reviews import LiveReview, find_live_review
from vskill_platform.domain.audience import PUBLIC
from vskill_platform.domain.skills.skill import PublishedSkill, VersionStatus
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.stages.publish import require_publishable
from vskill_platform.store.verdicts.rule_figures import rules_that_held
from vskill_platform.submission_store import get_submission, get_submissions


class DecisionPreview(msgspec.Struct, frozen=True):
    """What each decision leads to."""

    approve: tuple[str, ...]
    #: why an approval would publish nothing; empty if it would
    problem: str
    reject: tuple[str, ...]


async def preview_decision(reader: Principal, record: Submission) -> DecisionPreview:
    """For a submission that waits, with its bytes as they are stored, or for a live version that newer rules doubt."""
    rejected = _tell_rejection(record)
    live = await find_live_review(await get_submission(record.id, audiences=audiences_of(reader)))
    if live is not None and live.version.digest == record.digest:
        return _preview_live(record, live, rejected)
    try:
        after, before = await require_publishable(record)
    except (
        Blocked,
        LowerVersion,
        SourceGone,
        NoSkillFound,
        InvalidInput,
        InvalidManifest,
        ContentDamaged,
    ) as error:
        return DecisionPreview((), error.public_message, (*rejected, "Nothing is published."))
    current = None if before is None else before.current_version
    kept = f"Version {current} stays live." if current else "Nothing is published."
    return DecisionPreview(_tell_approval(record, before, after), "", (*rejected, kept))


async def preview_many(reader: Principal, ids: Sequence[str]) -> list[tuple[Submission, DecisionPreview]]:
    """What a decision about each of these will do; those that do not wait are left out."""
    waiting = []
    for record in await get_submissions(ids, audiences=audiences_of(reader)):
        live = await find_live_review(record)
        if record.state.reviewable or live is not None:
            waiting.append(record if live is None else live.item)
    return [(record, await preview_decision(reader, record)) for record in waiting]


def _preview_live(record: Submission, live: LiveReview, rejected: tuple[str, ...]) -> DecisionPreview:
    number = live.version.number
    kept = f"Version {number} stays live and is no longer marked as under review."
    others = [ref for ref in live.skill.versions if ref.status is VersionStatus.LIVE and ref.number != number]
    left = f"Version {others[-1].number} is the newest then." if others else "Nobody can install it any more."
    down = f"Version {number} is taken down; {_count_installs(live.skill, 'has', 'have')} the skill. {left}"
    return DecisionPreview((kept, *_tell_rules(record, "wrong here")), "", (*rejected, down))


def _tell_approval(
    record: Submission, before: PublishedSkill | None, after: PublishedSkill
) -> tuple[str, ...]:
    number = after.current_version
    readers = "everybody" if record.audience == PUBLIC else "those who may read its namespace"
    if before is None or before.current_version is None:
        told = f"Version {number} is published as {after.canonical}; {readers} can install it."
    elif before.current_version == number:
        told = f"Version {number} stays the newest: it has the same bytes."
    else:
        reached = _count_installs(before, "gets", "get")
        told = (
            f"Version {number} becomes the newest after {before.current_version}; {reached} it as an update."
        )
    certified = "It is marked as certified: a person approved exactly these bytes."
    return (told, certified, *_tell_rules(record, "wrong here"))


def _tell_rejection(record: Submission) -> tuple[str, ...]:
    who = record.submitter or "The author"
    told = f"{who} is told your reason; it stands in the public history, without your name."
    block = ("The block stays as it is.",) if record.appeals_block else ()
    return (told, *block, *_tell_rules(record, "right here"))


def _tell_rules(record: Submission, what: str) -> tuple[str, ...]:
    held = rules_that_held(record)
    return (f"The statistics count {', '.join(held)} as {what}.",) if held else ()


def _count_installs(skill: PublishedSkill, one: str, many: str) -> str:
    installs = skill.trust.installs
    return f"1 install {one}" if installs == 1 else f"{installs:,} installs {many}"
