"""A SQLite store at one moment: a separate read-only connection in one transaction. The write-ahead log keeps what it
sees, and grows as long as it is open. It neither creates nor migrates the file."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import starmap
from pathlib import Path
from typing import TypeVar

from vskill_core.errors import NotFound
from vskill_platform.ledger.broker.contract import DeadLetter
from vskill_platform.ledger.broker.sqlite import read_dead_letters
from vskill_platform.ledger.database.connections import connect_view
from vskill_platform.ledger.database.failures import translate
from vskill_platform.ledger.database.migrations import check_schema, load_migrations
from vskill_platform.ledger.kv.contract import StoreSnapshot
from vskill_platform.ledger.kv.entries import StoredRecord

T = TypeVar("T")

_RECORDS = """
SELECT key, value, expires_at FROM records
WHERE key > ? AND (? IS NULL OR key <= ?) AND (expires_at IS NULL OR expires_at > ?) ORDER BY key LIMIT ?
"""


@asynccontextmanager
async def open_sqlite_snapshot(path: Path, now: int) -> AsyncIterator[StoreSnapshot]:
    """`now` decides which caches have expired."""
    connection = await asyncio.to_thread(_begin, path)
    try:
        yield SqliteSnapshot(connection, path, now)
    finally:
        await asyncio.to_thread(connection.close)


def _begin(path: Path) -> sqlite3.Connection:
    connection = connect_view(path)
    try:
        # The first read fixes what this transaction sees.
        connection.execute("BEGIN")
        version = check_schema(connection, path, load_migrations("sqlite"))
    except BaseException as error:
        connection.close()
        if isinstance(error, sqlite3.Error):
            raise translate(error, path) from error
        raise
    if not version:
        connection.close()
        raise NotFound(f"There is no store in {path}.", file=str(path))
    return connection


class SqliteSnapshot(StoreSnapshot):
    """What one transaction sees of a file."""

    def __init__(self, connection: sqlite3.Connection, path: Path, now: int) -> None:
        self._connection = connection
        self._path = path
        self._now = now

    async def records(
        self, after: str = "", until: str | None = None, limit: int | None = None
    ) -> list[StoredRecord]:
        given = (after, until, until, self._now, -1 if limit is None else limit)
        return await self._read(
            lambda connection: list(starmap(StoredRecord, connection.execute(_RECORDS, given)))
        )

    async def dead_letters(self) -> list[DeadLetter]:
        return await self._read(read_dead_letters)

    async def _read(self, function: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return await asyncio.to_thread(function, self._connection)
        except sqlite3.Error as error:
            raise translate(error, self._path) from error
