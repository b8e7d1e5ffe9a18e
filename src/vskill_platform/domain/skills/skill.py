"""A published skill: its names and its versions; `skill_changes` has the only functions that change them.

The skill's record lists every version with its status, so a status changes in one record, while the `SkillVersion`
beside it is written once and never again.
"""

import enum

import msgspec

from vskill_core.content import FileEntry
from vskill_core.findings import Severity
from vskill_core.identity import Identity
from vskill_core.kind import Kind
from vskill_core.publisher import Publisher
from vskill_core.revocation_list import RevokedStatus
from vskill_platform.domain.downloads import Artifact
from vskill_platform.domain.evidence import Evidence
from vskill_platform.domain.people.namespace import PUBLIC, Visibility
from vskill_platform.domain.skills.listing import About, Listing
from vskill_platform.domain.skills.numbering import listed_number
from vskill_platform.domain.skills.trust import TrustFacts


class Certification(enum.StrEnum):
    """How thoroughly a version was checked, lowest first."""

    SCANNED = "SCANNED"
    VERIFIED = "VERIFIED"
    CERTIFIED = "CERTIFIED"

    @property
    def rank(self) -> int:
        return tuple(Certification).index(self)

    def mark(self, score: int) -> int:
        """The score of our rules as clients are told it: at most 50 where nobody has read the instructions."""
        return score // 2 if self is Certification.SCANNED else score


class VersionStatus(enum.StrEnum):
    """Whether a version can be installed."""

    LIVE = "live"
    #: by its owner, who may bring it back
    YANKED = "yanked"
    #: by rescan, block or admin; only a reviewer may bring it back
    TAKEN_DOWN = "taken_down"


class StatusRole(enum.StrEnum):
    """In which role somebody changes a version's status; an admin acts as a reviewer."""

    OWNER = "owner"
    REVIEWER = "reviewer"
    #: an entry of the blocklist
    BLOCK = "block"
    #: a rescan
    SYSTEM = "system"


class OpenReview(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a live version waits for a reviewer: a rescan has doubts about it, and nothing that takes it down."""

    reason: str
    #: when the first rescan doubted it
    since: int
    rule_ids: tuple[str, ...] = ()
    #: what both tiers reported then
    evidence: Evidence | None = None


class VersionRef(msgspec.Struct, frozen=True, omit_defaults=True):
    """A version as the skill's record lists it: the part that may change."""

    number: str
    digest: str
    published_at: int
    artifact: Artifact
    #: as its front matter names it: an entry of the blocklist about a name hits the versions that bear it
    name: str
    status: VersionStatus = VersionStatus.LIVE
    certification: Certification = Certification.SCANNED
    score: int = 0
    content_hash: str = ""
    #: the front matter's version, where it had a valid one
    declared: str | None = None
    #: who set the status last, why and when; the time is 0 where nobody has since it was published
    by: str = ""
    reason: str = ""
    status_at: int = 0
    #: yanked when it was taken down, so that bringing it back does not undo its owner's will
    owner_yanked: bool = False
    #: under review: it stays live until a reviewer decides
    review: OpenReview | None = None
    #: the reviewer who decided after a rescan that these bytes stay live
    kept_by: str = ""
    #: the rules that judged it for its publication
    ruleset: str = ""
    #: yanked because its owner gave the whole skill up
    deleted: bool = False
    #: what took it down; None where nothing did
    taken_down_by: StatusRole | None = None
    #: what it was taken down for, and how bad that is; unknown where nobody said
    threat_type: str = ""
    severity: Severity | None = None
    #: what its capability card is without (`listing.join_lacks`); None where it was not read whole
    without: str | None = None
    #: only a maintainer of its namespace approved it: the skill is for its team until a reviewer agrees
    team_approved: bool = False
    #: the CI job that submitted these bytes, the last one where several did
    publisher: Publisher | None = None


class SkillVersion(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `version:{canonical}:{number}`, written once."""

    canonical: str
    number: str
    digest: str
    content_hash: str
    tree_hash: str
    manifest: tuple[FileEntry, ...]
    published_at: int
    #: as it was when published; the skill's record has the present one
    certification: Certification = Certification.SCANNED
    score: int = 0
    commit: str | None = None
    declared: str | None = None
    #: why the number is not the front matter's
    notice: str = ""
    submission: str | None = None
    name: str = ""
    description: str = ""


class PublishedSkill(msgspec.Struct, frozen=True):
    """The record at `skill:{canonical}`."""

    #: `owner/repo/slug`, the key after `skill:`
    canonical: str
    #: the one place that may publish here
    identity: Identity
    #: for display, as written
    owner: str = ""
    repo: str = ""
    slug: str = ""
    name: str = ""
    description: str = ""
    repo_url: str = ""
    #: flat names under which it can be found; only ever grows
    aliases: tuple[str, ...] = ()
    #: the flat name that it has in lists, by the readers who know it so; read by `actions.skills.skill_names` alone
    listed_as: dict[str, str] = {}
    #: oldest first
    versions: tuple[VersionRef, ...] = ()
    #: the newest live version, if there is one, and its facts
    current_version: str | None = None
    current_digest: str | None = None
    content_hash: str | None = None
    current_artifact: Artifact | None = None
    certification: Certification | None = None
    score: int = 0
    #: no version is live; defaults are written too, so lists can filter by it
    withdrawn: bool = False
    submission: str | None = None
    created_at: int = 0
    updated_at: int = 0
    #: of the version that was published last
    about: About = About()
    trust: TrustFacts = TrustFacts()
    #: what lists show and filter by; None while no version is live
    listing: Listing | None = None
    #: whose readers may read it (`domain.audience`)
    audience: str = PUBLIC
    #: narrower than its namespace; None: as the namespace is
    narrowed: Visibility | None = None
    #: fixed with its first version; only a maintainer changes it
    kind: Kind = Kind.SKILL
    #: of a plugin, the names and descriptions of its skills, for searches alone
    part_words: str = ""

    @property
    def kept_to_team(self) -> bool:
        """Whether only its own people approved a version, withdrawn ones too: those may come back."""
        return any(ref.team_approved for ref in self.versions)


class PublishedSkillSummary(msgspec.Struct, frozen=True):
    """A published skill in a list. `slug` is the canonical name, the key after `skill:`."""

    slug: str
    name: str
    repo_url: str
    description: str = ""
    current_version: str | None = None
    certification: str | None = None
    updated_at: int = 0
    #: What the blocklist knows it by; None only where the record lacks it.
    identity: Identity | None = None
    current_digest: str | None = None
    current_artifact: Artifact | None = None
    #: What its front matter says about it.
    about: About = About()
    listed_as: dict[str, str] = {}
    listed_version: str | None = None

    @property
    def canonical(self) -> str:
        return self.slug


def certification_for(*, judged: bool, reviewed: bool, trusted_vendor: bool) -> Certification:
    """SCANNED by rules alone, VERIFIED by the judge too, CERTIFIED by a person or as a trusted vendor's."""
    if reviewed or trusted_vendor:
        return Certification.CERTIFIED
    return Certification.VERIFIED if judged else Certification.SCANNED


def newest_under_review(skill: PublishedSkill) -> VersionRef | None:
    live = (ref for ref in reversed(skill.versions) if ref.status is VersionStatus.LIVE)
    return next((ref for ref in live if ref.review is not None), None)


def is_under_review(skill: PublishedSkill) -> bool:
    """Whether the version that people install waits for a reviewer."""
    found = newest_under_review(skill)
    return found is not None and found.number == skill.current_version


def listed_version(skill: PublishedSkill) -> str:
    """The number that clients of lists compare: another one whenever what they should have changes, and a higher one.
    It is the current version's own number until the last version is withdrawn; an older version that is current then
    must not look older than what they have."""
    last = skill.versions[-1]
    return listed_number(
        last.number, skill.current_version, status_at=last.status_at, updated_at=skill.updated_at
    )


def taken_down_by_block(ref: VersionRef) -> bool:
    """Whether an entry of the blocklist took it down, and no rescan and no reviewer."""
    return ref.taken_down_by is StatusRole.BLOCK


# Revocations: the versions that a registry no longer hands out, and what one commit changed about them. Both follow
# from the skill's record. A list of revoked versions is derived from records and never stored; the record of a change
# (`Revocation`) is written in the same commit as the skill, under a serial that only grows, so a list and the events
# that it was derived from always belong together.


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
