"""What a version can do and the live one cannot: the gains that rules of the policy ask about, and the signal of those
that are doubtful.

The registry knows what is live, a scan of files does not. Both cards are made by the rules of today, so that a change
of the rules never looks like a change of the skill. A first publication has nothing to be compared with.
"""

import msgspec

from vskill_core.capability import CapabilityKind, SkillCapability, new_capabilities
from vskill_core.errors import ContentDamaged
from vskill_core.findings import StaticReport
from vskill_platform.domain.signals import Signal, SignalKind
from vskill_platform.domain.skills.skill import PublishedSkill, VersionRef, VersionStatus
from vskill_platform.store.stored_content import read_content
from vskill_platform.store.verdicts.scans import get_scan, scan_once
from vskill_platform.worker_context import require_env

#: Places that a signal lists, and those that its sentence names before it counts the rest.
MOST_DETAILS, MOST_NAMED = 20, 3
#: What the signal is about, in words; the policy's rules can ask about all that was gained.
DOUBTFUL = {
    CapabilityKind.SECRET: "reads a secret",
    CapabilityKind.HOST: "runs shell commands that use a host",
    CapabilityKind.PERSISTENCE: "changes what outlives the session",
    CapabilityKind.PROGRAM: "starts a program",
    CapabilityKind.SERVER: "talks to a server",
    CapabilityKind.HOOK: "runs something by itself",
}


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
    doubtful = [one for one in gains.gained if _is_doubtful(one)]
    if not doubtful:
        return ()
    if not gains.is_compared:
        reason = f"it cannot be compared with version {gains.since}, whose files are missing or damaged"
        return (Signal(SignalKind.NEW_CAPABILITY, reason),)
    details = tuple(f"{one.kind.value} {one.value} at {one.place}" for one in doubtful[:MOST_DETAILS])
    parts = [
        f"{words} ({_named(those)})"
        for kind, words in DOUBTFUL.items()
        if (those := [one for one in doubtful if one.kind is kind])
    ]
    sentence = f"unlike version {gains.since}, it {', and '.join(parts)}"
    return (Signal(SignalKind.NEW_CAPABILITY, sentence, details),)


def _is_doubtful(one: SkillCapability) -> bool:
    """A host counts where a shell command uses it; what is only linked to never does."""
    return one.acts and one.kind in DOUBTFUL and (one.shell or one.kind is not CapabilityKind.HOST)


def _named(found: list[SkillCapability]) -> str:
    said = [f"{one.value} at {one.place}" for one in found[:MOST_NAMED]]
    if len(found) > MOST_NAMED:
        said.append(f"{len(found) - MOST_NAMED} more")
    return ", ".join(said)


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
