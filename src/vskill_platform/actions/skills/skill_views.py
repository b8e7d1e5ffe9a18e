"""Skills as clients see them: in lists, alone, and version by version. Pure: from records to what is encoded.

The names are those that the existing client reads; what it does not know it leaves alone.
"""

from collections.abc import Mapping

import msgspec

from vskill_client.wire.base import Wire, iso_time
from vskill_client.wire.skills import CapabilityView, SkillCard
from vskill_core.capability import SkillCapability, new_capabilities
from vskill_core.content import FileEntry
from vskill_core.findings import StaticReport
from vskill_core.publisher import Publisher
from vskill_platform.domain.blocklist import BlockEntry
from vskill_platform.domain.people.namespace import Audiences
from vskill_platform.domain.recall.block_index import Blocklist
from vskill_platform.domain.skills.listing import lacks_in
from vskill_platform.domain.skills.names import listed_form
from vskill_platform.domain.skills.skill import (
    PublishedSkill,
    SkillVersion,
    VersionRef,
    VersionStatus,
    is_under_review,
)
from vskill_platform.domain.skills.trust import Provenance, TrustTier, trust_reasons

#: Instead of a certification. Never null: the client `vskill` prints VERIFIED for null.
BLOCKED, WITHDRAWN = "BLOCKED", "WITHDRAWN"


class TrustPart(Wire, frozen=True):
    """One reason of the trust score."""

    points: int
    #: the most that this part can give
    most: int
    text: str


class SkillDetail(SkillCard, frozen=True, kw_only=True):
    """One skill."""

    #: what the trust score is made of; empty where nothing can be installed
    trust_reasons: tuple[TrustPart, ...]

    #: the folder of SKILL.md in the repository; empty at its root
    skill_path: str
    #: whoever submitted it has shown control of the repository
    provenance_verified: bool
    #: of SKILL.md, as clients compute it
    sha: str
    #: of all files, modes and paths
    digest: str | None
    #: the SKILL.md; empty where nothing can be installed
    content: str
    #: why it is blocked or withdrawn
    reason: str | None
    version_count: int
    submission_id: str | None
    #: its short name, in lists and addresses; null while it has none
    listed_as: str | None
    #: among whose names that is: `public`, `internal` (every account), or a namespace; null while it has none
    listed_in: str | None


class SkillAnswer(Wire, frozen=True):
    """One skill, wrapped as the existing client expects it."""

    skill: SkillDetail


class VersionView(Wire, frozen=True):
    """One version."""

    version: str
    #: BLOCKED where it was taken down or its content is blocked
    cert_tier: str
    cert_score: int
    created_at: str
    content_hash: str
    digest: str
    #: what changed since the version before
    diff_summary: str
    #: live, yanked or taken_down
    status: str
    is_current: bool
    #: it waits for a reviewer after a rescan, and can be installed meanwhile
    under_review: bool
    #: who set the status last, and why
    reason: str
    #: the CI job that submitted it; null where none did
    publisher: Publisher | None


class VersionsAnswer(Wire, frozen=True):
    """Every version, newest first."""

    name: str
    versions: tuple[VersionView, ...]


def card(skill: PublishedSkill, blocklist: Blocklist) -> SkillCard:
    owner, repo, slug = skill.canonical.split("/")
    shown = skill.listing
    hits = blocklist.hits_skill(skill)
    worst = hits[0] if hits else None
    is_blocked = worst is not None or was_taken_down(skill)
    return SkillCard(
        name=skill.canonical,
        display_name=skill.name,
        author=skill.owner,
        description=skill.description,
        repo_url=skill.repo_url,
        owner_slug=owner,
        repo_slug=repo,
        skill_slug=slug,
        current_version=skill.current_version,
        # What is blocked has passed nothing, from the moment that the entry is written.
        cert_tier=BLOCKED if is_blocked else (skill.certification or WITHDRAWN),
        cert_score=0 if worst or skill.certification is None else skill.certification.mark(skill.score),
        trust_tier=_tier(skill, worst),
        trust_score=shown.trust_score if shown and not worst else 0,
        vskill_installs=skill.trust.installs,
        github_stars=None,
        is_blocked=is_blocked,
        is_tainted=blocklist.taint(skill.identity, skill.audience) is not None,
        threat_type=worst.threat_type if worst else None,
        severity=worst.severity.value if worst else None,
        is_withdrawn=shown is None,
        under_review=is_under_review(skill),
        category=shown.category if shown else None,
        licence=shown.licence if shown else None,
        agent=shown.agent if shown else None,
        without=lacks_in(shown.without if shown else None),
        created_at=iso_time(skill.created_at),
        updated_at=iso_time(skill.updated_at),
        kind=skill.kind,
    )


def detail(skill: PublishedSkill, blocklist: Blocklist, content: str, audiences: Audiences) -> SkillDetail:
    hits = blocklist.hits_skill(skill)
    form = listed_form(skill.listed_as, audiences)
    reasons = () if hits or skill.listing is None else trust_reasons(skill.trust)
    return SkillDetail(
        **msgspec.structs.asdict(card(skill, blocklist)),
        trust_reasons=tuple(TrustPart.of(one) for one in reasons),
        skill_path=skill.identity.path,
        provenance_verified=skill.trust.provenance is Provenance.VERIFIED,
        sha=skill.content_hash or "",
        digest=skill.current_digest,
        content=content,
        reason=why_gone(skill, hits[0] if hits else None),
        version_count=len(skill.versions),
        submission_id=skill.submission,
        listed_as=None if form is None else skill.listed_as[form],
        listed_in=None if form is None else form.removeprefix("ns:"),
    )


def was_taken_down(skill: PublishedSkill) -> bool:
    """Nothing is live, and the latest version was not withdrawn by its owner."""
    latest = skill.versions[-1] if skill.versions else None
    return skill.listing is None and latest is not None and latest.status is VersionStatus.TAKEN_DOWN


def why_gone(skill: PublishedSkill, worst: BlockEntry | None) -> str | None:
    """Why it cannot be installed; None where it can."""
    if worst is not None:
        return worst.reason
    latest = skill.versions[-1] if skill.versions else None
    return latest.reason if skill.listing is None and latest is not None else None


def _tier(skill: PublishedSkill, worst: BlockEntry | None) -> str | None:
    if worst is not None:
        return TrustTier.T0.value
    return skill.listing.trust_tier.value if skill.listing else None


def version_views(
    skill: PublishedSkill, records: Mapping[str, SkillVersion], blocklist: Blocklist
) -> tuple[VersionView, ...]:
    """Newest first; `records` are the immutable ones, by number."""
    found = []
    before: SkillVersion | None = None
    for ref in skill.versions:
        record = records.get(ref.number)
        blocked = bool(blocklist.hits(skill.identity, (skill.name,), ref.digest))
        found.append(_version(skill, ref, diff_summary(before, record), blocked=blocked))
        before = record or before
    return tuple(reversed(found))


def _version(skill: PublishedSkill, ref: VersionRef, summary: str, *, blocked: bool) -> VersionView:
    withheld = blocked or ref.status is VersionStatus.TAKEN_DOWN
    return VersionView.of(
        ref,
        version=ref.number,
        cert_tier=BLOCKED if withheld else ref.certification,
        cert_score=0 if withheld else ref.certification.mark(ref.score),
        created_at=iso_time(ref.published_at),
        diff_summary=summary,
        is_current=ref.number == skill.current_version,
        under_review=ref.review is not None,
    )


def diff_summary(before: SkillVersion | None, after: SkillVersion | None) -> str:
    """In words, by the two manifests; empty where one cannot be read."""
    if after is None:
        return ""
    if before is None:
        return "first version"
    return summary_of(before.manifest, after.manifest)


def summary_of(before: tuple[FileEntry, ...], after: tuple[FileEntry, ...]) -> str:
    old = {entry.path: (entry.sha256, entry.mode) for entry in before}
    new = {entry.path: (entry.sha256, entry.mode) for entry in after}
    counts = {
        "changed": sum(path in new and new[path] != facts for path, facts in old.items()),
        "added": len(new.keys() - old.keys()),
        "removed": len(old.keys() - new.keys()),
    }
    said = [f"{count} {'file' if count == 1 else 'files'} {what}" for what, count in counts.items() if count]
    return ", ".join(said) or "no files changed"


# Capability cards. A report from before there were cards has none, which is not an empty one.


class CapabilityChanges(Wire, frozen=True):
    """What the card of one version has and the other's has not."""

    added: tuple[CapabilityView, ...]
    removed: tuple[CapabilityView, ...]
    #: both cards were made by the same rules; otherwise a difference may come from the rules
    same_rules: bool


def card_view(report: StaticReport | None) -> tuple[CapabilityView, ...] | None:
    if report is None or report.capabilities is None:
        return None
    return tuple(CapabilityView.of(one) for one in report.capabilities)


class CardDifference(msgspec.Struct, frozen=True):
    """Two cards, compared."""

    added: tuple[SkillCapability, ...]
    removed: tuple[SkillCapability, ...]
    same_rules: bool


def compare_cards(before: StaticReport | None, after: StaticReport | None) -> CardDifference | None:
    if before is None or after is None or before.capabilities is None or after.capabilities is None:
        return None
    return CardDifference(
        new_capabilities(before.capabilities, after.capabilities),
        new_capabilities(after.capabilities, before.capabilities),
        before.ruleset == after.ruleset,
    )


def changes_view(found: CardDifference | None) -> CapabilityChanges | None:
    return None if found is None else CapabilityChanges.of(found)
