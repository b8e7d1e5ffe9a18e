"""The only functions that change a published skill: publishing, rescans, blocks, owners and reviewers all go through
them; stores only write what they return. One function, `publish_version`, creates versions.
"""

from collections.abc import Callable, Iterable

import msgspec

from vskill_core.content import digest_of
from vskill_core.errors import (
    IdentityMismatch,
    InvalidInput,
    NotFound,
    NotPermitted,
    VersionStatusError,
)
from vskill_core.findings import Severity
from vskill_core.identity import Identity
from vskill_core.kind import Kind
from vskill_core.publisher import Publisher
from vskill_platform.domain.canonical_names import alias_names
from vskill_platform.domain.downloads import Artifact
from vskill_platform.domain.people.namespace import Visibility, namespace_in
from vskill_platform.domain.skills.listing import About, listing
from vskill_platform.domain.skills.numbering import next_version, parse_semver
from vskill_platform.domain.skills.skill import (
    Certification,
    OpenReview,
    PublishedSkill,
    SkillVersion,
    StatusRole,
    VersionRef,
    VersionStatus,
    taken_down_by_block,
)
from vskill_platform.domain.skills.trust import TrustFacts
from vskill_platform.domain.skills.upstream import upstream_in


class Publication(msgspec.Struct, frozen=True):
    """What is to be published, all of it known before the one commit."""

    #: As it will be written, but for its number, `declared` and notice: those follow from the versions before it.
    version: SkillVersion
    identity: Identity
    #: the actor, as in the submission's history
    by: str
    artifact: Artifact
    repo_url: str = ""
    front_matter_version: str | None = None
    about: About = About()
    trust: TrustFacts = TrustFacts()
    #: the rules that judged it
    ruleset: str = ""
    #: what its capability card is without
    without: str | None = None
    #: a maintainer of its namespace approved it, and no reviewer
    team_approved: bool = False
    #: the CI job that submitted it
    publisher: Publisher | None = None
    kind: Kind = Kind.SKILL
    part_words: str = ""


class StatusChange(msgspec.Struct, frozen=True):
    """Who changes a version's status, in which role, when and why."""

    role: StatusRole
    by: str
    at: int
    reason: str
    #: of a take-down, where it is known
    threat_type: str = ""
    severity: Severity | None = None


# Publishing.


def publish_version(
    skill: PublishedSkill | None, publication: Publication
) -> tuple[PublishedSkill, SkillVersion | None]:
    """The skill's next record, and the version to write beside it unless one with these bytes is there
    already.

    Afterwards the published content is the current one. The current version's digest again changes no
    version. A taken-down version that becomes current by being brought back is brought back; any other
    return to older content is a new version of the same bytes. What only its own people approved is for
    the team alone.
    """
    _check_publication(skill, publication)
    skill = _describe(skill or _new_skill(publication), publication)
    skill = _brought_back(skill, publication)
    version = publication.version
    if skill.current_digest == version.digest:
        facts, is_team = (version.certification, version.score), publication.team_approved
        same = recertify(skill, version.digest, *facts, version.published_at, keeps_review=is_team)
        same = _published_by(same, version.digest, publication.publisher)
        return _keep_to_team(same, publication), None
    number, notice = number_after(skill.versions, publication.front_matter_version)
    own = parse_semver(publication.front_matter_version or "")
    version = msgspec.structs.replace(
        version, number=number, declared=str(own) if own else None, notice=notice
    )
    added = _derive_current(skill, (*skill.versions, _ref(version, publication)), version.published_at)
    return _keep_to_team(added, publication), version


def _keep_to_team(skill: PublishedSkill, publication: Publication) -> PublishedSkill:
    """What only its own people approved is for the team, whatever its namespace becomes."""
    if not publication.team_approved:
        return skill
    versions = tuple(
        msgspec.structs.replace(ref, team_approved=True) if ref.number == skill.current_version else ref
        for ref in skill.versions
    )
    return msgspec.structs.replace(skill, versions=versions, narrowed=Visibility.TEAM)


def agree(skill: PublishedSkill, by: str, at: int) -> PublishedSkill:
    """A reviewer agrees with every version that only its own people approved."""
    for digest in {ref.digest for ref in skill.versions if ref.team_approved}:
        skill = keep_live(skill, digest, by, at)
    versions = (msgspec.structs.replace(ref, team_approved=False) for ref in skill.versions)
    return msgspec.structs.replace(skill, versions=tuple(versions))


def recertify(
    skill: PublishedSkill,
    digest: str,
    certification: Certification,
    score: int,
    at: int,
    *,
    keeps_review: bool = False,
) -> PublishedSkill:
    """The same content judged again, the same or better: its certification changes in place, and a review of it is
    over, unless only its own people said so."""

    def judged(ref: VersionRef) -> VersionRef:
        review = ref.review if keeps_review else None
        return msgspec.structs.replace(ref, certification=certification, score=score, review=review)

    return _change_content(skill, digest, at, judged)


def _published_by(skill: PublishedSkill, digest: str, publisher: Publisher | None) -> PublishedSkill:
    """The same skill with the CI job that submitted these bytes now; one that did before stays, whoever submits
    them."""
    if publisher is None:
        return skill
    versions = tuple(
        msgspec.structs.replace(ref, publisher=publisher) if ref.digest == digest else ref
        for ref in skill.versions
    )
    return msgspec.structs.replace(skill, versions=versions)


def put_under_review(skill: PublishedSkill, digest: str, review: OpenReview, at: int) -> PublishedSkill:
    """The same content judged again, and doubtful: it stays as it is until a reviewer decides."""
    known = next((ref.review for ref in skill.versions if ref.digest == digest and ref.review), None)
    if known is not None:
        review = msgspec.structs.replace(review, since=known.since)
    return _change_content(skill, digest, at, lambda ref: msgspec.structs.replace(ref, review=review))


def keep_live(skill: PublishedSkill, digest: str, by: str, at: int) -> PublishedSkill:
    """A reviewer looked at the content that is under review, and it stays."""

    def kept(ref: VersionRef) -> VersionRef:
        return msgspec.structs.replace(ref, review=None, kept_by=by, certification=Certification.CERTIFIED)

    return _change_content(skill, digest, at, kept)


def _change_content(
    skill: PublishedSkill, digest: str, at: int, change: Callable[[VersionRef], VersionRef]
) -> PublishedSkill:
    """Change every version of these bytes that was not taken down."""
    versions = tuple(
        change(ref) if ref.digest == digest and ref.status is not VersionStatus.TAKEN_DOWN else ref
        for ref in skill.versions
    )
    return skill if versions == skill.versions else _derive_current(skill, versions, at)


def _check_publication(skill: PublishedSkill | None, publication: Publication) -> None:
    if digest_of(publication.version.manifest) != publication.version.digest:
        raise InvalidInput(
            "The digest does not match the manifest.",
            field="digest",
            fix="publish the bytes that were scanned",
        )
    if skill is None:
        return
    if (skill.canonical, skill.identity.key) != (publication.version.canonical, publication.identity.key):
        message = f"{skill.canonical} belongs to {skill.identity.key}, not to {publication.identity.key}."
        raise IdentityMismatch(message, canonical=skill.canonical, owner=skill.identity.key)


def _new_skill(publication: Publication) -> PublishedSkill:
    return PublishedSkill(
        canonical=publication.version.canonical,
        identity=publication.identity,
        owner=publication.identity.owner,
        repo=publication.identity.repo,
        slug=publication.version.canonical.rpartition("/")[2],
        created_at=publication.version.published_at,
    )


def _describe(skill: PublishedSkill, publication: Publication) -> PublishedSkill:
    origin = upstream_in(namespace_in(skill.canonical))
    own = alias_names(skill.slug, publication.version.name) if origin is None else (f"{skill.slug}-{origin}",)
    aliases = {*skill.aliases, *own}
    judged = publication.trust
    return msgspec.structs.replace(
        skill,
        description=publication.version.description,
        repo_url=publication.repo_url,
        aliases=tuple(sorted(aliases)),
        submission=publication.version.submission,
        about=publication.about,
        kind=publication.kind,
        part_words=publication.part_words,
        # What both tiers say about the new content, with the skill's own standing.
        trust=msgspec.structs.replace(
            skill.trust,
            static=judged.static,
            judge_score=judged.judge_score,
            judge_verdict=judged.judge_verdict,
            reviewed=judged.reviewed,
        ),
    )


def with_trust(skill: PublishedSkill, trust: TrustFacts) -> PublishedSkill:
    return _derive_listing(msgspec.structs.replace(skill, trust=trust))


def with_installs(skill: PublishedSkill, installs: int) -> PublishedSkill:
    return with_trust(skill, msgspec.structs.replace(skill.trust, installs=installs))


def with_lacks(skill: PublishedSkill, digest: str, without: str | None) -> PublishedSkill:
    versions = tuple(
        msgspec.structs.replace(ref, without=without) if ref.digest == digest else ref
        for ref in skill.versions
    )
    return _derive_listing(msgspec.structs.replace(skill, versions=versions))


def _brought_back(skill: PublishedSkill, publication: Publication) -> PublishedSkill:
    """The latest version of these bytes, if it was taken down, as it was before that."""
    latest = next((ref for ref in reversed(skill.versions) if ref.digest == publication.version.digest), None)
    if latest is None or latest.status is not VersionStatus.TAKEN_DOWN:
        return skill
    at = publication.version.published_at
    change = StatusChange(StatusRole.SYSTEM, publication.by, at, "published again after passing all checks")
    versions = tuple(_restore(ref, change) if ref is latest else ref for ref in skill.versions)
    return _derive_current(skill, versions, at)


def number_after(versions: tuple[VersionRef, ...], front_matter_version: str | None) -> tuple[str, str]:
    """The number that a version with this front matter gets after these, and why it is not the front matter's; or
    LowerVersion."""
    declared = next((ref.declared for ref in reversed(versions) if ref.declared), None)
    return next_version([ref.number for ref in versions], front_matter_version, declared)


def _ref(version: SkillVersion, publication: Publication) -> VersionRef:
    return VersionRef(
        number=version.number,
        digest=version.digest,
        published_at=version.published_at,
        certification=version.certification,
        score=version.score,
        content_hash=version.content_hash,
        declared=version.declared,
        by=publication.by,
        reason="published",
        ruleset=publication.ruleset,
        name=version.name,
        artifact=publication.artifact,
        without=publication.without,
        publisher=publication.publisher,
    )


# Changes of a version's status. Without `number` and `digest` they apply to every version.


def yank(skill: PublishedSkill, change: StatusChange, *, number: str | None = None) -> PublishedSkill:
    """The owner withdraws a version, or all that are live."""
    return _change_version(skill, change, {StatusRole.OWNER}, _yank, number=number)


def delete(skill: PublishedSkill, change: StatusChange) -> PublishedSkill:
    """The owner gives the skill up: every version is withdrawn. One that was taken down stays so, and is withdrawn by
    its owner where somebody restores it."""
    return _change_version(skill, change, {StatusRole.OWNER}, _delete)


def unyank(skill: PublishedSkill, change: StatusChange, *, number: str) -> PublishedSkill:
    """The owner brings a version back that the owner had withdrawn."""
    return _change_version(skill, change, {StatusRole.OWNER}, _unyank, number=number)


def take_down(
    skill: PublishedSkill, change: StatusChange, *, number: str | None = None, digest: str | None = None
) -> PublishedSkill:
    """A rescan, a block or an admin takes versions down; the newest one left is current, or none. What rescans
    and blocks took down stays in the skill's standing, whether or not it comes back."""
    allowed = {StatusRole.SYSTEM, StatusRole.BLOCK, StatusRole.REVIEWER}
    if change.role in (StatusRole.SYSTEM, StatusRole.BLOCK) and not skill.trust.ever_blocked:
        skill = with_trust(skill, msgspec.structs.replace(skill.trust, ever_blocked=True))
    return _change_version(skill, change, allowed, _taken_down, number=number, digest=digest)


def unblock(skill: PublishedSkill, change: StatusChange, *, digest: str) -> PublishedSkill:
    """No entry of the blocklist hits these bytes any more: what such an entry took down comes back."""

    def lift(ref: VersionRef, change: StatusChange) -> VersionRef:
        return _restore(ref, change) if taken_down_by_block(ref) else ref

    return _change_version(skill, change, {StatusRole.BLOCK}, lift, digest=digest)


def restore(
    skill: PublishedSkill, change: StatusChange, *, number: str | None = None, digest: str | None = None
) -> PublishedSkill:
    """A reviewer, and nobody else, brings taken-down versions back."""
    return _change_version(skill, change, {StatusRole.REVIEWER}, _restore, number=number, digest=digest)


def _change_version(
    skill: PublishedSkill,
    change: StatusChange,
    allowed: set[StatusRole],
    step: Callable[[VersionRef, StatusChange], VersionRef],
    *,
    number: str | None = None,
    digest: str | None = None,
) -> PublishedSkill:
    if change.role not in allowed:
        raise NotPermitted(f"In the role {change.role.value!r} nobody may do that.", role=change.role.value)
    if not change.reason.strip():
        raise InvalidInput("The reason is empty.", field="reason", fix="say why")
    chosen = {
        ref.number for ref in skill.versions if number in (None, ref.number) and digest in (None, ref.digest)
    }
    if not chosen and (number, digest) != (None, None):
        raise NotFound(f"{skill.canonical} has no such version.", canonical=skill.canonical)
    versions = tuple(
        _step(ref, change, step, strict=number is not None) if ref.number in chosen else ref
        for ref in skill.versions
    )
    return skill if versions == skill.versions else _derive_current(skill, versions, change.at)


def _step(
    ref: VersionRef,
    change: StatusChange,
    step: Callable[[VersionRef, StatusChange], VersionRef],
    *,
    strict: bool,
) -> VersionRef:
    """One version named on purpose must be able to change; among many, those that cannot stay as they are."""
    try:
        return step(ref, change)
    except VersionStatusError:
        if strict:
            raise
        return ref


def _yank(ref: VersionRef, change: StatusChange) -> VersionRef:
    _require(ref, VersionStatus.LIVE)
    return _with_status(ref, VersionStatus.YANKED, change, owner_yanked=True)


def _delete(ref: VersionRef, change: StatusChange) -> VersionRef:
    if ref.status is VersionStatus.TAKEN_DOWN:
        return msgspec.structs.replace(ref, owner_yanked=True, deleted=True)
    if ref.deleted:
        return ref
    return msgspec.structs.replace(
        _with_status(ref, VersionStatus.YANKED, change, owner_yanked=True), deleted=True
    )


def _unyank(ref: VersionRef, change: StatusChange) -> VersionRef:
    _require(ref, VersionStatus.YANKED)
    return _with_status(ref, VersionStatus.LIVE, change, owner_yanked=False)


def _taken_down(ref: VersionRef, change: StatusChange) -> VersionRef:
    """Once more is no error: blocks are applied again and again until nothing changes. A reviewer's word replaces that
    of a block, so that lifting the block does not bring the version back."""
    outlasts_block = change.role is StatusRole.REVIEWER and taken_down_by_block(ref)
    if ref.status is VersionStatus.TAKEN_DOWN and not outlasts_block:
        return ref
    return _with_status(ref, VersionStatus.TAKEN_DOWN, change, owner_yanked=ref.owner_yanked)


def _restore(ref: VersionRef, change: StatusChange) -> VersionRef:
    _require(ref, VersionStatus.TAKEN_DOWN)
    status = VersionStatus.YANKED if ref.owner_yanked else VersionStatus.LIVE
    return _with_status(ref, status, change, owner_yanked=ref.owner_yanked)


def _require(ref: VersionRef, status: VersionStatus) -> None:
    if ref.status is not status:
        message = f"Version {ref.number} is {ref.status.value}, not {status.value}."
        raise VersionStatusError(message, number=ref.number, status=ref.status.value)


def _with_status(
    ref: VersionRef, status: VersionStatus, change: StatusChange, *, owner_yanked: bool
) -> VersionRef:
    return msgspec.structs.replace(
        ref,
        status=status,
        by=change.by,
        reason=change.reason,
        status_at=change.at,
        owner_yanked=owner_yanked,
        deleted=ref.deleted and owner_yanked,
        taken_down_by=change.role if status is VersionStatus.TAKEN_DOWN else None,
        threat_type=change.threat_type if status is VersionStatus.TAKEN_DOWN else "",
        severity=change.severity if status is VersionStatus.TAKEN_DOWN else None,
        # Nothing is left to review of what was taken down; what was yanked may come back with its doubt.
        review=None if status is VersionStatus.TAKEN_DOWN else ref.review,
    )


def _derive_current(skill: PublishedSkill, versions: Iterable[VersionRef], at: int) -> PublishedSkill:
    """The record with these versions; everything that says which one is current is derived here."""
    versions = tuple(versions)
    current = next((ref for ref in reversed(versions) if ref.status is VersionStatus.LIVE), None)
    settled = msgspec.structs.replace(
        skill,
        name=current.name if current else skill.name,
        versions=versions,
        current_version=current.number if current else None,
        current_digest=current.digest if current else None,
        content_hash=current.content_hash if current else None,
        current_artifact=current.artifact if current else None,
        certification=current.certification if current else None,
        score=current.score if current else 0,
        withdrawn=current is None,
        # Two changes at one moment have two numbers in lists.
        updated_at=max(skill.updated_at + 1, at),
    )
    return _derive_listing(settled)


def _derive_listing(skill: PublishedSkill) -> PublishedSkill:
    current = next((ref for ref in skill.versions if ref.number == skill.current_version), None)
    if current is None:
        return msgspec.structs.replace(skill, listing=None)
    shown = listing(
        skill.about,
        skill.trust,
        updated_at=current.published_at,
        created_at=skill.created_at,
        without=current.without,
    )
    return msgspec.structs.replace(skill, listing=shown)
