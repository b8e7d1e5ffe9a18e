"""What the record stores in SQL databases share: ranges of keys, reads of many keys, messages of a commit, waiting for
a change. Each engine adds its statements and its way to commit."""

import asyncio
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from itertools import starmap
from typing import Any, Generic, TypeVar

from vskill_core.errors import InvalidInput, PlatformError, Unsupported
from vskill_platform.domain.messages import Send
from vskill_platform.domain.people.namespace import Audiences
from vskill_platform.ledger.broker.contract import Broker
from vskill_platform.ledger.database.waiting import Database
from vskill_platform.ledger.kv.checks import MAX_KEY, check_key, check_operations
from vskill_platform.ledger.kv.collections import collection_of
from vskill_platform.ledger.kv.contract import KV, PAGE, Counts
from vskill_platform.ledger.kv.entries import (
    Capability,
    Entry,
    EntryPage,
    Found,
    Operation,
    Page,
    SearchCandidate,
    Settled,
)
from vskill_platform.ledger.kv.query import CheckedSearch, Query, check_audiences

D = TypeVar("D", bound=Database)

#: Keys of one statement of a bulk read.
_CHUNK = 1000


class SqlKV(KV, Generic[D]):
    """Records in a database; `outbox` is where the messages of a commit go."""

    #: The SQL columns of an entry.
    entry_columns: str
    #: The watches of this channel wake when a change was written.
    changes_channel: str

    def __init__(self, database: D, outbox: Broker | None, *, sends_inside: bool) -> None:
        self._db = database
        self._outbox = outbox
        #: The queue is in the same database, so messages are part of the commit.
        self._sends_inside = sends_inside
        self.capabilities = frozenset(Capability) - (set() if sends_inside else {Capability.SEND_IN_COMMIT})
        database.attach(self)

    def now(self) -> int:
        return self._db.now()

    async def close(self) -> None:
        await self._db.detach(self)

    # Writes.

    async def commit(self, operations: Sequence[Operation], *, urgent: bool = False) -> int:
        check_operations(operations)
        sends = [operation for operation in operations if isinstance(operation, Send)]
        if sends and self._outbox is None:
            raise Unsupported(capability=Capability.SEND_IN_COMMIT.value, engine=self.engine)
        version = await self._commit(operations, sends if self._sends_inside else (), urgent=urgent)
        if sends and self._outbox is not None and not self._sends_inside:
            await self._outbox.send_after_commit(sends)
        return version

    @abstractmethod
    async def _commit(self, operations: Sequence[Operation], sends: Sequence[Send], *, urgent: bool) -> int:
        """Commit checked operations and these messages."""

    # Reads by key.

    async def get_many(self, keys: Iterable[str]) -> Settled:
        found: dict[str, Entry] = {}
        failed: dict[str, PlatformError] = {}
        wanted = _readable(keys, failed)
        for start in range(0, len(wanted), _CHUNK):
            chunk = wanted[start : start + _CHUNK]
            try:
                found.update((row[0], Entry(*row)) for row in await self._read_keys(chunk))
            except PlatformError as error:
                failed.update(dict.fromkeys(chunk, error))
        missing = tuple(key for key in wanted if key not in found and key not in failed)
        return Settled(found, missing, failed)

    @abstractmethod
    async def _read_keys(self, keys: list[str]) -> Sequence[Any]:
        """The rows of those of these keys that exist."""

    async def list(
        self, prefix: str, *, after: str | None = None, limit: int = PAGE, exclude: Sequence[str] = ()
    ) -> Page[str]:
        rows = await self._read_range("key", prefix, after, limit, exclude)
        keys = tuple(row[0] for row in rows[:limit])
        return Page(keys, keys[-1] if len(rows) > limit else None)

    async def scan(
        self, prefix: str, *, after: str | None = None, limit: int = PAGE, exclude: Sequence[str] = ()
    ) -> EntryPage:
        rows = await self._read_range(self.entry_columns, prefix, after, limit, exclude)
        items = tuple(starmap(Entry, rows[:limit]))
        return EntryPage(items, items[-1].key if len(rows) > limit else None)

    @abstractmethod
    async def _read_range(
        self, what: str, prefix: str, after: str | None, limit: int, exclude: Sequence[str]
    ) -> Sequence[Any]:
        """One row more than the limit where there are more."""

    # Questions over fields.

    async def _select(self, query: Query) -> EntryPage:
        rows = await self._read_selected(query)
        items = tuple(starmap(Entry, rows[: query.limit]))
        return EntryPage(items, query.cursor(items[-1]) if len(rows) > query.limit else None)

    @abstractmethod
    async def _read_selected(self, query: Query) -> Sequence[Any]:
        """One row more than the limit where there are more."""

    async def count_all(self, prefix: str, *, audiences: Audiences) -> Counts:
        collection = collection_of(prefix)
        check_audiences(collection, audiences)
        return await self._count(collection, collection.counted, audiences)

    async def _search(self, query: CheckedSearch) -> Found:
        if not query.terms.terms or query.audiences == frozenset():
            return Found(())
        rows, last = await self._read_candidates(query), len(query.collection.searched) + 1
        hits = (SearchCandidate(row[0], tuple(row[1:last]), tuple(row[last:])) for row in rows[: query.limit])
        return Found(tuple(hits), truncated=len(rows) > query.limit)

    @abstractmethod
    async def _read_candidates(self, query: CheckedSearch) -> Sequence[Any]:
        """One row more than the limit where there are more: key, terms of each searched field, wanted fields."""

    # Following what changes.

    async def wait_for_change(self, cursor: str, timeout_ms: int) -> bool:
        place = self._place(cursor)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        with self._db.watch(self.changes_channel) as watch:
            while await self._last_change() == place:
                left = deadline - loop.time()
                if left <= 0:
                    return False
                await watch.changed(left)
        return True

    @abstractmethod
    def _place(self, cursor: str) -> object:
        """The position that a cursor names; raises CursorGone if it is malformed."""

    @abstractmethod
    async def _last_change(self) -> object:
        """The position of the last change."""


def _readable(keys: Iterable[str], failed: dict[str, PlatformError]) -> list[str]:
    """The valid keys, each once; invalid ones go into `failed`."""
    wanted = list(dict.fromkeys(keys))
    # Checked together, because comparing a name with its neighbours asks for hundreds.
    joined = "".join(wanted)
    if (
        joined.isascii()
        and "\0" not in joined
        and all(wanted)
        and max(map(len, wanted), default=0) <= MAX_KEY
    ):
        return wanted
    readable = []
    for key in wanted:
        try:
            check_key(key)
        except InvalidInput as error:
            failed[key] = error
        else:
            readable.append(key)
    return readable
