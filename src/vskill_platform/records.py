"""What all stores share: reading and decoding records, reporting skipped ones, and retrying writes. Reads here raise if
they fail: an unreadable record must not look like a missing one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

import msgspec

from vskill_core.errors import Conflict, PlatformError, RecordMalformed, StoreUnavailable
from vskill_platform.domain.people.namespace import PUBLIC, Audiences, may_read
from vskill_platform.ledger.kv.collections import RecordKind
from vskill_platform.ledger.kv.contract import PAGE, iterate_pages
from vskill_platform.ledger.kv.entries import ABSENT, Entry, EntryPage
from vskill_platform.ledger.kv.query import Condition
from vskill_platform.worker_context import Env, require_env

T = TypeVar("T")

#: A log line names at most this many skipped keys; the count is always exact.
KEYS_IN_LOG = 20

#: How often a write is retried after a conflict or an unknown outcome before the error is raised.
TRIES = 50
#: The pause after an unavailable store, doubled up to the most.
PAUSE_MS = 20
PAUSE_MOST_MS = 1_000
#: An unavailable store is not retried after this long either: each try may take the engine's own timeout.
UNAVAILABLE_S = 2.0


def decode(entry: Entry, kind: type[T]) -> T:
    """The typed record, or RecordMalformed, which names the key and what is wrong with it."""
    try:
        return msgspec.json.decode(entry.value, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordMalformed(f"{entry.key}: {error}", key=entry.key, reason=str(error)) from error


def read_count(entry: Entry | None) -> int:
    """The number in a counter, 0 where there is none, or RecordMalformed."""
    try:
        return 0 if entry is None else int(entry.value)
    except ValueError as error:
        key = "" if entry is None else entry.key
        raise RecordMalformed(f"{key} is not a number", key=key) from error


class _AudienceField(msgspec.Struct, frozen=True):
    """The only field that is decoded before we know that the reader may read the record."""

    audience: str = PUBLIC


def audience_of(entry: Entry) -> str | None:
    """The audience of a stored record, read without the rest of it. A record without one is public; None, which no
    reader has, for a malformed record or audience."""
    try:
        return msgspec.json.decode(entry.value, type=_AudienceField).audience
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def readable(entry: Entry | None, audiences: Audiences) -> Entry | None:
    """The entry if readers of these audiences may read it, else None."""
    return entry if entry is not None and may_read(audience_of(entry), audiences) else None


class Skips:
    """What one call left out, by reason: counted, shown in metrics, and logged once."""

    def __init__(self, operation: str) -> None:
        self._operation = operation
        self._keys: dict[str, list[str]] = {}

    def failed(self, failures: dict[str, PlatformError]) -> None:
        for key in failures:
            self.add("failed", key)

    def missing(self, keys: tuple[str, ...]) -> None:
        for key in keys:
            self.add("missing", key)

    def add(self, reason: str, key: str) -> None:
        self._keys.setdefault(reason, []).append(key)

    def decode(self, entry: Entry, kind: type[T]) -> T | None:
        """The typed record, or None and a note that it was malformed."""
        try:
            return decode(entry, kind)
        except RecordMalformed:
            self.add("malformed", entry.key)
            return None

    def decode_all(self, entries: Iterable[Entry], kind: type[T]) -> list[T]:
        """The typed records without those that are malformed, which are noted."""
        return [record for entry in entries if (record := self.decode(entry, kind)) is not None]

    @property
    def count(self) -> int:
        return sum(map(len, self._keys.values()))

    def report(self, env: Env) -> None:
        """Log and count it once; nothing is ever skipped silently."""
        for reason, keys in self._keys.items():
            env.metrics.records_skipped.labels(self._operation, reason).inc(len(keys))
            env.log.warning(
                "records skipped",
                operation=self._operation,
                reason=reason,
                count=len(keys),
                keys=keys[:KEYS_IN_LOG],
            )


def decode_readable(entries: Iterable[Entry], kind: type[T], operation: str) -> list[T]:
    """The typed records; those that are malformed are left out, counted and logged."""
    skips = Skips(operation)
    records = skips.decode_all(entries, kind)
    skips.report(require_env("log"))
    return records


# Reading.


def entries_of(page: EntryPage) -> tuple[Entry, ...]:
    """The entries of a page; raises what a read of it failed with."""
    for error in page.failed.values():
        raise error
    return page.items


async def read_record(key: str, kind: type[T]) -> tuple[T | None, int]:
    """The record and its version; None and ABSENT where there is none."""
    entry = await require_env("kv").kv.get(key)
    return (None, ABSENT) if entry is None else (decode(entry, kind), entry.version)


async def read_entries(wanted: Iterable[str]) -> dict[str, Entry]:
    """The entries of these keys, by key; missing ones are left out."""
    settled = await require_env("kv").kv.get_many(wanted)
    for error in settled.failed.values():
        raise error
    return settled.found


async def iter_entries(prefix: str, page: int = PAGE) -> AsyncIterator[Entry]:
    """Every entry under a prefix, in the order of keys, a page at a time."""
    async for entries in iterate_pages(require_env("kv").kv, prefix, page=page):
        for entry in entries_of(entries):
            yield entry


async def iter_selected(
    prefix: str,
    *,
    audiences: Audiences,
    where: Mapping[str, Condition] | None = None,
    order_by: str = "key",
    under: str = "",
) -> AsyncIterator[Entry]:
    """Every entry that `KV.select` finds, a page at a time."""
    after: str | None = None
    while True:
        page = await require_env("kv").kv.select(
            prefix, audiences=audiences, where=where, order_by=order_by, after=after, under=under
        )
        for entry in entries_of(page):
            yield entry
        after = page.after
        if after is None:
            return


async def iter_readable_records(collection: RecordKind, kind: type[T], operation: str) -> AsyncIterator[T]:
    """Every record of a collection that can be read; the others are left out, counted and logged."""
    env = require_env("kv")
    skips = Skips(operation)
    async for page in iterate_pages(env.kv, collection.prefix, exclude=collection.exclude):
        skips.failed(page.failed)
        for record in skips.decode_all(page.items, kind):
            yield record
    skips.report(env)


# Writing.


def note_store_failure() -> None:
    """Note that the store failed: claims that expire now do so because of it, not because their worker died."""
    env = require_env("kv")
    env.shortages.store_failed_at = env.kv.now()


async def persist(write: Callable[[], Awaitable[T]]) -> T:
    """Retry a write: at once after a conflict, with a pause if the store is unavailable."""
    pause = PAUSE_MS
    clock = require_env("clock").clock
    began = clock.monotonic()
    for tries_left in range(TRIES - 1, -1, -1):
        try:
            return await write()
        except Conflict:
            if not tries_left:
                raise
        except StoreUnavailable:
            note_store_failure()
            waited_s = clock.monotonic() - began
            if not tries_left or pause > PAUSE_MOST_MS or waited_s > UNAVAILABLE_S:
                raise
            await asyncio.sleep(pause / 1000)
            pause *= 2
    raise AssertionError("unreachable")  # pragma: no cover - the last try returns or raises
