"""The files behind a digest: read whole or not at all, and kept before any record names them. All reads and writes of a
skill's files go through here, so damage is always noted, at `damage:{digest}`: what is wrong, since when, and which
records name the content. The note is removed, with an audit entry, when the content is whole again.

Facts about content are stored by digest alone, so a reader gets them only if they may read a skill or submission that
holds it.
"""

import asyncio
from collections.abc import Sequence

import msgspec

from vskill_core.content import SkillFile
from vskill_core.errors import ContentDamaged, PlatformError
from vskill_platform.domain import keys
from vskill_platform.domain.operation.damage import Damage, DamageKind, add_names, verified_files
from vskill_platform.domain.packed_content import pack
from vskill_platform.domain.people.namespace import EVERYTHING, Audiences
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.ledger.kv.collections import SKILLS, SUBMISSIONS
from vskill_platform.ledger.kv.entries import Delete, Entry, Operation, Put
from vskill_platform.ledger.kv.query import Is
from vskill_platform.records import (
    decode,
    decode_readable,
    entries_of,
    iter_entries,
    persist,
    read_record,
    readable,
)
from vskill_platform.store.people.audit import record_audit
from vskill_platform.store.tasks import ask_for
from vskill_platform.worker_context import require_env

#: The kind of the task that repairs one content.
REPAIR = "repair"


async def note_damage(found: ContentDamaged, named_by: tuple[str, ...]) -> None:
    """Write what was found, and ask for a repair if the damage, or a record that may lead to its source, is new."""
    env = require_env("kv")
    digest, kind = found.text("digest"), DamageKind(found.text("kind"))

    async def write() -> tuple[bool, bool]:
        known, version = await read_record(keys.damage(digest), Damage)
        seen = add_names(known or Damage(digest, kind, env.kv.now()), kind, named_by)
        if seen == known:
            return False, False
        await env.kv.commit([Put(keys.damage(digest), msgspec.json.encode(seen), version)])
        return known is None, True

    is_new, is_news = await persist(write)
    if is_new:
        env.metrics.content_damaged_found.labels(kind.value).inc()
        env.log.error("stored content is damaged", digest=digest, kind=kind.value, named_by=named_by)
    if is_news:
        await ask_for_repair(digest)


async def note_damage_in_passing(found: ContentDamaged) -> None:
    """The same for a reader, who gets the damage as an error even if it could not be noted."""
    try:
        await note_damage(found, await find_names(found.text("digest")))
    except PlatformError as error:
        require_env("log").log.warning("damage not noted", digest=found.text("digest"), error=str(error))


async def find_names(digest: str) -> tuple[str, ...]:
    """Records that name this content, as far as indexes can find them. The scrub finds the others."""
    skills, submissions = await find_holders(digest)
    versions = (
        keys.version(skill.canonical, ref.number)
        for skill in (decode(entry, PublishedSkill) for entry in skills)
        for ref in skill.versions
        if ref.digest == digest
    )
    return (*versions, *(entry.key for entry in submissions))


async def read_damage(digest: str) -> Damage | None:
    return (await read_record(keys.damage(digest), Damage))[0]


async def list_damage() -> tuple[Damage, ...]:
    """All of it, by digest. A read that fails raises."""
    return tuple(
        decode_readable([entry async for entry in iter_entries(keys.damage.prefix)], Damage, "list_damage")
    )


async def ask_for_repair(digest: str) -> None:
    await ask_for(REPAIR, digest, {"digest": digest})


def mending_writes(damage: Damage, how: str, version: int | None = None) -> tuple[Operation, ...]:
    """The operations for content that is whole again: remove the record, with an audit entry."""
    env = require_env("kv")
    env.metrics.content_mended.inc()
    env.log.info("content is whole again", digest=damage.digest, how=how)
    lasted_ms = str(max(env.kv.now() - damage.since, 0))
    details = {"kind": damage.kind.value, "lasted_ms": lasted_ms, "named_by": " ".join(damage.named_by)}
    audit = record_audit("content mended", damage.digest, by="system", reason=how, details=details)
    return Delete(keys.damage(damage.digest), version), *audit


async def forget_damage(digest: str, how: str) -> None:
    """The content is whole again; audited once, however many processes find that out."""
    kv = require_env("kv").kv

    async def write() -> None:
        damage, version = await read_record(keys.damage(digest), Damage)
        if damage is not None:
            await kv.commit(mending_writes(damage, how, version))

    await persist(write)


async def may_read_content(digest: str, audiences: Audiences) -> bool:
    """Whether a reader of these audiences may read a skill or a submission that holds this content now. Always two
    reads, so that timing reveals nothing."""
    skills, submissions = await find_holders(digest)
    return any(readable(entry, audiences) for entry in (*skills, *submissions))


async def find_holders(digest: str) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """The skills whose current version has this content, and the submissions that hold it now."""
    kv = require_env("kv").kv
    skills = await kv.select(SKILLS.prefix, audiences=EVERYTHING, where={"current_digest": Is(digest)})
    submissions = await kv.select(SUBMISSIONS.prefix, audiences=EVERYTHING, where={"digest": Is(digest)})
    return entries_of(skills), entries_of(submissions)


#: Below this, verifying takes less time than handing the work to a thread.
INLINE_BYTES = 64 * 1024


async def read_content(digest: str) -> tuple[SkillFile, ...]:
    """The files of a content, every byte verified. Raises ContentDamaged, which is noted, or BlobUnavailable."""
    data = await require_env("blobs").blobs.get(digest)
    try:
        return await verify_content(data, digest)
    except ContentDamaged as found:
        await note_damage_in_passing(found)
        raise


async def verify_content(data: bytes | None, digest: str) -> tuple[SkillFile, ...]:
    """The files in these bytes; ContentDamaged where they are not what the digest says."""
    if data is None or len(data) <= INLINE_BYTES:
        return verified_files(data, digest)
    return await asyncio.to_thread(verified_files, data, digest)


async def keep_content(digest: str, files: Sequence[SkillFile]) -> None:
    """Keep files under their digest; they replace damaged ones."""
    env = require_env("blobs")
    is_damaged = await env.kv.get(keys.damage(digest)) is not None
    await env.blobs.put(digest, pack(files), replace=is_damaged)
    if is_damaged:
        await forget_damage(digest, "the same files were submitted or fetched again")
