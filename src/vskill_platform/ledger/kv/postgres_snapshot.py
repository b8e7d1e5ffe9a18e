"""A PostgreSQL store at one moment: one REPEATABLE READ transaction on a separate connection. It neither creates nor
migrates the database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from vskill_platform.ledger.broker.contract import DeadLetter
from vskill_platform.ledger.broker.postgres import read_dead_letters
from vskill_platform.ledger.database.postgres import open_view, translate_errors
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
    async with open_view(location) as connection:
        yield PostgresSnapshot(connection, shown_location(location), now)


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
