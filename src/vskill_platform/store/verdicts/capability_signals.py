"""What a version can do and the live one cannot: the signal that sends an update to a reviewer.

The registry knows what is live, a scan of files does not. Both cards are made by the rules of today, so that a change
of the rules never looks like a change of the skill. A first publication has nothing to be compared with.
"""

from vskill_core.capability import (
    SkillCapability,
    describe_gains,
    needing_review,
    new_capabilities,
)
from vskill_core.errors import ContentDamaged
from vskill_core.findings import StaticReport
from vskill_core.identity import Identity
from vskill_platform.domain.signals import Signal, SignalKind
from vskill_platform.domain.skills.skill import PublishedSkill, VersionRef, VersionStatus
from vskill_platform.store.skills.skills import place_of
from vskill_platform.store.stored_content import read_content
from vskill_platform.store.verdicts.scans import get_scan, scan_once
from vskill_platform.worker_context import require_env

#: Places that a signal lists.
MOST_DETAILS = 20


async def capability_signals(identity: Identity, digest: str, report: StaticReport) -> tuple[Signal, ...]:
    """The signal of this content at its place, if it has one."""
    classes = require_env("settings").settings.review_new_capabilities
    card = report.capabilities or ()
    if not needing_review(card, classes):
        return ()
    _, _, skill, _ = await place_of(identity)
    live = newest_live(skill)
    if live is None or live.digest == digest:
        return ()
    before = await live_card(live.digest)
    if before is None:
        reason = f"it cannot be compared with version {live.number}, whose files are missing or damaged"
        return (Signal(SignalKind.NEW_CAPABILITY, reason),)
    gained = needing_review(new_capabilities(before, card), classes)
    if not gained:
        return ()
    details = tuple(f"{one.kind.value} {one.value} at {one.place}" for one in gained[:MOST_DETAILS])
    return (Signal(SignalKind.NEW_CAPABILITY, describe_gains(gained, live.number), details),)


def newest_live(skill: PublishedSkill | None) -> VersionRef | None:
    """The version that an update is compared with."""
    versions = () if skill is None else skill.versions
    return next((ref for ref in reversed(versions) if ref.status is VersionStatus.LIVE), None)


async def live_card(digest: str) -> tuple[SkillCapability, ...] | None:
    """The card of a stored content by the rules of today; None where its files are gone or damaged."""
    env = require_env("scanner")
    known = await get_scan(digest, env.scanner.ruleset)
    if known is not None and known.capabilities is not None:
        return known.capabilities
    try:
        files = await read_content(digest)
    except ContentDamaged:
        return None
    return (await scan_once(files, digest)).capabilities
