"""Commits to the PostgreSQL store: one call of the function `commit_records` (database/sql), so one round trip. With
messages for the queue in the same database, one transaction holds both."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec

from vskill_core.errors import Conflict, RecordMalformed
from vskill_platform.domain.messages import Send
from vskill_platform.ledger.broker.postgres import send_in
from vskill_platform.ledger.database.postgres import PostgresDatabase
from vskill_platform.ledger.kv.collections import collection_holding
from vskill_platform.ledger.kv.entries import Add, Assert, Delete, Operation, Put
from vskill_platform.ledger.kv.postgres_query import row_of

_COMMIT = (
    "SELECT version, refused_key, refused_version FROM commit_records($1, $2, $3, $4, $5, $6, $7, $8, $9)"
)
#: As the version of a refused key: its value is not an integer.
_NOT_A_COUNTER = -1


async def commit(database: PostgresDatabase, operations: Sequence[Operation], sends: Sequence[Send]) -> int:
    """Commit checked operations and these messages."""
    now = database.now()
    call = _arguments(operations, now)
    if not sends:
        return _outcome(await database.fetchrow(_COMMIT, *call))
    async with database.connection() as connection:
        transaction = connection.transaction()
        await transaction.start()
        try:
            version = _outcome(await connection.fetchrow(_COMMIT, *call))
            await send_in(connection, sends, now)
        except BaseException:
            await _roll_back(transaction)
            raise
        await transaction.commit()
    return version


def _arguments(operations: Sequence[Operation], now: int) -> tuple[object, ...]:
    """The operations as the arguments of `commit_records`."""
    puts = [one for one in operations if isinstance(one, Put)]
    adds = [one for one in operations if isinstance(one, Add)]
    expected = {one.key: version for one in operations if (version := _expected(one)) is not None}
    rows = [row_of(one.key, one.value, None if one.ttl_ms is None else now + one.ttl_ms) for one in puts]
    counters: list[dict[str, object]] = [
        {"key": one.key, "collection": _collection(one.key), "n": one.n} for one in adds
    ]
    return (
        [one.key for one in operations if isinstance(one, Put | Delete | Add)],
        [one.key for one in operations if isinstance(one, Assert)],
        list(expected),
        list(expected.values()),
        _json(rows),
        _json(counters),
        [one.key for one in operations if isinstance(one, Delete)],
        # Changes that followers see.
        [one.key for one in operations if isinstance(one, Add) or (isinstance(one, Put) and not one.quiet)],
        now,
    )


def _expected(operation: Operation) -> int | None:
    if isinstance(operation, Assert):
        return operation.version
    return operation.if_version if isinstance(operation, Put | Delete) else None


def _collection(key: str) -> str | None:
    collection = collection_holding(key)
    return None if collection is None else collection.name


def _json(rows: list[dict[str, object]]) -> str | None:
    return msgspec.json.encode(rows).decode() if rows else None


def _outcome(row: Sequence[object]) -> int:
    version, refused_key, actual = row
    if refused_key is None:
        assert isinstance(version, int)  # noqa: S101 - what the function returns if nothing is refused
        return version
    if actual == _NOT_A_COUNTER:
        raise RecordMalformed(f"{refused_key} is not a counter", key=refused_key, reason="not an integer")
    raise Conflict(
        f"{refused_key} is at version {actual}, not the one named", key=refused_key, version=actual
    )


async def _roll_back(transaction: Any) -> None:
    """Suppress errors of the rollback: the caller gets the original one."""
    with contextlib.suppress(Exception):
        await asyncio.shield(transaction.rollback())
