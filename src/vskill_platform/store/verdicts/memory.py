"""The memory in force: content that `control:memory` names, for all processes, and the release's own file where nobody
has set another. A decision's evidence says which one it was compared with; it is no part of the rule set."""

import asyncio
import hashlib

import msgspec

from vskill_core.errors import Conflict, InvalidInput
from vskill_platform.domain import keys
from vskill_platform.ledger.kv.entries import Operation, Put
from vskill_platform.records import decode_readable, iter_entries, read_record
from vskill_platform.store.people.audit import AuditNote, commit_audited
from vskill_platform.worker_context import require_env
from vskill_scan.memory.making import PublicFacts, pack_memory
from vskill_scan.memory.memory import Memory


class StoredMemory(msgspec.Struct, frozen=True):
    """The record at `control:memory`."""

    #: of the file, which the content store keeps
    digest: str
    by: str
    at: int
    reason: str
    #: of the file that what upstreams have was added to, empty for the release's own; None: nothing was added
    base: str | None = None


class MemoryInForce(msgspec.Struct, frozen=True):
    """The memory that submissions are compared with."""

    memory: Memory
    #: None where the release's own is in force
    stored: StoredMemory | None = None
    #: Why the stored one cannot be used, so that the release's own takes its place; empty where it can.
    problem: str = ""


async def read_memory() -> MemoryInForce:
    env = require_env("kv")
    stored, _ = await read_record(keys.CONTROL_MEMORY, StoredMemory)
    named = "" if stored is None else stored.digest
    if env.kept.memory is not None and env.kept.memory[0] == named:
        return MemoryInForce(env.kept.memory[1], stored)
    try:
        memory = await _load(named) if named else env.packaged_memory()
    except InvalidInput as error:
        env.log.warning("the memory cannot be used", digest=named, error=error.message)
        return MemoryInForce(env.packaged_memory(), stored, error.message)
    env.kept.memory = (named, memory)
    return MemoryInForce(memory, stored)


async def _load(digest: str) -> Memory:
    data = await require_env("blobs").blobs.get(digest) or b""
    memory = await asyncio.to_thread(Memory.load, data)
    if memory.digest != digest:
        raise InvalidInput("Its stored file is damaged.", field="data", fix="set it again")
    return memory


class RememberedSkill(PublicFacts, frozen=True, kw_only=True):
    """The record at `upstream_facts:{name}:{entry}`."""

    #: of these facts, as YYYY-MM-DD
    day: str


async def refresh_memory(by: str, reason: str) -> MemoryInForce:
    """Have the memory know what upstreams have, on top of the file that an operator set or the release's own. Raises
    InvalidInput, and leaves the memory, where that is more than a memory may hold."""
    env = require_env("blobs")
    stored, _ = await read_record(keys.CONTROL_MEMORY, StoredMemory)
    named = "" if stored is None else stored.digest if stored.base is None else stored.base
    base = await _load(named) if named else env.packaged_memory()
    entries = [one async for one in iter_entries(keys.upstream_facts.prefix)]
    told = decode_readable(entries, RememberedSkill, "refresh_memory")
    day = max((base.date, *(one.day for one in told)))
    data = await asyncio.to_thread(pack_memory, told, day, base.ruleset, base.content)
    if hashlib.sha256(data).hexdigest() == (base.digest if stored is None else stored.digest):
        return await read_memory()
    return await set_memory(data, by=by, reason=reason, onto=(named, stored))


async def set_memory(
    data: bytes, *, by: str, reason: str, onto: tuple[str, StoredMemory | None] | None = None
) -> MemoryInForce:
    """Let a valid file be in force; one that was made `onto` another, only where nobody has set one since. Raises
    InvalidInput and Conflict."""
    env = require_env("blobs")
    memory = await asyncio.to_thread(lambda: Memory.load(data).check())
    await env.blobs.put(memory.digest, data)

    async def write() -> tuple[None, list[Operation]]:
        known, version = await read_record(keys.CONTROL_MEMORY, StoredMemory)
        if onto is not None and known != onto[1]:
            raise Conflict("The memory was set while it was made anew.")
        stored = StoredMemory(memory.digest, by, env.kv.now(), reason, onto and onto[0])
        return None, [Put(keys.CONTROL_MEMORY, msgspec.json.encode(stored), version)]

    details = {"date": memory.date, "skills": str(len(memory))}
    await commit_audited(AuditNote("memory updated", memory.digest, by, reason, details), write)
    return await read_memory()
