"""The first time that a namespace is managed: its records get its audience while everybody may still read them, then
its visibility changes in one write.

Once `preparing` is set, every write into the namespace sets its audience; the pass here sets it on existing records. A
pass is idempotent, and several processes may run it at once: each record is changed by compare-and-swap, and records
that have the audience are left alone.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec

from vskill_core.identity import Identity
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import PUBLIC_ONLY, Namespace, namespace_of
from vskill_platform.domain.skills.skill import SkillVersion
from vskill_platform.ledger.kv.collections import SKILLS, SUBMISSIONS, parse
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.ledger.kv.entries import Entry, Operation, Put
from vskill_platform.records import Skips, iter_selected, persist, readable
from vskill_platform.store.people.audit import AuditNote
from vskill_platform.store.people.namespaces import (
    NamespaceChange,
    change_namespace,
    read_directory,
    read_namespace,
)
from vskill_platform.store.recall.blocklist import list_blocks
from vskill_platform.store.recall.blocklist_pass import JudgeAgain, reapply_blocklist
from vskill_platform.store.skills.quotas import size_of, usage_writes
from vskill_platform.worker_context import require_env

#: Records that are rewritten at once.
AT_ONCE = 32

Record = dict[str, Any]
#: Further writes beside a record that gets its audience.
Beside = Callable[[str, Record], Awaitable[list[Operation]]]


async def finish_preparations(judge_again: JudgeAgain) -> int:
    """Finish preparations that a dead process left; how many there were."""
    waiting = [one.name for one in (await read_directory()).namespaces.values() if one.preparing is not None]
    for name in waiting:
        await finish_preparing(name, judge_again)
    return len(waiting)


async def longest_preparing_ms() -> int | None:
    """The longest time for which a namespace has been in preparation."""
    began = [one.preparing_since for one in (await read_directory()).namespaces.values() if one.preparing]
    return require_env("kv").kv.now() - min(began) if began else None


async def finish_preparing(name: str, judge_again: JudgeAgain) -> Namespace:
    """Give every record of the namespace its audience, then set the intended visibility. Blocklist entries name skills
    and places too, so a pass over the blocklist comes first; `judge_again` is for versions that it brings back."""
    namespace, _ = await read_namespace(name)
    if namespace.preparing is None:
        return namespace
    await _rewrite((entry.key async for entry in public_skills_in(name)), name, _beside_skill)
    await _rewrite((entry.key async for entry in public_submissions_in(name)), name)
    if await list_blocks():
        await reapply_blocklist(judge_again=judge_again)

    async def settle(known: Namespace) -> NamespaceChange | None:
        if known.preparing is None:
            return None
        settled = msgspec.structs.replace(
            known, visibility=known.preparing, preparing=None, preparing_since=0
        )
        return NamespaceChange(settled)

    reason = "all records of the namespace carry its audience"
    return await change_namespace(name, settle, AuditNote("namespace prepared", name, "system", reason))


# The records of a namespace.


async def public_skills_in(name: str) -> AsyncIterator[Entry]:
    """Every skill that has no audience of the namespace yet, withdrawn ones too."""
    async for entry in iter_selected(SKILLS.prefix, audiences=PUBLIC_ONLY, under=f"{name}/"):
        yield entry


async def public_submissions_in(name: str) -> AsyncIterator[Entry]:
    """Every submission that has no audience of the namespace yet. No index finds them by namespace, so all public ones
    are read: once, when it is first managed."""
    async for entry in iter_selected(SUBMISSIONS.prefix, audiences=PUBLIC_ONLY, order_by="created_at"):
        if _namespace_of(parse(entry.value)) == name:
            yield entry


def _namespace_of(record: Any) -> str | None:
    """None if the record is not a readable submission."""
    try:
        return namespace_of(msgspec.convert(record["identity"], Identity))
    except (TypeError, KeyError, msgspec.ValidationError):
        return None


# Giving them their audience.


async def _rewrite(found: AsyncIterator[str], name: str, beside: Beside | None = None) -> None:
    """Rewrite a few at a time. All other fields stay as they are, even those that this release does not know."""
    batch: list[str] = []
    async for key in found:
        batch.append(key)
        if len(batch) == AT_ONCE:
            await asyncio.gather(*(_give_audience(one, name, beside) for one in batch))
            batch.clear()
    await asyncio.gather(*(_give_audience(one, name, beside) for one in batch))


async def _give_audience(key: str, name: str, beside: Beside | None) -> None:
    kv = require_env("kv").kv

    async def write() -> None:
        entry = readable(await kv.get(key), PUBLIC_ONLY)
        record = None if entry is None else parse(entry.value)
        # It is gone, or not a record that anybody could read.
        if entry is None or not isinstance(record, dict):
            return
        record["audience"] = f"ns:{name}"
        put = Put(key, msgspec.json.encode(record), entry.version)
        await kv.commit([put, *(await beside(name, record) if beside is not None else ())])

    await persist(write)


async def _beside_skill(name: str, record: Record) -> list[Operation]:
    """The writes of its flat names, and of its share in the namespace's usage."""
    canonical = str(record.get("canonical", ""))
    value = msgspec.json.encode({"audience": record["audience"]})
    aliases = [Put(keys.alias_key(str(flat), canonical), value) for flat in record.get("aliases", ())]
    return [*aliases, *usage_writes(name, skills=1, bytes=await _bytes_of(canonical))]


async def _bytes_of(canonical: str) -> int:
    env = require_env("kv")
    skips = Skips("prepare_namespace")
    total = 0
    async for page in iterate_pages(env.kv, keys.version.under(canonical)):
        skips.failed(page.failed)
        found = (skips.decode(entry, SkillVersion) for entry in page.items)
        total += size_of(one for one in found if one is not None)
    skips.report(env)
    return total
