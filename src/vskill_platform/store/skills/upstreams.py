"""Records of upstreams: what an admin chose and what synchronisations found at `upstream:{name}`, what was listed last
at `upstream_entries:{name}`."""

from collections.abc import Callable

import msgspec

from vskill_core.errors import NotFound
from vskill_platform.domain import keys
from vskill_platform.domain.skills.upstream import Upstream, UpstreamEntries, UpstreamState
from vskill_platform.ledger.kv.entries import Delete, Operation, Put
from vskill_platform.records import decode_readable, iter_entries, persist, read_record
from vskill_platform.store.people.audit import AuditNote, commit_audited
from vskill_platform.worker_context import require_env

#: How one is asked to be brought up to date, and one of its entries to be fetched.
UPSTREAM_SYNC = "upstream_sync"
UPSTREAM_BRING = "upstream_bring"


async def find_upstream(name: str) -> Upstream | None:
    return (await read_record(keys.upstream(name), Upstream))[0]


async def get_upstream(name: str) -> Upstream:
    """The record, or NotFound."""
    return (await _to_change(name))[0]


async def _to_change(name: str) -> tuple[Upstream, int]:
    found, version = await read_record(keys.upstream(name), Upstream)
    if found is None:
        raise NotFound(f"There is no upstream {name!r}.", upstream=name)
    return found, version


async def list_upstreams() -> list[Upstream]:
    """All by name."""
    entries = [entry async for entry in iter_entries(keys.upstream.prefix)]
    return decode_readable(entries, Upstream, "list_upstreams")


async def read_upstream_entries(name: str) -> UpstreamEntries:
    """What was listed last; nothing before the first synchronisation."""
    return (await read_record(keys.upstream_entries(name), UpstreamEntries))[0] or UpstreamEntries()


async def change_upstream(
    name: str, note: AuditNote, change: Callable[[Upstream | None], Upstream]
) -> Upstream:
    """Write what an admin chose; `change` gets the record, or None, and is called again after a conflict."""

    async def put() -> tuple[Upstream, list[Operation]]:
        known, version = await read_record(keys.upstream(name), Upstream)
        changed = msgspec.structs.replace(change(known), changed_at=require_env("kv").kv.now())
        return changed, [Put(keys.upstream(name), msgspec.json.encode(changed), version)]

    return await commit_audited(note, put)


async def remove_upstream(name: str, note: AuditNote) -> None:
    """Its skills stay. NotFound where there is none."""

    async def remove() -> tuple[None, list[Operation]]:
        _, version = await _to_change(name)
        beside = (keys.upstream_entries(name), keys.bundles(name))
        return None, [Delete(keys.upstream(name), version), *map(Delete, beside)]

    await commit_audited(note, remove)


async def keep_found(
    looked_at: Upstream,
    change: Callable[[UpstreamState], UpstreamState],
    entries: UpstreamEntries | None = None,
) -> None:
    """Write what a synchronisation found, unless something else is asked for since."""

    async def write() -> None:
        known, version = await read_record(keys.upstream(looked_at.name), Upstream)
        if known is None or known.changed_at != looked_at.changed_at:
            return
        changed = msgspec.structs.replace(known, state=change(known.state))
        listed: list[Operation] = []
        if entries is not None:
            listed.append(Put(keys.upstream_entries(known.name), msgspec.json.encode(entries)))
        await require_env("kv").kv.commit(
            [Put(keys.upstream(known.name), msgspec.json.encode(changed), version), *listed]
        )

    await persist(write)
