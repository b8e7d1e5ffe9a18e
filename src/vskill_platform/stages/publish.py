"""Publishing: the one commit that makes a skill live. It writes the skill, its version with the signed attestation,
its names and the submission's PUBLISHED together, asserts that the blocklist and the namespace are those that were
looked at, or writes nothing."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import msgspec

from vskill_core.content import FileEntry, SkillFile, manifest_of, skill_file_of
from vskill_core.errors import InvalidManifest, SourceGone
from vskill_core.findings import StaticReport
from vskill_core.kind import Kind, has_manifest, is_made_here, kind_of
from vskill_core.naming import slug_of
from vskill_core.signing_keys import SigningKey
from vskill_platform.domain import keys
from vskill_platform.domain.blocklist import BlockTarget
from vskill_platform.domain.client_hashes import content_hash, tree_hash
from vskill_platform.domain.downloads import ArchiveDigests, Artifact, archive_digests, artifact_of
from vskill_platform.domain.evidence import Evidence
from vskill_platform.domain.recall.block_index import all_targets
from vskill_platform.domain.skills.listing import About, about
from vskill_platform.domain.skills.numbering import version_note
from vskill_platform.domain.skills.skill import Certification, PublishedSkill, SkillVersion, VersionStatus
from vskill_platform.domain.skills.skill_changes import Publication, publish_version
from vskill_platform.domain.skills.trust import TrustFacts
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission, is_approved
from vskill_platform.ledger.kv.entries import Assert, Operation
from vskill_platform.signing.from_records import make_statement
from vskill_platform.store.claims import HeldClaim, Passed
from vskill_platform.store.people.namespaces import belonging_of
from vskill_platform.store.recall.attestations import attestation_writes
from vskill_platform.store.recall.blocklist import require_unblocked
from vskill_platform.store.skills import skills
from vskill_platform.store.skills.bundles import find_origin, origin_writes
from vskill_platform.store.skills.names import claim_writes
from vskill_platform.store.skills.quotas import count_publication
from vskill_platform.store.stored_content import INLINE_BYTES, read_content
from vskill_platform.store.verdicts.scans import get_scan, scan_once
from vskill_platform.store.verdicts.stored_facts import AskedPolicy
from vskill_platform.worker_context import require_env
from vskill_scan.plugins.completed import complete, spoken_words
from vskill_scan.plugins.parts import read_plugin
from vskill_scan.reading.manifest import Manifest, admit_skill

T = TypeVar("T")


class TakenDown(Exception):
    """A reviewer took this content down, so passing the checks again does not restore it."""


class Content(msgspec.Struct, frozen=True):
    """The bytes that were scanned."""

    digest: str
    files: tuple[SkillFile, ...]
    #: The files by path, mode, size and hash, which the digest is taken of.
    entries: tuple[FileEntry, ...]
    manifest: Manifest
    kind: Kind = Kind.SKILL
    #: The blocklist at which no entry hit it, if this attempt has looked already.
    unblocked: Assert | None = None
    #: What the scan of this attempt said about it.
    report: StaticReport | None = None
    #: What it has in common with others, if this attempt has looked already.
    marks: skills.ContentMarks | None = None


class _Measured(msgspec.Struct, frozen=True):
    """What is taken of all bytes of a content: once, before the commit is tried."""

    content_hash: str
    tree_hash: str
    part_words: str
    archives: ArchiveDigests
    artifact: Artifact


class _Seal(msgspec.Struct, frozen=True):
    """What an attestation needs beside the records and the bytes."""

    key: SigningKey
    report: StaticReport


class VerifiedContent(msgspec.Struct, frozen=True):
    """The content that this attempt scanned, and the approval to write with the publication."""

    content: Content
    approved: Passed
    asked: AskedPolicy


async def publish(claim: HeldClaim, verified: VerifiedContent | None = None) -> None:
    """Publish the bytes that were verified just now, or the stored ones of a submission that was approved before.
    Raises Blocked, LowerVersion, PolicyChanged, QuotaExceeded, TakenDown or ClaimLost, and then nothing is live."""
    content = verified.content if verified is not None else await read_stored(claim.record)
    measured, seal = await _measure(content.files), await _make_seal(content)
    marks = content.marks or await _find_marks(content, seal)
    unblocked = content.unblocked

    async def together(record: Submission) -> tuple[tuple[Operation, ...], dict[str, object]]:
        nonlocal unblocked
        # An earlier look serves once: where the commit fails, the blocklist may be what has changed.
        asserted, unblocked = unblocked, None
        operations, changes = await _publication(record, content, measured, seal, marks, asserted)
        if verified is not None:
            # What was approved before was counted when it was decided, and no policy decides about it.
            operations = (*operations, *await verified.asked.writes(record))
        return operations, changes

    approved = verified.approved if verified is not None else None
    await claim.end(State.PUBLISHED, "published", together, approved)


async def require_publishable(record: Submission) -> tuple[PublishedSkill, PublishedSkill | None]:
    """The skill as publishing the stored bytes now would leave it, and as it is. Raises what publishing would fail
    with: Blocked, LowerVersion or SourceGone."""
    content = await read_stored(record)
    await require_unblocked(_targets(record, content))
    _, canonical, skill, _ = await skills.place_of(record.identity)
    _require_kind(record, skill, content)
    facts = _facts(record, content, canonical, await _measure(content.files))
    return publish_version(skill, facts)[0], skill


def _targets(record: Submission, content: Content) -> tuple[BlockTarget, ...]:
    names = (record.skill_name, content.manifest.name)
    return all_targets(record.identity, names, content.digest)


async def read_stored(record: Submission) -> Content:
    """The content that the record names, as it was stored."""
    if record.digest is None:
        raise SourceGone("no content was stored for this submission", submission=record.id)
    files = await read_content(record.digest)
    entries = await _in_thread_where_long(manifest_of, files)
    kind = await find_kind(record, files)
    return Content(record.digest, files, entries, admit_skill(files, slug_of(record.identity)), kind)


async def find_kind(record: Submission, files: tuple[SkillFile, ...]) -> Kind:
    """What these files are published as: as a maintainer said, as the place was before, or by the files."""
    if record.kind is not None:
        return record.kind
    if not has_manifest(files):
        return Kind.SKILL
    skill = (await skills.place_of(record.identity)).skill
    return kind_of(files) if skill is None else skill.kind


async def complete_files(
    record: Submission, files: tuple[SkillFile, ...]
) -> tuple[tuple[SkillFile, ...], Kind]:
    """The files as they are published, and as what."""
    kind = await find_kind(record, files)
    if kind is Kind.SKILL:
        return files, kind
    return await asyncio.to_thread(complete, files, slug_of(record.identity), kind), kind


def _require_kind(record: Submission, skill: PublishedSkill | None, content: Content) -> None:
    """Raise InvalidManifest if a place would be published as something else than before, and nobody said so."""
    if skill is not None and content.kind is not skill.kind and record.kind is not content.kind:
        fix = f"make it a {skill.kind} again, or let a maintainer submit it with --kind {content.kind}"
        message = f"It is published as a {skill.kind}, and these files are a {content.kind}; {fix}."
        raise InvalidManifest(message, field="kind", fix=fix)


async def _measure(files: tuple[SkillFile, ...]) -> _Measured:
    return await _in_thread_where_long(_measure_now, files)


async def _in_thread_where_long(
    work: Callable[[tuple[SkillFile, ...]], T], files: tuple[SkillFile, ...]
) -> T:
    if sum(len(file.data) for file in files) <= INLINE_BYTES:
        return work(files)
    return await asyncio.to_thread(work, files)


def _measure_now(files: tuple[SkillFile, ...]) -> _Measured:
    archives = archive_digests(files)
    return _Measured(
        content_hash=content_hash(skill_file_of(files).data),
        tree_hash=tree_hash(files),
        part_words=spoken_words(plugin) if (plugin := read_plugin(files)) else "",
        archives=archives,
        artifact=artifact_of(files, archives),
    )


async def _make_seal(content: Content) -> _Seal | None:
    signing = require_env("signing").signing
    if signing is None:
        return None
    report = content.report or await scan_once(content.files, content.digest)
    return _Seal(await signing.current(), report)


async def _find_marks(content: Content, seal: _Seal | None) -> skills.ContentMarks:
    """Of content that was approved before. Where no report of today's rules is kept, its hosts are not counted."""
    report = seal.report if seal else await get_scan(content.digest, require_env("scanner").scanner.ruleset)
    return skills.marks_of(content.files, report.capabilities if report else None)


async def _publication(
    record: Submission,
    content: Content,
    measured: _Measured,
    seal: _Seal | None,
    marks: skills.ContentMarks,
    asserted: Assert | None,
) -> tuple[tuple[Operation, ...], dict[str, object]]:
    """The writes of a publication; they assert the blocklist version that was checked."""
    if asserted is None:
        asserted = await require_unblocked(_targets(record, content))
    _, canonical, skill, version = await skills.place_of(record.identity)
    _refuse_taken_down(skill, record, content.digest)
    _require_kind(record, skill, content)
    published, added = publish_version(skill, _facts(record, content, canonical, measured, marks.without))
    belonging = await belonging_of(record.identity, published.narrowed)
    audience = belonging.audience
    published, claims = await claim_writes(
        msgspec.structs.replace(published, audience=audience), belonging.namespace
    )
    has_new_readers = added is None and skill is not None and skill.audience != audience
    operations: tuple[Operation, ...] = (
        asserted,
        belonging.asserted,
        *await skills.skill_writes(skill, published, version, added),
        *claims,
        *await count_publication(belonging.namespace, audience, skill, added),
        *await skills.sketch_writes(published, content.digest, marks),
        *(skills.alias_writes(published) if has_new_readers else ()),
        *await _sealed_writes(seal, record, published, content, measured),
    )
    changes: dict[str, object] = {
        "published": keys.skill(canonical),
        "published_version": published.current_version,
        "audience": audience,
        "version_note": version_note(added.notice) if added is not None and content.manifest.version else "",
    }
    return operations, changes


async def _sealed_writes(
    seal: _Seal | None, record: Submission, published: PublishedSkill, content: Content, measured: _Measured
) -> tuple[Operation, ...]:
    """What stores the attestation of the current version; nothing where nothing is signed."""
    if seal is None:
        return ()
    registry = require_env("settings").settings.registry_name
    current = next(ref for ref in published.versions if ref.number == published.current_version)
    made = tuple(one.path for one in content.files if content.kind is Kind.PLUGIN and is_made_here(one))
    statement = make_statement(
        registry, published.canonical, current, record, measured.archives, seal.report, content.entries, made
    )
    origin = await find_origin(record.identity, current.digest)
    about = msgspec.structs.replace(statement.predicate, origin=origin)
    statement = msgspec.structs.replace(statement, predicate=about)
    return (*await attestation_writes(statement, seal.key), *origin_writes(statement))


def _refuse_taken_down(skill: PublishedSkill | None, record: Submission, digest: str) -> None:
    """Raise TakenDown if a reviewer took this content down and none has approved it since."""
    versions = skill.versions if skill is not None else ()
    latest = next((ref for ref in reversed(versions) if ref.digest == digest), None)
    if latest is None or latest.status is not VersionStatus.TAKEN_DOWN or latest.by == "system":
        return
    if not is_approved(record, digest):
        raise TakenDown(f"version {latest.number} was taken down by {latest.by}: {latest.reason}")


def _facts(
    record: Submission, content: Content, canonical: str, measured: _Measured, without: str | None = None
) -> Publication:
    env = require_env("kv")
    decision, evidence = record.decision, _evidence_of(record, content.digest)
    certification = decision.certification if decision else None
    version = SkillVersion(
        canonical=canonical,
        number="",
        digest=content.digest,
        content_hash=measured.content_hash,
        tree_hash=measured.tree_hash,
        manifest=content.entries,
        published_at=env.kv.now(),
        certification=Certification(certification) if certification else Certification.SCANNED,
        score=(decision.score if decision else None) or 0,
        commit=record.commit,
        submission=record.id,
        name=content.manifest.name,
        description=content.manifest.description,
    )
    return Publication(
        version,
        record.identity,
        by=f"worker:{env.worker_id}",
        repo_url=record.repo_url,
        front_matter_version=content.manifest.version,
        about=_about(content.manifest),
        trust=_trust(record, content.digest),
        ruleset=evidence.ruleset if evidence else "",
        artifact=measured.artifact,
        without=without,
        team_approved=is_approved(record, content.digest, team=True),
        publisher=record.publisher,
        kind=content.kind,
        part_words=measured.part_words if content.kind is Kind.PLUGIN else "",
    )


def _about(manifest: Manifest) -> About:
    return about(
        name=manifest.name,
        description=manifest.description,
        licence=manifest.license,
        compatibility=manifest.compatibility,
        metadata=manifest.metadata,
    )


def _evidence_of(record: Submission, digest: str) -> Evidence | None:
    return record.evidence if record.evidence and record.evidence.digest == digest else None


def _trust(record: Submission, digest: str) -> TrustFacts:
    """What both tiers said about these very bytes; the skill's standing is kept by a job."""
    evidence = _evidence_of(record, digest)
    judge = evidence.judge if evidence else None
    reviewed = is_approved(record, digest)
    return TrustFacts(
        static=evidence.verdict if evidence else None,
        judge_score=judge.score if judge else None,
        judge_verdict=judge.verdict if judge else None,
        reviewed=reviewed or (evidence is not None and evidence.trusted_vendor),
    )
