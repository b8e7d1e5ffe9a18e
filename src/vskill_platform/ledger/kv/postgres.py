"""The record store on PostgreSQL, for more than one machine: the same contract, the same declared fields.

A commit is one call of the function `commit_records` (database/sql/postgres), so it costs one round trip; queries over
fields are in `postgres_query`. Values are text, times are integer milliseconds, keys are compared byte by byte.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec

from vskill_core.errors import Conflict, CursorGone, RecordMalformed
from vskill_platform.domain.messages import Send
from vskill_platform.domain.people.namespace import Audiences
from vskill_platform.ledger.broker.contract import Broker
from vskill_platform.ledger.broker.postgres import PostgresBroker, send_in
from vskill_platform.ledger.database.postgres import PostgresDatabase
from vskill_platform.ledger.kv.checks import check_key, check_texts
from vskill_platform.ledger.kv.collections import RecordKind, collection_holding
from vskill_platform.ledger.kv.contract import PAGE, Counts, StoreSnapshot
from vskill_platform.ledger.kv.entries import (
    Add,
    Assert,
    Change,
    Delete,
    Entry,
    Operation,
    Overlap,
    Page,
    Put,
)
from vskill_platform.ledger.kv.fields import end_of
from vskill_platform.ledger.kv.overlaps import OverlapQuery, postgres_overlaps
from vskill_platform.ledger.kv.postgres_fields import count, fold_counts
from vskill_platform.ledger.kv.postgres_query import (
    ENTRY,
    Arguments,
    key_ranges,
    row_of,
    search,
    select,
)
from vskill_platform.ledger.kv.postgres_snapshot import open_postgres_snapshot
from vskill_platform.ledger.kv.query import CheckedSearch, Query
from vskill_platform.ledger.kv.sql import SqlKV

CHANGES = "vskill_changes"
_GET = f"SELECT {ENTRY} FROM records WHERE key = $1 AND (expires_at IS NULL OR expires_at > $2)"  # noqa: S608
_GET_MANY = f"SELECT {ENTRY} FROM records WHERE key = ANY ($1) AND (expires_at IS NULL OR expires_at > $2)"  # noqa: S608
_COMMIT = (
    "SELECT version, refused_key, refused_version FROM commit_records($1, $2, $3, $4, $5, $6, $7, $8, $9)"
)
#: As the version of a refused key: its value is not an integer.
_NOT_A_COUNTER = -1
#: The bits of a change's number above these identify the store that gave it.
_STORE_BITS = 40
#: All transactions below this one have ended, so no change can appear there any more.
_HORIZON = "pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
_CHANGES = """
SELECT xid, seq, key, version, deleted, at FROM changes
WHERE (xid, seq) > ($1, $2) AND (xid, seq) <= ($3, $4) AND key >= $5 AND ($6::text IS NULL OR key < $6)
ORDER BY xid, seq LIMIT $7
"""
#: The position of the last visible change; of the last swept one if there is none.
_LAST = f"""
SELECT xid, seq FROM (
    (SELECT xid, seq FROM changes WHERE xid < {_HORIZON} ORDER BY xid DESC, seq DESC LIMIT 1)
    UNION ALL SELECT xid, seq FROM changes_swept
) AS place ORDER BY xid DESC, seq DESC LIMIT 1
"""  # noqa: S608 - our own text


class PostgresKV(SqlKV[PostgresDatabase]):
    """Records in PostgreSQL."""

    engine = "postgresql"
    entry_columns = ENTRY
    changes_channel = CHANGES

    def __init__(self, database: PostgresDatabase, outbox: Broker | None = None) -> None:
        own = isinstance(outbox, PostgresBroker) and outbox.database is database
        super().__init__(database, outbox, sends_inside=own)

    async def _commit(self, operations: Sequence[Operation], sends: Sequence[Send], *, urgent: bool) -> int:
        return await _commit(self._db, operations, sends)

    # Reads by key.

    async def get(self, key: str) -> Entry | None:
        check_key(key)
        row = await self._db.fetchrow(_GET, key, self.now())
        return None if row is None else Entry(*row)

    async def _read_keys(self, keys: list[str]) -> Sequence[Any]:
        return await self._db.fetch(_GET_MANY, keys, self.now())

    async def _read_range(
        self, what: str, prefix: str, after: str | None, limit: int, exclude: Sequence[str]
    ) -> Sequence[Any]:
        check_texts("prefix", prefix, after or "", *exclude)
        if "\0" in prefix:
            return ()
        # No key has a NUL, and the server refuses it even in a comparison: the part before it compares the same.
        after = None if after is None else after.partition("\0")[0]
        exclude = [one for one in exclude if "\0" not in one]
        arguments = Arguments()
        ranges = key_ranges(arguments, prefix, after, exclude)
        if not ranges:
            return ()
        statement = (
            f"SELECT {what} FROM records WHERE ({ranges}) "  # noqa: S608 - our own text
            f"AND (expires_at IS NULL OR expires_at > {arguments.add(self.now())}) "
            f"ORDER BY key LIMIT {arguments.add(limit + 1)}"
        )
        return await self._db.fetch(statement, *arguments.values)

    # Questions over fields.

    async def _read_selected(self, query: Query) -> Sequence[Any]:
        statement, arguments = select(query, self.now())
        return await self._db.fetch(statement, *arguments) if statement else ()

    async def _count(self, collection: RecordKind, fields: Sequence[str], audiences: Audiences) -> Counts:
        return await count(self._db, collection, fields, audiences)

    async def _read_candidates(self, query: CheckedSearch) -> Sequence[Any]:
        statement, arguments = search(query, self.now())
        # Planned for these arguments: a common word needs another plan than a rare one.
        return await self._db.fetch_once(statement, *arguments)

    async def _overlap(self, query: OverlapQuery) -> tuple[Overlap, ...]:
        statement, arguments = postgres_overlaps(query, self.now())
        return tuple(Overlap(*row) for row in await self._db.fetch(statement, *arguments))

    # Following what changes.

    async def changes(self, prefix: str, *, after: str | None = None, limit: int = PAGE) -> Page[Change]:
        check_texts("prefix", prefix)
        place = None if after is None else self._place(after)
        async with self._db.transaction("repeatable_read") as connection:
            swept = tuple(await connection.fetchrow("SELECT xid, seq FROM changes_swept"))
            last = tuple(await connection.fetchrow(_LAST))
            start = swept if place is None else place
            # A cursor of another store has other upper bits (0017_change_numbers.sql).
            if not swept <= start <= last or start[1] >> _STORE_BITS != swept[1] >> _STORE_BITS:
                raise CursorGone(cursor=after)
            rows = await connection.fetch(_CHANGES, *start, *last, prefix, end_of(prefix), limit)
        items = tuple(
            Change(_cursor(xid, seq), key, version, deleted, at)
            for xid, seq, key, version, deleted, at in rows
        )
        return Page(items, items[-1].cursor if len(items) == limit else _cursor(*last))

    async def change_cursor(self) -> str:
        return _cursor(*await self._last_change())

    async def _last_change(self) -> tuple[int, int]:
        xid, seq = await self._db.fetchrow(_LAST)
        return xid, seq

    def _place(self, cursor: str) -> tuple[int, int]:
        xid, _, seq = cursor.partition("-")
        if (
            not (xid.isascii() and xid.isdigit() and seq.isascii() and seq.isdigit())
            or max(len(xid), len(seq)) > 19
        ):
            raise CursorGone(cursor=cursor)
        return int(xid), int(seq)

    # Everything at once.

    def snapshot(self) -> AbstractAsyncContextManager[StoreSnapshot]:
        return open_postgres_snapshot(self._db.location, self.now())

    # Keeping house.

    async def sweep(self, *, changes_before: int, limit: int = 5000) -> int:
        await fold_counts(self._db)
        removed = await self._db.fetchval(_SWEEP_EXPIRED, self.now(), limit)
        return int(removed) + int(await self._db.fetchval(_SWEEP_CHANGES, changes_before, limit - removed))

    async def check(self) -> None:
        """Fails on a read-only server, and on one whose log cannot be written: the statement writes an unused log
        message, which is on the disk when it returns."""
        await self._db.fetchval(
            "SELECT nextval('versions') FROM pg_logical_emit_message(true, 'vskill-ready', '')"
        )

    async def risks(self) -> tuple[str, ...]:
        row = await self._db.fetchrow(_DURABILITY)
        return tuple(find_risks(row["fsync"], row["waits_for"], row["standby_names"], row["standbys"]))


#: Every account may read these; an ordinary one sees only the number of standbys.
_DURABILITY = """
SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS waits_for,
    current_setting('synchronous_standby_names') AS standby_names,
    (SELECT count(*) FROM pg_stat_replication WHERE application_name <> 'pg_basebackup') AS standbys
"""


def find_risks(fsync: str, waits_for: str, standby_names: str, standbys: int) -> Iterator[str]:
    """Which of these server settings could lose writes, and what to set instead."""
    if fsync == "off":
        yield "fsync is off: a power cut may lose or damage everything; set fsync = on"
    if waits_for == "off":
        yield "synchronous_commit is off: a crash of the server may lose the last second; set synchronous_commit = on"
    if standbys and (not standby_names or waits_for in ("off", "local")):
        yield (
            "a standby is attached and not synchronous: what was acknowledged may be missing after a failover; set "
            "synchronous_standby_names = 'ANY 1 (*)' and synchronous_commit = on"
        )
    if standby_names and not standbys:
        yield (
            "synchronous_standby_names is set and no standby is attached: every write waits until one is; start a "
            "standby, or clear the setting"
        )


_SWEEP_EXPIRED = """
WITH gone AS (
    DELETE FROM records WHERE key IN (
        SELECT key FROM records WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
    ) RETURNING 1
) SELECT count(*) FROM gone
"""
# The oldest changes in order, up to the first that is young enough to keep.
_SWEEP_CHANGES = """
WITH oldest AS (
    SELECT xid, seq, at FROM changes ORDER BY xid, seq LIMIT $2
), old AS (
    SELECT xid, seq FROM oldest WHERE (xid, seq) < coalesce(
        (SELECT (xid, seq) FROM oldest WHERE at >= $1 ORDER BY xid, seq LIMIT 1), (9223372036854775807, 0)
    )
), gone AS (
    DELETE FROM changes USING old WHERE changes.xid = old.xid AND changes.seq = old.seq
    RETURNING changes.xid, changes.seq
), marked AS (
    UPDATE changes_swept SET (xid, seq) = (SELECT xid, seq FROM gone ORDER BY xid DESC, seq DESC LIMIT 1)
    WHERE EXISTS (SELECT 1 FROM gone)
)
SELECT count(*) FROM gone
"""


def _cursor(xid: int, seq: int) -> str:
    return f"{xid}-{seq}"


# Commits: one call of `commit_records`; with messages for the queue in the same database, one transaction holds both.


async def _commit(database: PostgresDatabase, operations: Sequence[Operation], sends: Sequence[Send]) -> int:
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
    puts = [one for one in operations if isinstance(one, Put)]
    adds = [one for one in operations if isinstance(one, Add)]
    expected = {one.key: version for one in operations if (version := _expected(one)) is not None}
    rows = [row_of(one.key, one.value, None if one.ttl_ms is None else now + one.ttl_ms) for one in puts]
    kinds = [collection_holding(one.key) for one in adds]
    counters: list[dict[str, object]] = [
        {"key": one.key, "collection": kind.name if kind else None, "n": one.n}
        for one, kind in zip(adds, kinds, strict=True)
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
