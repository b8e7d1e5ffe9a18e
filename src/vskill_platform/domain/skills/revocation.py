"""Revocations: the published versions that a registry no longer hands out, and what one commit changed about them.

Both follow from the skill's record. A list of revoked versions is derived from records and never stored; the record of
a change (`Revocation`) is written in the same commit as the skill, under a serial that only grows, so a list and the
events that it was derived from always belong together.
"""

import enum

import msgspec

from vskill_core.findings import Severity
from vskill_core.revocation_list import RevokedStatus
from vskill_platform.domain.skills.skill import PublishedSkill, VersionRef, VersionStatus, taken_down_by_block


class RevocationKind(enum.StrEnum):
    """What happened to a version, as webhooks and streams name it."""

    #: blocked, taken down or deleted
    WITHDRAWN = "skill.withdrawn"
    RESTORED = "skill.restored"
    YANKED = "skill.yanked"


class Replacement(msgspec.Struct, frozen=True):
    """What to install instead."""

    version: str
    digest: str


class RevokedVersion(msgspec.Struct, frozen=True):
    """A published version that was withdrawn."""

    #: canonical name
    skill: str
    version: str
    digest: str
    content_hash: str
    status: RevokedStatus
    reason: str
    since: int
    #: empty where nobody said
    threat_type: str
    severity: Severity | None
    #: the skill's current version; None where no version is live
    replacement: Replacement | None


class RevocationStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one version."""

    version: str
    digest: str
    content_hash: str
    reason: str
    #: None: it is live again
    status: RevokedStatus | None = None
    threat_type: str = ""
    severity: Severity | None = None


class Revocation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `revocation:{serial}`: what one commit changed about a list of revoked versions. Who may read it is
    not in it: whoever may read the skill at that moment."""

    #: counts hidden ones too, so nobody but the registry sees it
    serial: int
    #: never before that of the event before it; the number by which readers know it
    at: int
    #: canonical name; empty: who may read a whole namespace has changed, so lists hold other skills
    skill: str = ""
    #: empty where only the replacement or the readers of the skill's revoked versions have changed
    steps: tuple[RevocationStep, ...] = ()


class RevokedList(msgspec.Struct, frozen=True):
    """Every revoked version that some readers may read."""

    #: how many events it was derived from; never shown, since hidden ones count
    followed: int
    #: by canonical name; skills without any are left out
    skills: dict[str, tuple[RevokedVersion, ...]]
    #: of its versions, so that two lists are compared by it
    digest: str
    #: what its readers see: it rises by one with each change of the list
    serial: int = 0
    #: since when the list is as it is
    at: int = 0

    @property
    def versions(self) -> tuple[RevokedVersion, ...]:
        """By digest, then by skill and version."""
        every = (one for own in self.skills.values() for one in own)
        return tuple(sorted(every, key=lambda one: (one.digest, one.skill, one.version)))


def status_of(ref: VersionRef) -> RevokedStatus | None:
    """How a version was withdrawn; None where it is live."""
    match ref.status:
        case VersionStatus.LIVE:
            return None
        case VersionStatus.YANKED:
            return RevokedStatus.DELETED if ref.deleted else RevokedStatus.YANKED
        case _:
            return RevokedStatus.BLOCKED if taken_down_by_block(ref) else RevokedStatus.TAKEN_DOWN


def revoked_versions(skill: PublishedSkill) -> tuple[RevokedVersion, ...]:
    """The versions of a skill that were withdrawn, oldest first."""
    current = next((ref for ref in skill.versions if ref.number == skill.current_version), None)
    instead = None if current is None else Replacement(current.number, current.digest)
    return tuple(
        RevokedVersion(
            skill=skill.canonical,
            version=ref.number,
            digest=ref.digest,
            content_hash=ref.content_hash,
            status=status,
            reason=ref.reason,
            since=ref.status_at,
            threat_type=ref.threat_type,
            severity=ref.severity,
            replacement=instead,
        )
        for ref in skill.versions
        if (status := status_of(ref)) is not None
    )


def revocation_steps(before: PublishedSkill, after: PublishedSkill) -> tuple[RevocationStep, ...] | None:
    """What a change of a skill's record means for lists of revoked versions; None where they stay as they are."""
    old, new = revoked_versions(before), revoked_versions(after)
    if old == new and (before.audience == after.audience or not new):
        return None
    known = {ref.number: ref for ref in before.versions}
    return tuple(
        RevocationStep(
            ref.number, ref.digest, ref.content_hash, ref.reason, status, ref.threat_type, ref.severity
        )
        for ref in after.versions
        if ref.number in known and (status := status_of(ref)) is not status_of(known[ref.number])
    )


def revokes_content(one: RevokedVersion) -> bool:
    """Whether the bytes themselves were found to be bad: an owner withdraws a number, and the same bytes may be live
    under another one."""
    live_again = one.replacement is not None and one.replacement.digest == one.digest
    return one.status in (RevokedStatus.BLOCKED, RevokedStatus.TAKEN_DOWN) and not live_again


def steps_by_kind(event: Revocation) -> dict[RevocationKind, tuple[RevocationStep, ...]]:
    """The steps of one commit by what they mean to others."""
    found: dict[RevocationKind, tuple[RevocationStep, ...]] = {}
    for step in event.steps:
        match step.status:
            case None:
                kind = RevocationKind.RESTORED
            case RevokedStatus.YANKED:
                kind = RevocationKind.YANKED
            case _:
                kind = RevocationKind.WITHDRAWN
        found[kind] = (*found.get(kind, ()), step)
    return found
