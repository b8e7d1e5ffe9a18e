"""A PostgreSQL store at one moment: one REPEATABLE READ transaction on a separate connection. It neither creates nor
migrates the database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncpg

from vskill_core.errors import NotFound
from vskill_platform.ledger.broker.contract import DeadLetter
from vskill_platform.ledger.broker.postgres import read_dead_letters
from vskill_platform.ledger.database.migrations import check_version, load_migrations
from vskill_platform.ledger.database.postgres import (
    CONNECT_S,
    driver_options,
    read_version,
    translate_errors,
)
from vskill_platform.ledger.kv.contract import StoreSnapshot
from vskill_platform.ledger.kv.entries import StoredRecord
from vskill_platform.setting_values import shown_location

_RECORDS = """
SELECT key, value, expires_at FROM records
WHERE key > $1 AND ($2::text IS NULL OR key <= $2) AND (expires_at IS NULL OR expires_at > $3)
ORDER BY key LIMIT $4
"""


@asynccontextmanager
async def open_postgres_snapshot(location: str, now: int) -> AsyncIterator[StoreSnapshot]:
    """`now` decides which caches have expired."""
    place = shown_location(location)
    with translate_errors(place):
        connection = await asyncpg.connect(**driver_options(location))
    try:
        with translate_errors(place):
            await connection.transaction(isolation="repeatable_read", readonly=True).start()
            # The first statement fixes what this transaction sees.
            version = await read_version(connection)
        if not version:
            raise NotFound(f"There is no store in {place}.")
        check_version(place, version, await asyncio.to_thread(load_migrations, "postgres"))
        yield PostgresSnapshot(connection, place, now)
    finally:
        with suppress(Exception):
            await connection.close(timeout=CONNECT_S)


class PostgresSnapshot(StoreSnapshot):
    """What one transaction sees of a database."""

    def __init__(self, connection: Any, place: str, now: int) -> None:
        self._connection = connection
        self._place = place
        self._now = now

    async def records(
        self, after: str = "", until: str | None = None, limit: int | None = None
    ) -> list[StoredRecord]:
        with translate_errors(self._place):
            rows = await self._connection.fetch(_RECORDS, after, until, self._now, limit)
        return [StoredRecord(*row) for row in rows]

    async def dead_letters(self) -> list[DeadLetter]:
        with translate_errors(self._place):
            return await read_dead_letters(self._connection)
