"""Bundles: skills of this registry as one signed file, for registries without a network.

The index and the revocation list are made in one answer; attestations and archives are those that everybody downloads,
so a bundle of any size is written skill by skill.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import Any, Protocol

import msgspec

from vskill_client.wire.base import Ans, NoParameters, Req, Wire
from vskill_client.wire.skills import (
    AttestedVersion,
    DownloadVersion,
    LeftOut,
    LockSkills,
    ReadRevocationList,
)
from vskill_core.bundle import (
    END,
    PAYLOAD_TYPE,
    BundledSkill,
    BundleIndex,
    pack_head,
    pack_skill,
)
from vskill_core.dsse import read_payload, seal
from vskill_core.errors import Ambiguous, Blocked, NotFound, Withdrawn
from vskill_core.revocation_list import MAX_BYTES, RevocationDocument
from vskill_platform.actions.action import Action, Services, action
from vskill_platform.actions.principal import Principal, Right, audiences_of, document_reader
from vskill_platform.actions.recall.revocations import read_list
from vskill_platform.actions.skills.collections import read_collection
from vskill_platform.actions.skills.installs import ATTESTATION, DOWNLOAD, lock, show_keys
from vskill_platform.store.skills.skills import read_skills

BUNDLE = "/api/v1/bundle"


class MakeBundle(LockSkills, frozen=True, kw_only=True):
    """Which skills: by name, or a whole collection; without either, the revocation list alone."""


class BundleHead(Wire, frozen=True):
    """How a bundle begins; the attestation and the archive of each skill of its index follow."""

    #: the signed index
    index: dict[str, Any]
    #: the signed revocation list
    revocations: dict[str, Any]
    #: skills of the collection that cannot be installed now
    left_out: tuple[LeftOut, ...]

    @property
    def skills(self) -> tuple[BundledSkill, ...]:
        payload = read_payload(msgspec.json.encode(self.index))
        return msgspec.json.decode(payload, type=BundleIndex).skills


async def make(services: Services, actor: Principal, request: MakeBundle) -> BundleHead:
    """Of what every account may read: the list of withdrawn versions names only that."""
    if services.signing is None:
        raise NotFound("This process has no key to sign with.")
    reader = await document_reader(actor)
    revocations = await read_list(services, actor, ReadRevocationList())
    document = msgspec.json.decode(read_payload(revocations, MAX_BYTES), type=RevocationDocument)
    serial, scope = document.issued_ms, "revocations"
    skills: tuple[BundledSkill, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    if request.skills or request.collection is not None:
        locked = await lock(services, reader, request)
        left_out = locked.left_out
        skills = tuple(
            BundledSkill(one.skill, one.version, one.digest, _hash_of(one.attestation))
            for one in locked.skills
        )
        scope = "skills" if request.collection is None else f"collection {request.collection}"
        serial = max(serial, await _changed_at(services, reader, request.collection, skills))
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
    return BundleHead(msgspec.json.decode(envelope), msgspec.json.decode(revocations), left_out)


async def _changed_at(
    services: Services, reader: Principal, collection: str | None, skills: tuple[BundledSkill, ...]
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


def _hash_of(envelope: dict[str, Any]) -> str:
    """Of the envelope's bytes, as it is stored and sent."""
    return hashlib.sha256(msgspec.json.encode(envelope)).hexdigest()


MAKE_BUNDLE = action(
    make,
    "bundle.make",
    BUNDLE,
    method="GET",
    right=Right.ADMIN,
    errors=(Ambiguous, Blocked, NotFound, Withdrawn),
    summary="Make the signed index of a bundle of skills, with the revocation list",
    about="`bundle make` puts the attestation and the archive of each skill behind it; so does the page of "
    "collections. A bundle holds what every account of this registry may read.",
)


class Asks(Protocol):
    """Calls this registry."""

    async def __call__(self, call: Action[Req, Ans], request: Req, /) -> Ans: ...


async def write_bundle(ask: Asks, head: BundleHead) -> AsyncIterator[bytes]:
    """The whole file, member by member."""
    yield pack_head(msgspec.json.encode(head.index), msgspec.json.encode(head.revocations))
    for number, one in enumerate(head.skills):
        attestation = await ask(ATTESTATION, AttestedVersion(skill=one.skill, version=one.version))
        archive = await ask(DOWNLOAD, DownloadVersion(skill=one.skill, version=one.version, format="tar.gz"))
        yield await asyncio.to_thread(pack_skill, number, one, attestation, archive)
    yield END
