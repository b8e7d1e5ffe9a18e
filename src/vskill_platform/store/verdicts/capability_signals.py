"""What a version can do and the live one cannot: the gains that rules of the policy ask about, and the signal of those
that are doubtful.

The registry knows what is live, a scan of files does not. Both cards are made by the rules of today, so that a change
of the rules never looks like a change of the skill. A first publication has nothing to be compared with.
"""

import msgspec

from vskill_core.capability import (
    CapabilityClass,
    SkillCapability,
    describe_gains,
    needing_review,
    new_capabilities,
)
from vskill_core.errors import ContentDamaged
from vskill_core.findings import StaticReport
from vskill_platform.domain.signals import Signal, SignalKind
from vskill_platform.domain.skills.skill import PublishedSkill, VersionRef, VersionStatus
from vskill_platform.store.stored_content import read_content
from vskill_platform.store.verdicts.scans import get_scan, scan_once
from vskill_platform.worker_context import require_env

#: Places that a signal lists.
MOST_DETAILS = 20
#: What the signal is about; the policy's rules can ask about all that was gained.
DOUBTFUL = (CapabilityClass.SECRET, CapabilityClass.SHELL_HOST, CapabilityClass.PERSISTENCE)


class Gains(msgspec.Struct, frozen=True):
    """What a version can do and the live one cannot."""

    gained: tuple[SkillCapability, ...] = ()
    #: The live version that it was compared with.
    since: str = ""
    #: Where the live version's files are missing or damaged, all that it can do counts as gained.
    is_compared: bool = True


async def find_gains(skill: PublishedSkill | None, digest: str, report: StaticReport) -> Gains:
    """Of this content at the place of the skill; nothing for a first publication."""
    live, card = newest_live(skill), report.capabilities or ()
    if live is None or live.digest == digest or not card:
        return Gains()
    before = await live_card(live.digest)
    if before is None:
        return Gains(card, live.number, is_compared=False)
    return Gains(new_capabilities(before, card), live.number)


def capability_signals(gains: Gains) -> tuple[Signal, ...]:
    """The signal of what was gained, if it has one."""
    doubtful = needing_review(gains.gained, DOUBTFUL)
    if not doubtful:
        return ()
    if not gains.is_compared:
        reason = f"it cannot be compared with version {gains.since}, whose files are missing or damaged"
        return (Signal(SignalKind.NEW_CAPABILITY, reason),)
    details = tuple(f"{one.kind.value} {one.value} at {one.place}" for one in doubtful[:MOST_DETAILS])
    return (Signal(SignalKind.NEW_CAPABILITY, describe_gains(doubtful, gains.since), details),)


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
