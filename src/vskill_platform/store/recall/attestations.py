"""Attestations: the signed statement about each version, and the public keys that signed any of them.

Publishing writes both in its own commit. Keeping the key beside what it signed lets every web process serve the keys of
all workers, even those of a machine that is gone.
"""

import msgspec

from vskill_core.dsse import seal
from vskill_core.errors import Blocked, NotFound, RecordMalformed
from vskill_core.signing_keys import PublicKey, SigningKey, jwk, public_from_jwk
from vskill_core.statement import Statement, encode_statement
from vskill_platform.domain import keys
from vskill_platform.domain.skills.skill import PublishedSkill, VersionRef, VersionStatus
from vskill_platform.ledger.kv.entries import Operation, Put
from vskill_platform.records import decode, iter_entries
from vskill_platform.store.recall.blocklist import why_version_blocked
from vskill_platform.worker_context import require_env


class StoredSigner(msgspec.Struct, frozen=True):
    """The record at `signer:{key id}`."""

    jwk: dict[str, str]


class PublishedKey(msgspec.Struct, frozen=True):
    """A public key of the registry; what retired ones signed stays valid."""

    key: PublicKey
    active: bool

    @property
    def jwk(self) -> dict[str, str]:
        return jwk(self.key, status="active" if self.active else "retired")


async def attestation_writes(statement: Statement, key: SigningKey) -> tuple[Operation, ...]:
    """The operations that store the signed statement, and the key if it has signed nothing here before.

    A version that is published again has been verified again, so the newer statement replaces the older one.
    """
    about = statement.predicate
    envelope = seal(encode_statement(statement), key)
    put = Put(keys.attestation(about.skill, about.version), envelope)
    return (put, *await _signer_writes(key.public))


async def remember_signer(key: PublicKey) -> None:
    """Keep a key that has signed something beside the records, so that every process publishes it."""
    operations = await _signer_writes(key)
    if operations:
        await require_env("kv").kv.commit(operations)


async def _signer_writes(key: PublicKey) -> tuple[Operation, ...]:
    signer = keys.signer(key.key_id)
    if await require_env("kv").kv.get(signer) is not None:
        return ()
    return (Put(signer, msgspec.json.encode(StoredSigner(jwk(key)))),)


async def get_attestation(skill: PublishedSkill, number: str) -> bytes:
    """The envelope as it was signed. Blocked or taken-down versions have none any more."""
    canonical = skill.canonical
    ref = await _live_version(skill, number)
    entry = await require_env("kv").kv.get(keys.attestation(canonical, ref.number))
    if entry is None:
        raise NotFound(f"{canonical} {number} has no attestation.", skill=canonical, version=number)
    return entry.value


async def public_keys() -> tuple[PublishedKey, ...]:
    """This process's keys, the one that signs first, and all others that have signed something in this store."""
    env = require_env("signing")
    own = await env.signing.public_keys() if env.signing is not None else ()
    every = dict.fromkeys((*own, *await _stored_signers()))
    return tuple(PublishedKey(key, active=key in own[:1]) for key in every)


async def _live_version(skill: PublishedSkill, number: str) -> VersionRef:
    canonical = skill.canonical
    ref = next((ref for ref in skill.versions if ref.number == number), None)
    if ref is None:
        raise NotFound(f"{canonical} has no version {number}.", skill=canonical, version=number)
    if ref.status is VersionStatus.TAKEN_DOWN:
        raise Blocked(f"{canonical} {number} was taken down: {ref.reason}", skill=canonical, version=number)
    reason = await why_version_blocked(skill, ref)
    if reason is not None:
        raise Blocked(reason, skill=canonical, version=number)
    return ref


async def _stored_signers() -> list[PublicKey]:
    signers: list[PublicKey] = []
    async for entry in iter_entries(keys.signer.prefix):
        key = public_from_jwk(dict(decode(entry, StoredSigner).jwk))
        if entry.key != keys.signer(key.key_id):
            raise RecordMalformed(f"{entry.key} holds another key", key=entry.key)
        signers.append(key)
    return signers
