"""The key-value contract: what every engine offers, and what some offer beyond it.

The core is `get`, `list` and `commit`. Everything else has a default built on the core that is correct and
slow, so that a store above writes each query once; an engine that can do better overrides the default and
says so in `capabilities`. One contract suite runs over every engine.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

import msgspec

from vskill_core.errors import PlatformError, StoreUnavailable, Unsupported
from vskill_platform.domain.people.namespace import Audiences
from vskill_platform.domain.skills.search import TermQuery
from vskill_platform.ledger.broker.contract import DeadLetter
from vskill_platform.ledger.kv.collections import RecordKind, Value, collection_of
from vskill_platform.ledger.kv.entries import (
    Capability,
    Change,
    Delete,
    Entry,
    EntryPage,
    Found,
    JoinedPage,
    Operation,
    Overlap,
    Page,
    Put,
    SearchCandidate,
    Settled,
    StoredRecord,
)
from vskill_platform.ledger.kv.overlaps import OverlapQuery, evaluate_overlap
from vskill_platform.ledger.kv.query import (
    CheckedSearch,
    Condition,
    Query,
    check_audiences,
    evaluate,
    is_readable,
)

#: How many single reads run at once where an engine has no bulk read. More is slower (docs/adr).
READS_AT_ONCE = 256

#: A page of a listing, unless the caller asks for another size.
PAGE = 1000

#: A search says `truncated` beyond this many results.
SEARCH_LIMIT = 1000

#: Records of one page of a snapshot.
SNAPSHOT_PAGE = 500

#: By field and value; None counts the entries without the field.
Counts = dict[str, dict[str | None, int]]


class StoreSnapshot(ABC):
    """A whole store at one moment: every record, and the dead letters of a queue that is kept in the same place.

    It holds neither later writes nor caches that had expired by then.
    """

    @abstractmethod
    async def records(
        self, after: str = "", until: str | None = None, limit: int | None = None
    ) -> list[StoredRecord]:
        """Records after one key and up to another, in order of their keys' bytes."""

    @abstractmethod
    async def dead_letters(self) -> list[DeadLetter]:
        """Oldest first."""

    async def pages(self, after: str = "") -> AsyncIterator[list[StoredRecord]]:
        """All records after a key, holding one page at a time."""
        while page := await self.records(after, limit=SNAPSHOT_PAGE):
            yield page
            after = page[-1].key


class KV(ABC):
    """Records by key, with versions. Times are integer milliseconds of the store's own clock."""

    #: The engine's name in messages and metrics.
    engine: str
    capabilities: frozenset[Capability]

    # The core.

    @abstractmethod
    def now(self) -> int:
        """The store's clock, which sets and compares every deadline."""

    @abstractmethod
    async def get(self, key: str) -> Entry | None:
        """The entry, or None where there is none. Raises if the read fails or the key is invalid."""

    @abstractmethod
    async def list(
        self, prefix: str, *, after: str | None = None, limit: int = PAGE, exclude: Sequence[str] = ()
    ) -> Page[str]:
        """Keys with this prefix and none of the excluded ones, in order of their bytes."""

    @abstractmethod
    async def commit(self, operations: Sequence[Operation], *, urgent: bool = False) -> int:
        """Apply all operations or none, and return the version that every written key now has.

        Raises Conflict with the key whose version differs. Each key is written at most once. `urgent` goes before
        other waiting commits (claim renewals).
        """

    async def close(self) -> None:
        """Finish accepted writes, then close files and connections."""

    # Single writes, in terms of commit.

    async def put(
        self,
        key: str,
        value: bytes,
        *,
        if_version: int | None = None,
        quiet: bool = False,
        ttl_ms: int | None = None,
    ) -> int:
        return await self.commit([Put(key, value, if_version, quiet, ttl_ms)])

    async def delete(self, key: str, *, if_version: int | None = None) -> int:
        return await self.commit([Delete(key, if_version)])

    # Reads that an engine may do better.

    async def get_many(self, keys: Iterable[str]) -> Settled:
        """Read many keys; one failed read does not hide the others. Order and duplicates do not matter."""
        return await read_concurrently(self, keys)

    async def scan(
        self, prefix: str, *, after: str | None = None, limit: int = PAGE, exclude: Sequence[str] = ()
    ) -> EntryPage:
        """A page of entries in key order. Excluded ranges are not read."""
        page = await self.list(prefix, after=after, limit=limit, exclude=exclude)
        settled = await self.get_many(page.items)
        items = tuple(settled.found[key] for key in page.items if key in settled.found)
        return EntryPage(items, page.after, settled.failed)

    async def joined_pages(
        self, prefix: str, *, exclude: Sequence[str] = (), page: int = PAGE
    ) -> AsyncIterator[JoinedPage]:
        """All pages of `scan`, for callers that decode everything; an engine may read ahead meanwhile."""
        async for entries in iterate_pages(self, prefix, exclude=exclude, page=page):
            pairs = [b"[%b,%b]" % (msgspec.json.encode(entry.key), entry.value) for entry in entries.items]
            yield JoinedPage(b"[%b]" % b",".join(pairs), len(pairs), entries.after, entries.failed)

    async def select(
        self,
        prefix: str,
        *,
        audiences: Audiences,
        where: Mapping[str, Condition] | None = None,
        order_by: str = "key",
        descending: bool = False,
        after: str | None = None,
        limit: int = PAGE,
        under: str = "",
    ) -> EntryPage:
        """Entries of a declared collection whose declared fields meet every condition, ordered by one field.

        Only entries of these audiences are found, and no others are read. With the order of keys, `under` allows
        only keys that begin with the prefix followed by it.

        Raises UnindexedQuery, on every engine, if no declared index serves the query. Entries without the field
        of `order_by` are left out. A value that is not JSON has every field None.
        """
        return await self._select(
            Query.of(collection_of(prefix), where or {}, order_by, descending, after, limit, audiences, under)
        )

    async def _select(self, query: Query) -> EntryPage:
        entries, failed = await self._read_all(query.collection)
        return msgspec.structs.replace(evaluate(query, entries), failed=failed)

    async def count_by(self, prefix: str, field: str, *, audiences: Audiences) -> dict[str | None, int]:
        """Exact counts of a collection's entries of these audiences by a counted field; None counts entries
        without it."""
        collection = collection_of(prefix)
        collection.counted_field(field)
        check_audiences(collection, audiences)
        return (await self._count(collection, (field,), audiences))[field]

    async def _count(self, collection: RecordKind, fields: Sequence[str], audiences: Audiences) -> Counts:
        entries, failed = await self._read_all(collection)
        if failed:
            raise next(iter(failed.values()))
        readable = [entry.value for entry in entries if is_readable(collection, entry, audiences)]
        return sum_counts(
            fields, ((name, collection.fields[name].read(value), 1) for value in readable for name in fields)
        )

    async def count_all(self, prefix: str, *, audiences: Audiences) -> Counts:
        """`count_by` for every counted field of a collection at once."""
        fields = collection_of(prefix).counted
        return {field: await self.count_by(prefix, field, audiences=audiences) for field in fields}

    async def search(
        self,
        prefix: str,
        query: TermQuery,
        *,
        audiences: Audiences,
        where: Mapping[str, Condition] | None = None,
        fields: Sequence[str] = (),
        limit: int = SEARCH_LIMIT,
    ) -> Found:
        """Entries of these audiences whose searched fields hold any term of the query, or all of them, with the values
        of `fields` (which must have a column). The order is the same on every engine."""
        limit = min(limit, SEARCH_LIMIT)
        return await self._search(
            CheckedSearch.of(collection_of(prefix), query, audiences, where or {}, fields, limit)
        )

    async def _search(self, query: CheckedSearch) -> Found:
        collection = query.collection
        entries, failed = await self._read_all(collection)
        if failed:
            raise next(iter(failed.values()))
        declared = collection.fields
        hits: list[tuple[int, bool, int, SearchCandidate]] = []
        for entry in entries:
            texts = collection.search_texts(entry.value)
            points = query.terms.points(texts) if is_readable(collection, entry, query.audiences) else None
            if points is not None and all(
                one.holds(declared[name].read(entry.value)) for name, one in query.where
            ):
                values = tuple(declared[name].read(entry.value) for name in query.fields)
                weight = collection.weight_of(entry.value)
                hits.append(
                    (-points, weight is None, -(weight or 0), SearchCandidate(entry.key, texts, values))
                )
        hits.sort(key=lambda hit: (*hit[:3], hit[3].key))
        return Found(tuple(hit for *_, hit in hits[: query.limit]), truncated=len(hits) > query.limit)

    async def overlap(
        self,
        prefix: str,
        numbers: Collection[int],
        *,
        audiences: Audiences,
        least: int,
        limit: int,
        without: str,
    ) -> tuple[Overlap, ...]:
        """The entries of these audiences whose declared list has at least `least` of these integers, those with the
        most first, then by key. Entries of the family `without` (`RecordKind.family_of`) are left out. An integer that
        more than MOST_HOLDERS other entries of any audience hold does not count."""
        return await self._overlap(OverlapQuery.of(prefix, numbers, audiences, least, limit, without))

    async def _overlap(self, query: OverlapQuery) -> tuple[Overlap, ...]:
        entries, failed = await self._read_all(query.collection)
        if failed:
            raise next(iter(failed.values()))
        return evaluate_overlap(query, entries)

    # Following what changes.

    async def changes(self, prefix: str, *, after: str | None = None, limit: int = PAGE) -> Page[Change]:
        """Changes after a cursor (None: from the oldest one kept), in an order that never skips one.

        `after` of the page is always set: the cursor to continue from. Raises CursorGone for a cursor of another
        store, or one older than the changes that are kept.
        """
        raise Unsupported(capability=Capability.CHANGES.value, engine=self.engine)

    async def change_cursor(self) -> str:
        """The current cursor: `changes` after it gives only what comes later."""
        raise Unsupported(capability=Capability.CHANGES.value, engine=self.engine)

    async def wait_for_change(self, cursor: str, timeout_ms: int) -> bool:
        """Whether there is a change after the cursor; waits for one up to the timeout."""
        raise Unsupported(capability=Capability.CHANGES.value, engine=self.engine)

    # Everything at once.

    def snapshot(self) -> AbstractAsyncContextManager[StoreSnapshot]:
        """The store as it is when the context is entered, on a separate connection that closes with the context."""
        raise Unsupported(capability=Capability.SNAPSHOT.value, engine=self.engine)

    # Keeping house.

    async def sweep(self, *, changes_before: int, limit: int = 5000) -> int:
        """Remove expired caches and changes older than a time, a bounded number of them; how many were removed."""
        return 0

    async def check(self) -> None:
        """Raise the typed error that a write would meet now (readiness)."""
        await self.get("control:queue")

    async def check_files(self) -> None:
        """Raise StoreReplaced if this process writes into a file that the next one will not find. Writes nothing."""

    async def risks(self) -> tuple[str, ...]:
        """How the engine's set-up could lose an acknowledged write, in sentences that name the setting."""
        return ()

    async def _read_all(self, collection: RecordKind) -> tuple[tuple[Entry, ...], dict[str, PlatformError]]:
        entries: list[Entry] = []
        failed: dict[str, PlatformError] = {}
        async for page in iterate_pages(self, collection.prefix, exclude=collection.exclude):
            entries.extend(page.items)
            failed.update(page.failed)
        return tuple(entries), failed


def sum_counts(fields: Sequence[str], rows: Iterable[tuple[str, Value, int]]) -> Counts:
    """Counts by field and value, without those that add up to zero."""
    counts: Counts = {field: {} for field in fields}
    for field, value, n in rows:
        name = None if value is None else str(value)
        counts[field][name] = counts[field].get(name, 0) + n
    return {field: {name: n for name, n in values.items() if n} for field, values in counts.items()}


async def iterate_pages(
    kv: KV, prefix: str, *, exclude: Sequence[str] = (), page: int = PAGE, after: str | None = None
) -> AsyncIterator[EntryPage]:
    """Every page of a range, or of what is after a key of it, to the end, holding one at a time."""
    while True:
        entries = await kv.scan(prefix, after=after, limit=page, exclude=exclude)
        yield entries
        after = entries.after
        if after is None:
            return


async def read_concurrently(kv: KV, keys: Iterable[str], at_once: int = READS_AT_ONCE) -> Settled:
    """Single reads, at most `at_once` concurrently; one failure does not affect the others."""
    wanted = tuple(dict.fromkeys(keys))
    found: dict[str, Entry] = {}
    missing: list[str] = []
    failed: dict[str, PlatformError] = {}
    waiting = iter(wanted)

    async def reader() -> None:
        for key in waiting:
            try:
                entry = await kv.get(key)
            except PlatformError as error:
                failed[key] = error
            except Exception as error:  # noqa: BLE001 - settled: one key's failure, of any kind, stays that key's
                failed[key] = StoreUnavailable(f"reading {key} failed: {error!r}", key=key)
            else:
                if entry is None:
                    missing.append(key)
                else:
                    found[key] = entry

    if wanted:
        await asyncio.gather(*(reader() for _ in range(min(at_once, len(wanted)))))
    return Settled(found, tuple(missing), failed)
