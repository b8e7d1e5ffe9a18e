"""One consistent view of a store, read beside the processes that write it, and a place to put it: what moving up to
another engine (`migrate`) and backing up (`backup`) have in common.

A view is one read transaction: SQLite's write-ahead log and PostgreSQL's REPEATABLE READ both keep it still while
others go on writing. It knows two tables, which every release has had: `records` and `dead_letters`. Messages are
hints and are left behind: recovery sends them again from the records.
"""

import asyncio
import contextlib
import hashlib
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from vskill_platform.bootstrap import POSTGRES, open_store
from vskill_platform.clock import SystemClock
from vskill_platform.database.failures import translate
from vskill_platform.domain.errors import InvalidSettings, NotFound
from vskill_platform.kv.contract import KV
from vskill_platform.kv.entries import Operation, Put
from vskill_platform.settings import Settings, shown_location

_SYSTEM_CLOCK = SystemClock()
#: Rows of one read and of one commit.
PAGE = 500
#: A record that says that this store is being filled from another one; never copied.
MARKER = "control:copy"


class Row(msgspec.Struct, frozen=True, array_like=True):
    """A record as it is stored."""

    key: str
    value: str
    #: Only caches end: milliseconds, by the store's clock.
    expires_at: int | None = None


class Letter(msgspec.Struct, frozen=True, array_like=True):
    """A dead letter; its number is the queue's own affair."""

    key: str | None
    reason: str
    deliveries: int
    sent_at: int
    died_at: int
    body: bytes


class Totals(msgspec.Struct, frozen=True):
    """What a view holds. Caches may end while one looks, so they are counted in nothing."""

    records: int
    #: Over the keys and values of all records, in the order of the keys.
    digest: str
    dead_letters: int


class Tally:
    """Counts and hashes records as they pass."""

    def __init__(self) -> None:
        self.records = 0
        self._hash = hashlib.sha256()

    def add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if row.expires_at is None and row.key != MARKER:
                self.records += 1
                key, value = row.key.encode(), row.value.encode()
                self._hash.update(b"%d:%b%d:%b" % (len(key), key, len(value), value))

    def totals(self, dead_letters: int) -> Totals:
        return Totals(self.records, self._hash.hexdigest(), dead_letters)


class Snapshot(ABC):
    """A view of a store that does not change while it is read."""

    @abstractmethod
    async def rows(self, after: str, until: str | None = None, limit: int | None = None) -> list[Row]:
        """Records that have not ended, in the order of their keys' bytes, after one key and up to another."""

    @abstractmethod
    async def letters(self) -> list[Letter]:
        """All dead letters, oldest first."""

    async def pages(self, after: str = "") -> AsyncIterator[list[Row]]:
        while page := await self.rows(after, limit=PAGE):
            yield page
            after = page[-1].key

    async def totals(self) -> Totals:
        tally = Tally()
        async for page in self.pages():
            tally.add(page)
        return tally.totals(len(await self.letters()))


class SqliteSnapshot(Snapshot):
    """Of a file, by a connection of its own in read-only mode."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    async def rows(self, after: str, until: str | None = None, limit: int | None = None) -> list[Row]:
        statement = """
            SELECT key, value, expires_at FROM records WHERE key > ? AND (? IS NULL OR key <= ?)
            AND (expires_at IS NULL OR expires_at > ?) ORDER BY key LIMIT ?
        """
        given = (after, until, until, _now(), -1 if limit is None else limit)
        return [Row(*row) for row in await self._fetch(statement, given)]

    async def letters(self) -> list[Letter]:
        statement = "SELECT key, reason, deliveries, sent_at, died_at, body FROM dead_letters ORDER BY id"
        return [_letter(row) for row in await self._fetch(statement, ())]

    async def _fetch(self, statement: str, given: Sequence[object]) -> list[Any]:
        return await asyncio.to_thread(self._read, statement, given)

    def _read(self, statement: str, given: Sequence[object]) -> list[Any]:
        with _sqlite_errors(self._path):
            return self._connection.execute(statement, given).fetchall()


class PostgresSnapshot(Snapshot):
    """Of a database, in one transaction."""

    def __init__(self, connection: Any, place: str) -> None:
        self._connection = connection
        self._place = place

    async def rows(self, after: str, until: str | None = None, limit: int | None = None) -> list[Row]:
        statement = """
            SELECT key, value, expires_at FROM records WHERE key > $1 AND ($2::text IS NULL OR key <= $2)
            AND (expires_at IS NULL OR expires_at > $3) ORDER BY key LIMIT $4
        """
        found = await self._fetch(statement, after, until, _now(), limit)
        return [Row(*row) for row in found]

    async def letters(self) -> list[Letter]:
        statement = "SELECT key, reason, deliveries, sent_at, died_at, body FROM dead_letters ORDER BY id"
        return [_letter(row) for row in await self._fetch(statement)]

    async def _fetch(self, statement: str, *given: object) -> list[Any]:
        from vskill_platform.database.postgres import translated  # noqa: PLC0415 - an extra

        with translated(self._place):
            return list(await self._connection.fetch(statement, *given))


def _letter(row: Any) -> Letter:
    key, reason, deliveries, sent_at, died_at, body = row
    return Letter(key, reason, deliveries, sent_at, died_at, bytes(body))


@asynccontextmanager
async def open_snapshot(location: str) -> AsyncIterator[Snapshot]:
    """The store as it is now. It is neither made nor brought to another schema."""
    engine, place = split_location(location)
    if engine == "sqlite":
        async with _sqlite_snapshot(Path(place)) as view:
            yield view
    else:
        async with _postgres_snapshot(location) as view:
            yield view


@asynccontextmanager
async def _sqlite_snapshot(path: Path) -> AsyncIterator[Snapshot]:
    connection = await asyncio.to_thread(_open_view, path)
    try:
        yield SqliteSnapshot(connection, path)
    finally:
        await asyncio.to_thread(connection.close)


def _open_view(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise NotFound(f"there is no store in {path}", file=str(path))
    with _sqlite_errors(path):
        uri = f"{path.resolve().as_uri()}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        # The first read fixes what this transaction sees.
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM (SELECT 1 FROM records LIMIT 1)").fetchone()
    return connection


@asynccontextmanager
async def _postgres_snapshot(location: str) -> AsyncIterator[Snapshot]:
    import asyncpg  # noqa: PLC0415 - an extra

    from vskill_platform.database.postgres import CONNECT_S, translated  # noqa: PLC0415

    place = shown_location(location)
    with translated(place):
        connection = await asyncpg.connect(location, timeout=CONNECT_S)
    try:
        with translated(place):
            transaction = connection.transaction(isolation="repeatable_read", readonly=True)
            await transaction.start()
        yield PostgresSnapshot(connection, place)
    finally:
        with contextlib.suppress(Exception):
            await connection.close(timeout=CONNECT_S)


# Writing.


@asynccontextmanager
async def open_target(location: str) -> AsyncIterator[KV]:
    """A store to fill; it is made, and its schema brought up to date, if need be."""
    split_location(location)
    async with AsyncExitStack() as stack:
        kv, _ = await open_store(Settings(store=location), stack, _SYSTEM_CLOCK)
        yield kv


def puts(rows: Iterable[Row]) -> list[Operation]:
    """Quiet: nobody follows the changes of a store that is being filled."""
    now = _now()
    return [
        Put(
            row.key,
            row.value.encode(),
            quiet=True,
            ttl_ms=None if row.expires_at is None else max(row.expires_at - now, 1),
        )
        for row in rows
    ]


async def add_letters(location: str, letters: Sequence[Letter]) -> None:
    """Into the store's own queue, under new numbers."""
    if not letters:
        return
    engine, place = split_location(location)
    rows = [(one.key, one.reason, one.deliveries, one.sent_at, one.died_at, one.body) for one in letters]
    if engine == "sqlite":
        await asyncio.to_thread(_add_to_file, Path(place), rows)
        return
    import asyncpg  # noqa: PLC0415 - an extra

    from vskill_platform.database.postgres import translated  # noqa: PLC0415

    with translated(shown_location(location)):
        connection = await asyncpg.connect(location)
        try:
            async with connection.transaction():
                await connection.executemany(_ADD_LETTER.format("$1, $2, $3, $4, $5, $6"), rows)
        finally:
            await connection.close()


def _add_to_file(path: Path, rows: Sequence[tuple[object, ...]]) -> None:
    with (
        _sqlite_errors(path),
        contextlib.closing(sqlite3.connect(path, timeout=30)) as connection,
        connection,
    ):
        connection.executemany(_ADD_LETTER.format("?, ?, ?, ?, ?, ?"), rows)


_ADD_LETTER = "INSERT INTO dead_letters (key, reason, deliveries, sent_at, died_at, body) VALUES ({})"


@contextlib.contextmanager
def _sqlite_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise translate(error, path) from error


def split_location(location: str) -> tuple[str, str]:
    """The engine and the place, of the engines whose contents can be moved."""
    engine, _, place = location.partition(":")
    if (engine == "sqlite" and place) or engine in POSTGRES:
        return engine, place
    fix = "write sqlite:PATH or postgresql://USER@HOST/DATABASE"
    raise InvalidSettings(f"{shown_location(location)!r} is no store that can be moved: {fix}.", fix=fix)


def _now() -> int:
    return _SYSTEM_CLOCK.now()
