"""What bundles brought to an upstream, at `bundles:{name}`: whose they are, which is the latest of each scope, and
which list of withdrawn versions is the newest. Stored files, attestations and the list are named by digest."""

import hashlib
from collections.abc import Iterator

import msgspec

from vskill_core.dsse import read_payload
from vskill_core.errors import BlobUnavailable
from vskill_core.identity import UPSTREAM_HOST, Identity
from vskill_core.revocation_list import MAX_BYTES, RevocationDocument, read_revocation_list
from vskill_core.statement import AttestedOrigin, Statement
from vskill_platform.domain import keys
from vskill_platform.domain.skills.bundle import BundledSkill
from vskill_platform.ledger.kv.entries import Operation, Put
from vskill_platform.records import read_record
from vskill_platform.worker_context import require_env


class BroughtSkill(BundledSkill, frozen=True):
    """A skill of a bundle whose files are stored."""

    description: str = ""
    #: of the key that signed its attestation
    key_id: str = ""


class LatestBundle(msgspec.Struct, frozen=True):
    """The latest bundle of a scope."""

    serial: int
    skills: tuple[BroughtSkill, ...]


class KeptBundles(msgspec.Struct, frozen=True):
    """The record at `bundles:{name}`."""

    #: the registry's name
    registry: str
    #: its public keys, as JSON Web Keys: pinned at the first bundle
    keys: tuple[dict[str, str], ...] = ()
    latest: dict[str, LatestBundle] = {}
    #: of the newest revocation list
    list_serial: int = 0
    #: SHA-256 of its envelope
    revocations: str = ""
    #: an admin gave one of its keys; otherwise its first bundle alone vouches for them
    is_vouched: bool = False

    def skills(self) -> Iterator[BroughtSkill]:
        """Each skill once, as the latest bundle has it."""
        found: dict[str, BroughtSkill] = {}
        for one in sorted(self.latest.values(), key=lambda one: one.serial):
            found |= {skill.skill: skill for skill in one.skills}
        return iter(found.values())


async def read_bundles(name: str) -> KeptBundles | None:
    return (await read_record(keys.bundles(name), KeptBundles))[0]


async def read_brought_list(kept: KeptBundles) -> RevocationDocument:
    """The newest revocation list. It was verified when it came, and its digest tells that it is the same."""
    data = await require_env("blobs").blobs.get(kept.revocations) or b""
    if hashlib.sha256(data).hexdigest() != kept.revocations:
        raise BlobUnavailable("The revocation list of a bundle is missing or damaged; add a newer one.")
    return read_revocation_list(read_payload(data, MAX_BYTES))


async def find_origin(identity: Identity, digest: str) -> AttestedOrigin | None:
    """What another registry signed about a content that came to this place."""
    if identity.host != UPSTREAM_HOST:
        return None
    return (await read_record(keys.brought(identity.owner, digest), AttestedOrigin))[0]


def origin_writes(statement: Statement) -> tuple[Operation, ...]:
    """The record that keeps the other registry's attestation beside ours, whatever later bundles bring."""
    about = statement.predicate
    if about.origin is None:
        return ()
    return (Put(keys.origin(about.skill, about.version), msgspec.json.encode(about.origin)),)
