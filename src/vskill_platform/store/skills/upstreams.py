"""Records of upstreams: what an admin chose and what synchronisations found at `upstream:{name}`, what was listed last
at `upstream_entries:{name}`."""

from collections.abc import Callable

import msgspec

from vskill_core.errors import NotFound
from vskill_platform.domain import keys
from vskill_platform.domain.skills.upstream import Upstream, UpstreamEntries
from vskill_platform.ledger.kv.entries import Delete, Operation, Put
from vskill_platform.records import decode_readable, iter_entries, read_record
from vskill_platform.store.people.audit import AuditNote, commit_audited
from vskill_platform.store.skills.bundles import KeptBundles
from vskill_platform.worker_context import require_env

#: How one is asked to be brought up to date, and one of its entries to be fetched.
UPSTREAM_SYNC = "upstream_sync"
UPSTREAM_BRING = "upstream_bring"
UPSTREAM_REMEMBER = "upstream_remember"


async def find_upstream(name: str) -> Upstream | None:
    return (await read_record(keys.upstream(name), Upstream))[0]


async def get_upstream(name: str) -> Upstream:
    """The record, or NotFound."""
    if (found := await find_upstream(name)) is None:
        raise NotFound(f"There is no upstream {name!r}.", upstream=name)
    return found


async def list_upstreams() -> list[Upstream]:
    """All by name."""
    entries = [entry async for entry in iter_entries(keys.upstream.prefix)]
    return decode_readable(entries, Upstream, "list_upstreams")


async def read_upstream_entries(name: str) -> UpstreamEntries:
    """What was listed last; nothing before the first synchronisation."""
    return (await read_record(keys.upstream_entries(name), UpstreamEntries))[0] or UpstreamEntries()


async def change_upstream(
    note: AuditNote,
    change: Callable[[Upstream | None], Upstream],
    merge: Callable[[KeptBundles | None], KeptBundles] | None = None,
) -> Upstream:
    """Write the upstream that the note names, and what a bundle brought to it. Both functions get the record or None,
    may refuse, and are called again after a conflict."""

    async def put() -> tuple[Upstream, list[Operation]]:
        known, version = await read_record(keys.upstream(note.target), Upstream)
        changed = msgspec.structs.replace(change(known), changed_at=require_env("kv").kv.now())
        writes: list[Operation] = [Put(changed.key, msgspec.json.encode(changed), version)]
        if merge is not None:
            before, at = await read_record(keys.bundles(note.target), KeptBundles)
            writes.append(Put(keys.bundles(note.target), msgspec.json.encode(merge(before)), at))
        return changed, writes

    return await commit_audited(note, put)


async def remove_upstream(note: AuditNote) -> None:
    """Its skills stay. NotFound where there is none."""

    async def remove() -> tuple[None, list[Operation]]:
        name = note.target
        await get_upstream(name)
        beside = (keys.upstream_facts.under(name), keys.brought.under(name))
        found = [one.key for prefix in beside async for one in iter_entries(prefix)]
        records = (keys.upstream(name), keys.upstream_entries(name), keys.bundles(name), *found)
        return None, [*map(Delete, records)]

    await commit_audited(note, remove)
