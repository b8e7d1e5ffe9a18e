"""The record store on SQLite, the default engine: one file, durable, shared by the processes of one machine.

It holds the reads and the changes; `sqlite_commit` holds the writes, `sqlite_query` the queries as SQL, and `database`
the file itself.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from itertools import starmap

import msgspec

from vskill_core.errors import CursorGone, PlatformError
from vskill_platform.domain.messages import Send
from vskill_platform.domain.people.namespace import Audiences, Everything
from vskill_platform.ledger.broker.contract import Broker
from vskill_platform.ledger.broker.sqlite import SqliteBroker
from vskill_platform.ledger.database.sqlite import SqliteDatabase, reader
from vskill_platform.ledger.database.writer import Tx, WriteKind, call_in
from vskill_platform.ledger.kv import sqlite_commit
from vskill_platform.ledger.kv.checks import check_key, check_texts
from vskill_platform.ledger.kv.collections import RecordKind
from vskill_platform.ledger.kv.contract import PAGE, Counts, StoreSnapshot
from vskill_platform.ledger.kv.entries import Change, Entry, JoinedPage, Operation, Overlap, Page
from vskill_platform.ledger.kv.fields import end_of
from vskill_platform.ledger.kv.overlaps import OverlapQuery, sqlite_overlaps
from vskill_platform.ledger.kv.query import CheckedSearch, Query
from vskill_platform.ledger.kv.sql import SqlKV
from vskill_platform.ledger.kv.sqlite_query import (
    ENTRY,
    FEW_AUDIENCES,
    Joined,
    Row,
    count,
    join_ranges,
    key_ranges,
    read_ranges,
    search,
    select,
)
from vskill_platform.ledger.kv.sqlite_snapshot import open_sqlite_snapshot

#: Up to this many rows are read inline; more go to a thread.
_INLINE = 50
#: How much one transaction of a sweep removes, so that no writer waits long for it.
_SWEEP_STEP = 500

_GET = f"SELECT {ENTRY} FROM records WHERE key = ? AND (expires_at IS NULL OR expires_at > ?)"  # noqa: S608
_GET_MANY = """
SELECT r.key, CAST(r.value AS BLOB), r.version FROM json_each(?) AS wanted JOIN records AS r ON r.key = wanted.value
WHERE r.expires_at IS NULL OR r.expires_at > ?
"""
_LAST_CHANGE = "SELECT max(ifnull((SELECT max(seq) FROM changes), 0), (SELECT seq FROM changes_swept))"


class SqliteKV(SqlKV[SqliteDatabase]):
    """Records in a SQLite file."""

    engine = "sqlite"
    entry_columns = ENTRY
    changes_channel = sqlite_commit.CHANGES

    def __init__(self, database: SqliteDatabase, outbox: Broker | None = None) -> None:
        own = isinstance(outbox, SqliteBroker) and outbox.database is database
        super().__init__(database, outbox, sends_inside=own)
        self._send_in: sqlite_commit.SendIn | None = (
            outbox.send_in if isinstance(outbox, SqliteBroker) and own else None
        )
        self._commits = WriteKind("commit", self._run, at_once=64)

    # Writes.

    async def _commit(self, operations: Sequence[Operation], sends: Sequence[Send], *, urgent: bool) -> int:
        return await self._db.write(self._commits, sqlite_commit.prepare(operations, sends), urgent=urgent)

    def _run(self, tx: Tx, commits: Sequence[sqlite_commit.Commit]) -> Sequence[int | PlatformError]:
        group = sqlite_commit.CommitGroup(tx, commits, self.now())
        versions = [group.apply(commit) for commit in commits]
        group.flush(self._send_in)
        return versions

    # Reads by key.

    async def get(self, key: str) -> Entry | None:
        check_key(key)
        rows = self._db.point_read(_GET, (key, self.now()))
        return Entry(*rows[0]) if rows else None

    async def _read_keys(self, keys: list[str]) -> Sequence[Row]:
        parameters = [msgspec.json.encode(keys).decode(), self.now()]
        if len(keys) <= _INLINE:
            return self._db.point_read(_GET_MANY, parameters)
        return await self._db.read(lambda connection: connection.execute(_GET_MANY, parameters).fetchall())

    async def joined_pages(
        self, prefix: str, *, exclude: Sequence[str] = (), page: int = PAGE
    ) -> AsyncIterator[JoinedPage]:
        """SQLite reads and joins the next page while the caller decodes this one, which holds the GIL."""
        check_texts("prefix", prefix, *exclude)
        reading = await self._begin_join(prefix, None, exclude, page)
        try:
            while True:
                joined, count, last = await reading
                if last is not None:
                    reading = await self._begin_join(prefix, last, exclude, page)
                yield JoinedPage(b"[%b]" % b",".join(joined), count, last)
                if last is None:
                    return
        finally:
            reading.cancel()

    async def _begin_join(
        self, prefix: str, after: str | None, exclude: Sequence[str], limit: int
    ) -> "asyncio.Task[Joined]":
        """Returns once the thread has begun; otherwise it would wait for the GIL until the caller is done."""
        ranges, now = list(key_ranges(prefix, after, exclude)), self.now()
        loop, begun = asyncio.get_running_loop(), asyncio.Event()

        def read(connection: sqlite3.Connection) -> Joined:
            call_in(loop, lambda _: begun.set(), None)
            return join_ranges(reader(connection), ranges, limit, now)

        reading = asyncio.create_task(self._db.read(read))
        reading.add_done_callback(lambda _: begun.set())
        await begun.wait()
        return reading

    async def _read_range(
        self, what: str, prefix: str, after: str | None, limit: int, exclude: Sequence[str]
    ) -> Sequence[Row]:
        check_texts("prefix", prefix, after or "", *exclude)
        ranges, now = list(key_ranges(prefix, after, exclude)), self.now()
        if limit <= _INLINE:
            return read_ranges(self._db.point_read, what, ranges, limit + 1, now)
        return await self._db.read_soon(lambda read: read_ranges(read, what, ranges, limit + 1, now))

    # Questions over fields.

    async def _read_selected(self, query: Query) -> Sequence[Row]:
        now = self.now()
        return await self._db.read_soon(lambda read: select(read, query, now))

    async def _count(self, collection: RecordKind, fields: Sequence[str], audiences: Audiences) -> Counts:
        """Read a few rows inline; sum many audiences in a thread."""
        if isinstance(audiences, Everything) or len(audiences) <= FEW_AUDIENCES:
            return count(self._db.point_read, collection, fields, audiences)

        def read(connection: sqlite3.Connection) -> Counts:
            # One snapshot for both the audiences and their sums.
            connection.execute("BEGIN")
            return count(reader(connection), collection, fields, audiences)

        return await self._db.read(read)

    async def _read_candidates(self, query: CheckedSearch) -> Sequence[Row]:
        now = self.now()

        def find(connection: sqlite3.Connection) -> list[Row]:
            # One snapshot for both the matches and their records.
            connection.execute("BEGIN")
            return search(reader(connection), query, now)

        return await self._db.read(find)

    async def _overlap(self, query: OverlapQuery) -> tuple[Overlap, ...]:
        statement, parameters = sqlite_overlaps(query, self.now())
        rows = await self._db.read_soon(lambda read: read(statement, parameters))
        return tuple(starmap(Overlap, rows))

    # Following what changes.

    async def changes(self, prefix: str, *, after: str | None = None, limit: int = PAGE) -> Page[Change]:
        check_texts("prefix", prefix)
        place = None if after is None else self._place(after)
        return await self._db.read(lambda connection: _read_changes(connection, prefix, place, limit))

    async def change_cursor(self) -> str:
        return str(await self._last_change())

    async def _last_change(self) -> int:
        ((place,),) = self._db.point_read(_LAST_CHANGE)
        return int(place)

    def _place(self, cursor: str) -> int:
        try:
            return int(cursor)
        except ValueError as error:
            raise CursorGone(cursor=cursor) from error

    # Everything at once.

    def snapshot(self) -> AbstractAsyncContextManager[StoreSnapshot]:
        return open_sqlite_snapshot(self._db.path, self.now())

    # Keeping house.

    async def sweep(self, *, changes_before: int, limit: int = 5000) -> int:
        removed = 0
        while removed < limit:
            step = min(_SWEEP_STEP, limit - removed)
            swept = await self._db.run(
                partial(_sweep, now=self.now(), changes_before=changes_before, limit=step)
            )
            removed += swept
            if swept < step:
                break
        return removed

    async def check(self) -> None:
        await self._db.run(_probe)

    async def check_files(self) -> None:
        await self._db.check_files()


def _read_changes(connection: sqlite3.Connection, prefix: str, after: int | None, limit: int) -> Page[Change]:
    # One snapshot for all three statements, so that changes swept meanwhile are not silently missed.
    connection.execute("BEGIN")
    ((swept,),) = connection.execute("SELECT seq FROM changes_swept")
    ((last,),) = connection.execute(_LAST_CHANGE)
    start = swept if after is None else after
    if not swept <= start <= last:
        raise CursorGone(cursor=str(after))
    end = end_of(prefix)
    rows = connection.execute(
        "SELECT seq, key, version, deleted, at FROM changes WHERE seq > ? AND key >= ? AND (? IS NULL OR key < ?) "
        "ORDER BY seq LIMIT ?",
        (start, prefix, end, end, limit),
    ).fetchall()
    items = tuple(
        Change(str(seq), key, version, bool(deleted), at) for seq, key, version, deleted, at in rows
    )
    return Page(items, items[-1].cursor if len(items) == limit else str(last))


def _sweep(tx: Tx, *, now: int, changes_before: int, limit: int) -> int:
    expired = [
        number
        for (number,) in tx.execute("SELECT id FROM records WHERE expires_at <= ? LIMIT ?", (now, limit))
    ]
    if expired:
        sqlite_commit.delete_records(tx, expired)
    return len(expired) + _sweep_changes(tx, changes_before, limit - len(expired))


def _sweep_changes(tx: Tx, before: int, limit: int) -> int:
    """The oldest changes, up to the first that is young enough to keep."""
    oldest = tx.execute("SELECT seq, at FROM changes ORDER BY seq LIMIT ?", (limit,)).fetchall()
    old = 0
    while old < len(oldest) and oldest[old][1] < before:
        old += 1
    if old:
        last = oldest[old - 1][0]
        tx.execute("DELETE FROM changes WHERE seq <= ?", (last,))
        tx.execute("UPDATE changes_swept SET seq = ?", (last,))
    return old


def _probe(tx: Tx) -> None:
    """A write that needs disk space: SQLite skips writes that change nothing, and so would not notice a full disk. No
    record uses the number that it takes."""
    tx.execute("UPDATE sequence SET version = version + 1")
