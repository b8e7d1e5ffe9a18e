"""The store in memory: the engine of tests, demos and the simulator. It keeps the contract, but nothing survives the
process and no other process sees it.

Every operation runs from its first line to its last without an await, so it is atomic on the event loop.
"""

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from operator import attrgetter

from vskill_core.errors import (
    Conflict,
    CursorGone,
    InvalidInput,
    PlatformError,
    RecordMalformed,
    Unsupported,
)
from vskill_platform.domain.messages import Send
from vskill_platform.ledger.broker.contract import Broker, DeadLetter
from vskill_platform.ledger.broker.memory import MemoryBroker
from vskill_platform.ledger.clock import Clock
from vskill_platform.ledger.kv.checks import check_key, check_operations, check_texts
from vskill_platform.ledger.kv.contract import KV, PAGE, StoreSnapshot
from vskill_platform.ledger.kv.entries import (
    ABSENT,
    Add,
    Assert,
    Capability,
    Change,
    Delete,
    Entry,
    EntryPage,
    Operation,
    Page,
    Put,
    Settled,
    StoredRecord,
)


class MemoryKV(KV):
    """Records in a dict, their keys in a sorted list beside it."""

    engine = "memory"

    def __init__(self, clock: Clock, outbox: Broker | None = None) -> None:
        self._clock = clock
        self._outbox = outbox
        self._entries: dict[str, Entry] = {}
        self._keys: list[str] = []
        self._expiry: dict[str, int] = {}
        self._version = 0
        #: A change's cursor is its position in the sequence of all changes.
        self._changes: list[Change] = []
        self._last_place = 0
        self._swept_through = 0
        self._followers: set[asyncio.Future[None]] = set()
        capabilities = {
            Capability.BULK_READS,
            Capability.ATOMIC_COMMIT,
            Capability.CHANGES,
            Capability.SNAPSHOT,
        }
        if isinstance(outbox, MemoryBroker):
            capabilities.add(Capability.SEND_IN_COMMIT)
        self.capabilities = frozenset(capabilities)

    def now(self) -> int:
        return self._clock.now()

    # Reads.

    async def get(self, key: str) -> Entry | None:
        return self._get(key)

    async def get_many(self, keys: Iterable[str]) -> Settled:
        found: dict[str, Entry] = {}
        missing: list[str] = []
        failed: dict[str, PlatformError] = {}
        for key in dict.fromkeys(keys):
            try:
                entry = self._get(key)
            except InvalidInput as error:
                failed[key] = error
                continue
            if entry is None:
                missing.append(key)
            else:
                found[key] = entry
        return Settled(found, tuple(missing), failed)

    def _get(self, key: str) -> Entry | None:
        entry = self._read(key)
        if entry is None:
            check_key(key)
        return entry

    async def list(
        self, prefix: str, *, after: str | None = None, limit: int = PAGE, exclude: Sequence[str] = ()
    ) -> Page[str]:
        return self._page(prefix, after, limit, exclude)

    async def scan(
        self, prefix: str, *, after: str | None = None, limit: int = PAGE, exclude: Sequence[str] = ()
    ) -> EntryPage:
        page = self._page(prefix, after, limit, exclude)
        return EntryPage(tuple([self._entries[key] for key in page.items]), page.after)

    def _read(self, key: str) -> Entry | None:
        return None if self._is_expired(key) else self._entries.get(key)

    def _is_expired(self, key: str) -> bool:
        until = self._expiry.get(key)
        return until is not None and until <= self.now()

    def _page(self, prefix: str, after: str | None, limit: int, exclude: Sequence[str]) -> Page[str]:
        check_texts("prefix", prefix, after or "", *exclude)
        found: list[str] = []
        for key in self._walk(prefix, after, exclude):
            if len(found) == limit:
                return Page(tuple(found), found[-1])
            found.append(key)
        return Page(tuple(found))

    def _walk(self, prefix: str, after: str | None, exclude: Sequence[str]) -> Iterator[str]:
        # Order of code points is order of UTF-8 bytes, so the strings need no encoding to be compared.
        keys = self._keys
        place = bisect_left(keys, prefix)
        if after is not None:
            place = max(place, bisect_right(keys, after))
        while place < len(keys) and keys[place].startswith(prefix):
            key = keys[place]
            skipped = next((one for one in exclude if key.startswith(one)), None)
            if skipped is not None:
                size = len(skipped)
                place = bisect_right(keys, skipped, lo=place, key=lambda key: key[:size])
                continue
            if not self._is_expired(key):
                yield key
            place += 1

    # Writes.

    async def commit(self, operations: Sequence[Operation], *, urgent: bool = False) -> int:
        sends = [operation for operation in operations if isinstance(operation, Send)]
        if sends and self._outbox is None:
            raise Unsupported(capability=Capability.SEND_IN_COMMIT.value, engine=self.engine)
        check_operations(operations)
        for operation in operations:
            self._check(operation)
        self._version += 1
        version = self._version
        for operation in operations:
            self._write(operation)
        if isinstance(self._outbox, MemoryBroker):
            self._outbox.send_now(sends)
        elif sends and self._outbox is not None:
            await self._outbox.send_after_commit(sends)
        return version

    def _check(self, operation: Operation) -> None:
        match operation:
            case Put(key=key, if_version=wanted) | Delete(key=key, if_version=wanted) if wanted is not None:
                self._check_version(key, wanted)
            case Assert(key=key, version=wanted):
                self._check_version(key, wanted)
            case Add(key=key):
                self._counter(key)
            case _:
                pass

    def _check_version(self, key: str, wanted: int) -> None:
        entry = self._read(key)
        actual = ABSENT if entry is None else entry.version
        if actual != wanted:
            raise Conflict(f"{key} is at version {actual}, not {wanted}", key=key, version=actual)

    def _counter(self, key: str) -> int:
        entry = self._read(key)
        try:
            return 0 if entry is None else int(entry.value)
        except ValueError as error:
            raise RecordMalformed(f"{key} is not a counter", key=key, reason="not an integer") from error

    def _write(self, operation: Operation) -> None:
        match operation:
            case Put(key=key, value=value, quiet=quiet, ttl_ms=ttl_ms):
                self._put(key, value, ttl_ms)
                if not quiet:
                    self._emit(key, deleted=False)
            case Add(key=key, n=n):
                self._put(key, b"%d" % (self._counter(key) + n), None)
                self._emit(key, deleted=False)
            case Delete(key=key) if self._read(key) is not None:
                self._remove(key)
                self._emit(key, deleted=True)
            case _:
                pass

    def _put(self, key: str, value: bytes, ttl_ms: int | None) -> None:
        if key not in self._entries:
            insort(self._keys, key)
        self._entries[key] = Entry(key, value, self._version)
        if ttl_ms is not None:
            self._expiry[key] = self.now() + ttl_ms
        elif self._expiry:
            self._expiry.pop(key, None)

    def _remove(self, key: str) -> None:
        del self._entries[key]
        del self._keys[bisect_left(self._keys, key)]
        self._expiry.pop(key, None)

    # Changes.

    def _emit(self, key: str, *, deleted: bool) -> None:
        self._last_place += 1
        self._changes.append(Change(str(self._last_place), key, self._version, deleted, self.now()))
        for follower in self._followers:
            if not follower.done():
                follower.set_result(None)

    async def changes(self, prefix: str, *, after: str | None = None, limit: int = PAGE) -> Page[Change]:
        check_texts("prefix", prefix)
        place = self._swept_through if after is None else self._place(after)
        if not self._swept_through <= place <= self._last_place:
            raise CursorGone(cursor=after)
        found: list[Change] = []
        end = self._last_place
        for kept in islice(self._changes, place - self._swept_through, None):
            if len(found) == limit:
                end = int(kept.cursor) - 1
                break
            if kept.key.startswith(prefix):
                found.append(kept)
        return Page(tuple(found), str(end))

    async def change_cursor(self) -> str:
        return str(self._last_place)

    async def wait_for_change(self, cursor: str, timeout_ms: int) -> bool:
        place = self._place(cursor)
        if place != self._last_place:
            return True
        follower: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._followers.add(follower)
        try:
            await asyncio.wait((follower,), timeout=timeout_ms / 1000)
        finally:
            self._followers.discard(follower)
        return place != self._last_place

    def _place(self, cursor: str) -> int:
        try:
            return int(cursor)
        except ValueError as error:
            raise CursorGone(cursor=cursor) from error

    # Everything at once.

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[StoreSnapshot]:
        records = [
            StoredRecord(key, self._entries[key].value.decode(), self._expiry.get(key))
            for key in self._walk("", None, ())
        ]
        letters = self._outbox.all_dead_letters() if isinstance(self._outbox, MemoryBroker) else []
        yield MemorySnapshot(records, letters)

    # Keeping house.

    async def sweep(self, *, changes_before: int, limit: int = 5000) -> int:
        expired = [key for key in self._expiry if self._is_expired(key)][:limit]
        for key in expired:
            self._remove(key)
        old = 0
        while old < min(limit - len(expired), len(self._changes)) and self._changes[old].at < changes_before:
            old += 1
        del self._changes[:old]
        self._swept_through += old
        return len(expired) + old


class MemorySnapshot(StoreSnapshot):
    """A copy of all records."""

    def __init__(self, records: list[StoredRecord], letters: list[DeadLetter]) -> None:
        self._records = records
        self._letters = letters

    async def records(
        self, after: str = "", until: str | None = None, limit: int | None = None
    ) -> list[StoredRecord]:
        by_key = attrgetter("key")
        start = bisect_right(self._records, after, key=by_key)
        end = len(self._records) if until is None else bisect_right(self._records, until, key=by_key)
        return self._records[start:end][:limit]

    async def dead_letters(self) -> list[DeadLetter]:
        return self._letters
