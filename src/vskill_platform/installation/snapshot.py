"""What `migrate` and `backup` share: counting and hashing a store's snapshot, and opening a store to fill.

Messages are hints and are not copied: recovery sends them again from the records.
"""

import hashlib
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec

from vskill_platform.bootstrap import check_movable, open_store
from vskill_platform.ledger.broker.contract import Broker
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.ledger.kv.contract import KV, StoreSnapshot
from vskill_platform.ledger.kv.entries import Operation, Put, StoredRecord
from vskill_platform.settings import Settings

#: Called with the stage, how much of it is done and, if known, how much there is.
Progress = Callable[[str, int, int | None], None]


def tell_nobody(_stage: str, _done: int, _total: int | None) -> None:
    """Nobody watches."""


_SYSTEM_CLOCK = SystemClock()
#: A record that says that this store is being filled from another one; never copied.
MARKER = "control:copy"


class Totals(msgspec.Struct, frozen=True):
    """What a snapshot holds, without caches, which may expire meanwhile."""

    records: int
    #: Over the keys and values of all records, in the order of the keys.
    digest: str
    dead_letters: int


class Tally:
    """Counts and hashes records as they pass."""

    def __init__(self) -> None:
        self.records = 0
        self._hash = hashlib.sha256()

    def add(self, records: Iterable[StoredRecord]) -> None:
        for record in records:
            if record.expires_at is None and record.key != MARKER:
                self.records += 1
                key, value = record.key.encode(), record.value.encode()
                self._hash.update(b"%d:%b%d:%b" % (len(key), key, len(value), value))

    def totals(self, dead_letters: int) -> Totals:
        return Totals(self.records, self._hash.hexdigest(), dead_letters)


async def count_totals(snapshot: StoreSnapshot, progress: Progress = tell_nobody) -> Totals:
    tally = Tally()
    async for page in snapshot.pages():
        tally.add(page)
        progress("records compared", tally.records, None)
    return tally.totals(len(await snapshot.dead_letters()))


@asynccontextmanager
async def open_target(location: str) -> AsyncIterator[tuple[KV, Broker]]:
    """A store to fill and its queue; creates and migrates it if necessary."""
    check_movable(location)
    async with AsyncExitStack() as stack:
        yield await open_store(Settings(store=location), stack, _SYSTEM_CLOCK)


def puts(records: Iterable[StoredRecord], now: int) -> list[Operation]:
    """Puts of these records at this time. Quiet: nobody follows the changes of a store that is being filled."""
    return [
        Put(
            record.key,
            record.value.encode(),
            quiet=True,
            ttl_ms=None if record.expires_at is None else max(record.expires_at - now, 1),
        )
        for record in records
    ]
