"""Bundles: skills of this registry as one signed file, for registries without a network."""

import asyncio
import hashlib
import io
from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, NoParameters, Wire
from vskill_client.wire.skills import LockedSkill, LockSkills, ReadRevocationList
from vskill_core.archives import tar_archive
from vskill_core.content import skill_file_of
from vskill_core.dsse import read_payload, seal
from vskill_core.errors import (
    Ambiguous,
    AttestationInvalid,
    Blocked,
    Conflict,
    InvalidInput,
    InvalidManifest,
    LimitExceeded,
    NotFound,
    NotPermitted,
    Withdrawn,
)
from vskill_core.findings import Severity
from vskill_core.identity import upstream_identity
from vskill_core.revocation_list import MAX_BYTES, RevocationDocument, RevokedStatus
from vskill_core.signing_keys import jwk, public_from_jwk, public_from_pem
from vskill_platform.actions.action import MOST_REASON, Reason, Services, action
from vskill_platform.actions.principal import Principal, Right, audiences_of, document_reader
from vskill_platform.actions.recall.blocklist import DEFAULT_SEVERITY
from vskill_platform.actions.recall.revocations import read_list
from vskill_platform.actions.skills.collections import read_collection
from vskill_platform.actions.skills.installs import lock, show_keys
from vskill_platform.actions.skills.skill_names import read_files
from vskill_platform.actions.skills.upstreams import UPSTREAM, UpstreamName
from vskill_platform.domain.blocklist import BlockEntry, digest_target
from vskill_platform.domain.people.namespace import PUBLIC, namespace_audiences
from vskill_platform.domain.skills.bundle import (
    END,
    MEDIA_TYPE,
    MOST_BYTES,
    PAYLOAD_TYPE,
    BundledSkill,
    BundleIndex,
    OpenBundle,
    pack_head,
    pack_skill,
)
from vskill_platform.domain.skills.upstream import (
    MOST_DESCRIPTION,
    Intake,
    Upstream,
    UpstreamKind,
    upstream_namespace,
)
from vskill_platform.stages.rescan import request_rescan
from vskill_platform.stages.upstreams import ask_for_sync
from vskill_platform.store.people.audit import AuditNote
from vskill_platform.store.people.namespaces import belonging_of
from vskill_platform.store.recall.blocklist import add_block, find_hits
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.store.skills.bundles import (
    BroughtSkill,
    KeptBundles,
    LatestBundle,
    read_brought_list,
    read_bundles,
)
from vskill_platform.store.skills.skills import iter_readable, read_skills
from vskill_platform.store.skills.upstreams import change_upstream, find_upstream
from vskill_platform.store.stored_content import keep_content
from vskill_platform.worker_context import require_env
from vskill_scan.reading.manifest import read_manifest

#: Bundles of different scopes that one upstream takes.
MOST_SCOPES = 20


class MakeBundle(LockSkills, frozen=True, kw_only=True):
    """Which skills: by name, or a whole collection; without either, the revocation list alone."""


async def make(services: Services, actor: Principal, request: MakeBundle) -> bytes:
    """Of what every account may read: the list of withdrawn versions names only that."""
    if services.signing is None:
        raise NotFound("This process has no key to sign with.")
    if actor.namespace is not None:
        message = "This token is bound to a namespace, whose revocation list is not the whole one."
        raise NotPermitted(message, fix="use a token that is not bound to one")
    reader = await document_reader(actor)
    revocations = await read_list(services, actor, ReadRevocationList())
    document = msgspec.json.decode(read_payload(revocations, MAX_BYTES), type=RevocationDocument)
    serial, scope = document.issued_ms, "revocations"
    locked: tuple[LockedSkill, ...] = ()
    if request.skills or request.collection is not None:
        locked = (await lock(services, reader, request)).skills
        scope = "skills" if request.collection is None else f"collection {request.collection}"
        serial = max(serial, await _changed_at(services, reader, request.collection, locked))
    attestations = [msgspec.json.encode(one.attestation) for one in locked]
    skills = tuple(
        BundledSkill(one.skill, one.version, one.digest, hashlib.sha256(attestation).hexdigest())
        for one, attestation in zip(locked, attestations, strict=True)
    )
    keys = sorted((await show_keys(NoParameters())).keys, key=lambda one: one["kid"])
    index = BundleIndex(
        1,
        services.settings.registry_name,
        scope,
        serial,
        tuple({name: one[name] for name in ("kty", "crv", "kid", "x")} for one in keys),
        hashlib.sha256(revocations).hexdigest(),
        skills,
    )
    envelope = seal(msgspec.json.encode(index), await services.signing.current(), PAYLOAD_TYPE)
    return await _packed(pack_head(envelope, revocations), zip(skills, attestations, strict=True))


async def _packed(head: bytes, skills: Iterable[tuple[BundledSkill, bytes]]) -> bytes:
    """The whole file; LimitExceeded where one request could not carry it."""
    made = bytearray(head)
    for number, (one, attestation) in enumerate(skills):
        archive = await asyncio.to_thread(tar_archive, await read_files(one.digest))
        made += pack_skill(number, attestation, archive)
        if len(made) + len(END) > MOST_BYTES:
            message = f"The bundle is larger than {MOST_BYTES} bytes at {one.skill}."
            fix = "make several bundles of fewer skills"
            raise LimitExceeded(message, limit="bytes", allowed=MOST_BYTES, fix=fix)
    return bytes(made + END)


async def _changed_at(
    services: Services, reader: Principal, collection: str | None, skills: tuple[LockedSkill, ...]
) -> int:
    """When the newest of these versions was published, and when the collection last changed: with the revocation list
    this makes a serial that follows from the content and rises with every change of a collection's bundle."""
    found = await read_skills([one.skill for one in skills], audiences=audiences_of(reader))
    published = {
        (name, ref.number): ref.published_at for name, skill in found.items() for ref in skill.versions
    }
    moments = [published.get((one.skill, one.version), 0) for one in skills]
    if collection is not None:
        moments.append((await read_collection(services, reader, collection)).updated_at)
    return max(moments, default=0)


MAKE_BUNDLE = action(
    make,
    "bundle.make",
    "/api/v1/bundle",
    method="GET",
    right=Right.ADMIN,
    errors=(Ambiguous, Blocked, LimitExceeded, NotFound, Withdrawn),
    media=MEDIA_TYPE,
    summary="Make a bundle of skills: one signed file, for registries without a network",
    about="It holds their archives and attestations, the registry's public keys and its revocation list, at most 32 "
    "MiB in all, of what every account of this registry may read. Without skills it holds the list alone.",
)


# Adding one on the other side.


class AddBundle(ActionRequest, frozen=True, kw_only=True):
    """A bundle, and the upstream that it is for."""

    #: the upstream's short name; the first bundle makes it
    name: UpstreamName
    #: the file
    bundle: Annotated[bytes, msgspec.Meta(max_length=MOST_BYTES)]
    #: a public key of its registry that you trust, as PEM; otherwise those of the first bundle are trusted from then
    #: on, and what it withdraws is blocked in this upstream alone
    key: Annotated[str, msgspec.Meta(max_length=1_000)] = ""
    #: why; kept in the audit
    reason: Reason


class BundleAdded(Wire, frozen=True):
    """What a bundle brought."""

    upstream: str
    registry: str
    #: the key that signed it
    key_id: str
    #: nothing vouched for the key yet: compare it with the registry's
    first_use: bool
    scope: str
    serial: int
    #: full names in the other registry; each is verified here before it is served
    skills: tuple[str, ...]
    #: contents that are blocked here from now on, because they were withdrawn there: everywhere once one of the
    #: registry's keys was given, otherwise in this upstream alone
    withdrawn: tuple[str, ...]


async def add(actor: Principal, request: AddBundle) -> BundleAdded:
    kept = await read_bundles(request.name)
    _upstream_of(request.name, "", actor, await find_upstream(request.name))
    given = (public_from_pem(request.key.encode()),) if request.key else ()
    pinned = tuple(map(public_from_jwk, kept.keys)) if kept else ()
    is_vouched = kept is not None and kept.is_vouched
    # Keys that nobody vouched for do not stand beside one that somebody gives.
    trusted = given if given and not is_vouched else (*given, *pinned)
    opened = await asyncio.to_thread(OpenBundle, io.BytesIO(request.bundle), trusted)
    _merge(kept, opened, (), request.name)
    skills = await _keep_skills(opened)
    await require_env("blobs").blobs.put(opened.index.revocations, opened.revocations)

    def merge(now: KeptBundles | None) -> KeptBundles:
        if (now.keys if now else ()) != (kept.keys if kept else ()):
            raise Conflict(f"Another bundle came to {request.name} meanwhile; add this one again.")
        merged = _merge(now, opened, skills, request.name)
        return msgspec.structs.replace(merged, is_vouched=is_vouched or opened.key in given)

    # Before the record remembers the list: after a crash, the same file does it again.
    withdrawn, index = await _block_withdrawn(actor, request.name, merge(kept)), opened.index
    facts = {"registry": index.registry, "scope": index.scope, "key": opened.key.key_id}
    details = {**facts, "serial": str(index.serial), "skills": str(len(skills))}
    begun = await change_upstream(
        AuditNote("bundle added", request.name, actor.actor, request.reason, details),
        lambda known: _upstream_of(request.name, index.registry, actor, known),
        merge,
    )
    await ask_for_sync(begun)
    return BundleAdded.of(
        index,
        upstream=request.name,
        key_id=opened.key.key_id,
        first_use=not trusted,
        skills=tuple(one.skill for one in skills),
        withdrawn=withdrawn,
    )


def _upstream_of(name: str, registry: str, actor: Principal, known: Upstream | None) -> Upstream:
    """The upstream of the bundles, which the first one makes."""
    if known is not None and known.kind is not UpstreamKind.BUNDLE:
        fix = "give the bundle's upstream another name"
        raise Conflict(f"The upstream {name} is of the kind {known.kind.value}; {fix}.", fix=fix)
    if known is not None and known.paused:
        raise Conflict(f"{name} is paused; resume it first.", upstream=name)
    return known or Upstream(
        name=name,
        kind=UpstreamKind.BUNDLE,
        address=f"bundles of {registry}",
        intake=Intake.ALL,
        by=actor.actor,
        created_at=require_env("kv").kv.now(),
    )


def _merge(
    kept: KeptBundles | None, opened: OpenBundle, skills: Sequence[BroughtSkill], name: str
) -> KeptBundles:
    """The record with what the bundle brings; raises where it is another registry's, or older."""
    index, serial = opened.index, opened.document.serial
    kept = kept or KeptBundles(index.registry)
    if kept.registry != index.registry:
        fix = "add it under another name"
        message = (
            f"The bundle is of the registry {index.registry!r}, and {name} takes those of {kept.registry!r}"
        )
        raise InvalidInput(f"{message}; {fix}.", field="bundle", fix=fix)
    known = tuple({key.x: jwk(key) for key in opened.keys}.values())
    seen = kept.latest[index.scope].serial if index.scope in kept.latest else 0
    if index.serial < seen or (index.scope == "revocations" and serial < kept.list_serial):
        fix = f"make a new one there; if that registry was restored from a backup, remove the upstream {name} first"
        message = f"The bundle is older than one of the same scope ({index.scope}) that {name} has: {fix}."
        raise InvalidInput(message, field="bundle", fix=fix, serial=index.serial, seen=seen)
    latest = kept.latest | {index.scope: LatestBundle(index.serial, tuple(skills))}
    if len(latest) > MOST_SCOPES:
        fix = "add it under another name"
        raise InvalidInput(f"{name} has {MOST_SCOPES} bundles; {fix}.", field="bundle", fix=fix)
    if serial < kept.list_serial:
        return msgspec.structs.replace(kept, keys=known, latest=latest)
    return KeptBundles(kept.registry, known, latest, serial, index.revocations)


async def _keep_skills(opened: OpenBundle) -> list[BroughtSkill]:
    """Store the skills one by one, each after it was verified."""
    skills, kept = opened.skills(), []
    while (one := await asyncio.to_thread(next, skills, None)) is not None:
        entry = one.entry
        await keep_content(entry.digest, one.files)
        await require_env("blobs").blobs.put(entry.attestation, one.attestation)
        try:
            text = read_manifest(skill_file_of(one.files).data, entry.skill.rpartition("/")[2]).description
        except InvalidManifest:
            text = ""
        facts = msgspec.structs.asdict(entry)
        kept.append(BroughtSkill(**facts, description=text[:MOST_DESCRIPTION], key_id=one.key_id))
    return kept


async def _block_withdrawn(actor: Principal, name: str, merged: KeptBundles) -> tuple[str, ...]:
    """Block the contents from this upstream that were blocked or taken down there: what is queued ends, and live
    versions are taken down. Wherever they are here if an admin vouched for the other registry, otherwise what this
    upstream brought. What an owner gave up there stays, and is named as withdrawn."""
    under = upstream_namespace(name)
    readers = namespace_audiences(under) | {PUBLIC}
    here = {one.digest for one in merged.skills()}
    async for skill in iter_readable(f"{under}/", audiences=readers):
        here |= {ref.digest for ref in skill.versions}
    bad, now = (RevokedStatus.BLOCKED, RevokedStatus.TAKEN_DOWN), require_env("kv").kv.now()
    audience = (await belonging_of(upstream_identity(name, "any", "any"))).audience
    severities = {level.value: level for level in Severity}
    blocked: list[str] = []
    for one in (await read_brought_list(merged)).entries:
        target = digest_target(one.digest if merged.is_vouched else f"{one.digest}@{name}")
        if one.status not in bad or one.digest not in here or await find_hits((target,)):
            continue
        severity = severities.get(one.severity or "", DEFAULT_SEVERITY)
        reason = f"withdrawn by {merged.registry}: {one.reason}"[:MOST_REASON]
        await add_block(BlockEntry(target, severity, reason, actor.actor, now, now, audience=audience))
        blocked.append(one.digest)
    if blocked:
        await reapply_blocklist(judge_again=request_rescan)
    return tuple(blocked)


ADD_BUNDLE = UPSTREAM(
    add,
    "bundle",
    "Add a bundle of another registry: its skills are verified here, and what it withdrew is blocked",
    name="bundle.add",
    errors=(AttestationInvalid, Conflict, LimitExceeded),
    body_field="bundle",
    body_media=MEDIA_TYPE,
    most_body=MOST_BYTES,
    about="At most 32 MiB. The first bundle makes the upstream. Skills that the bundle's list withdraws do not come.",
)
