"""The record store on PostgreSQL, for more than one machine: the same contract, the same declared fields.

A commit is one call of the function `commit_records` (database/sql/postgres), so it costs one round trip; what
is asked over fields is in `postgres_query`. Values are text, times are integer milliseconds, keys are compared
byte by byte.
"""

import asyncio
import contextlib
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec

from vskill_core.errors import (
    Conflict,
    CursorGone,
    InvalidInput,
    PlatformError,
    RecordMalformed,
    Unsupported,
)
from vskill_platform.domain.audience import Audiences, Everything
from vskill_platform.domain.messages import Send
from vskill_platform.domain.skills.search import Loosening, plan_search
from vskill_platform.ledger.broker.contract import Broker
from vskill_platform.ledger.broker.postgres import PostgresBroker, send_in
from vskill_platform.ledger.database.postgres import PostgresDatabase, wait_for
from vskill_platform.ledger.kv.checks import check_key, check_operations, check_texts
from vskill_platform.ledger.kv.collections import AUDIENCE, RecordKind, collection_of
from vskill_platform.ledger.kv.contract import KV, PAGE, SEARCH_LIMIT, StoreSnapshot
from vskill_platform.ledger.kv.entries import (
    Add,
    Assert,
    Capability,
    Change,
    Delete,
    Entry,
    EntryPage,
    Found,
    FoundValues,
    Operation,
    Overlap,
    Page,
    Put,
    Settled,
)
from vskill_platform.ledger.kv.fields import column, end_of
from vskill_platform.ledger.kv.outbox import send_after
from vskill_platform.ledger.kv.overlaps import OverlapQuery, postgres_overlaps
from vskill_platform.ledger.kv.postgres_query import (
    ENTRY,
    FEW_AUDIENCES,
    Arguments,
    Matches,
    key_ranges,
    row_of,
    search,
    select,
)
from vskill_platform.ledger.kv.postgres_snapshot import open_postgres_snapshot
from vskill_platform.ledger.kv.query import Condition, Query, check_audiences, check_filters

CHANGES = "vskill_changes"
_CHUNK = 1000
_FOLD_STEP = 20_000
#: Integers that a counter's value, as text, may have.
_NOT_A_COUNTER = -1

_COMMIT = (
    "SELECT version, refused_key, refused_version FROM commit_records($1, $2, $3, $4, $5, $6, $7, $8, $9)"
)
_GET = f"SELECT {ENTRY} FROM records WHERE key = $1 AND (expires_at IS NULL OR expires_at > $2)"  # noqa: S608
_GET_MANY = f"SELECT {ENTRY} FROM records WHERE key = ANY ($1) AND (expires_at IS NULL OR expires_at > $2)"  # noqa: S608
#: Of a few audiences with up to this many records, a search takes what may be read from its index. Of more, that would
#: cost more than to test each match.
_FEW_RECORDS = 10_000
#: How old the counts may be by which that is decided.
_SIZES_MS = 60_000
_TOTALS = """
SELECT field, value, known, sum(n)::bigint AS n FROM (
    SELECT field, value, known, n FROM counts WHERE collection = $1 AND field = ANY ($2)
    UNION ALL SELECT field, value, known, n FROM count_deltas WHERE collection = $1 AND field = ANY ($2)
) AS counted GROUP BY field, value, known HAVING sum(n) <> 0
"""
#: Of some audiences, and where the last argument says so, of the records without one.
_COUNTS = """
SELECT field, value, known, sum(n)::bigint AS n FROM (
    SELECT field, value, known, n FROM audience_counts
    WHERE collection = $1 AND field = ANY ($2) AND audience = ANY ($3::text[]) AND named
    UNION ALL SELECT field, value, known, n FROM audience_counts
    WHERE $4 AND collection = $1 AND field = ANY ($2) AND audience = '' AND NOT named
    UNION ALL SELECT field, value, known, n FROM count_deltas
    WHERE collection = $1 AND field = ANY ($2) AND (audience = ANY ($3::text[]) OR ($4 AND audience IS NULL))
) AS counted GROUP BY field, value, known HAVING sum(n) <> 0
"""
_FOLD = """
WITH folded AS (
    DELETE FROM count_deltas WHERE id IN (
        SELECT id FROM count_deltas ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED
    ) RETURNING collection, field, value, known, audience, n
), summed AS (
    INSERT INTO counts
    SELECT collection, field, value, known, sum(n) FROM folded GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
    ON CONFLICT (collection, field, value, known) DO UPDATE SET n = counts.n + excluded.n
), summed_by_audience AS (
    INSERT INTO audience_counts
    SELECT collection, field, coalesce(audience, ''), audience IS NOT NULL, value, known, sum(n)
    FROM folded GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
    ON CONFLICT (collection, field, audience, named, value, known)
    DO UPDATE SET n = audience_counts.n + excluded.n
)
SELECT count(*) FROM folded
"""
#: Above these bits, a change's number says which store gave it.
_STORE_BITS = 40
#: Below this transaction everything has ended, so nothing can appear there any more.
_HORIZON = "pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
_CHANGES = """
SELECT xid, seq, key, version, deleted, at FROM changes
WHERE (xid, seq) > ($1, $2) AND (xid, seq) <= ($3, $4) AND key >= $5 AND ($6::text IS NULL OR key < $6)
ORDER BY xid, seq LIMIT $7
"""
#: The place of the last change that a reader may see; what was swept last where there is none.
_LAST = f"""
SELECT xid, seq FROM (
    (SELECT xid, seq FROM changes WHERE xid < {_HORIZON} ORDER BY xid DESC, seq DESC LIMIT 1)
    UNION ALL SELECT xid, seq FROM changes_swept
) AS place ORDER BY xid DESC, seq DESC LIMIT 1
"""  # noqa: S608 - our own text


class PostgresKV(KV):
    """Records in PostgreSQL; `outbox` is where the messages of a commit go."""

    engine = "postgresql"

    def __init__(self, database: PostgresDatabase, outbox: Broker | None = None) -> None:
        self._db = database
        self._outbox = outbox
        self._same = isinstance(outbox, PostgresBroker) and outbox.database is database
        self.capabilities = frozenset(Capability) - (set() if self._same else {Capability.SEND_IN_COMMIT})
        #: By collection: how many records each audience had, and when that was read.
        self._sizes: dict[str, tuple[int, dict[str, int]]] = {}
        database.attach(self)

    def now(self) -> int:
        return self._db.now()

    # Writes.

    async def commit(self, operations: Sequence[Operation], *, urgent: bool = False) -> int:
        check_operations(operations)
        sends = [operation for operation in operations if isinstance(operation, Send)]
        if sends and self._outbox is None:
            raise Unsupported(capability=Capability.SEND_IN_COMMIT.value, engine=self.engine)
        call = _call(operations, self.now())
        if not sends or not self._same:
            version = _outcome(await self._db.fetchrow(_COMMIT, *call))
            if sends and self._outbox is not None:
                await send_after(self._outbox, sends)
            return version
        return await self._commit_and_send(call, sends)

    async def _commit_and_send(self, call: Sequence[object], sends: Sequence[Send]) -> int:
        assert isinstance(self._outbox, PostgresBroker)  # noqa: S101 - the caller has looked
        async with self._db.connection() as connection:
            transaction = connection.transaction()
            await transaction.start()
            try:
                version = _outcome(await connection.fetchrow(_COMMIT, *call))
                await send_in(connection, sends, self.now(), self._outbox.lease_ms)
            except BaseException:
                await _roll_back(transaction)
                raise
            await transaction.commit()
        return version

    # Reads by key.

    async def get(self, key: str) -> Entry | None:
        check_key(key)
        row = await self._db.fetchrow(_GET, key, self.now())
        return None if row is None else Entry(*row)

    async def get_many(self, keys: Iterable[str]) -> Settled:
        found: dict[str, Entry] = {}
        failed: dict[str, PlatformError] = {}
        wanted = []
        for key in dict.fromkeys(keys):
            try:
                check_key(key)
            except InvalidInput as error:
                failed[key] = error
            else:
                wanted.append(key)
        for start in range(0, len(wanted), _CHUNK):
            chunk = wanted[start : start + _CHUNK]
            try:
                rows = await self._db.fetch(_GET_MANY, chunk, self.now())
            except PlatformError as error:
                failed.update(dict.fromkeys(chunk, error))
            else:
                found.update((row[0], Entry(*row)) for row in rows)
        missing = tuple(key for key in wanted if key not in found and key not in failed)
        return Settled(found, missing, failed)

    async def list(
        self, prefix: str, *, after: str | None = None, limit: int = PAGE, exclude: Sequence[str] = ()
    ) -> Page[str]:
        rows = await self._range("key", prefix, after, limit, exclude)
        keys = tuple(row[0] for row in rows[:limit])
        return Page(keys, keys[-1] if len(rows) > limit else None)

    async def scan(
        self, prefix: str, *, after: str | None = None, limit: int = PAGE, exclude: Sequence[str] = ()
    ) -> EntryPage:
        rows = await self._range(ENTRY, prefix, after, limit, exclude)
        items = tuple(Entry(*row) for row in rows[:limit])
        return EntryPage(items, items[-1].key if len(rows) > limit else None)

    async def _range(
        self, what: str, prefix: str, after: str | None, limit: int, exclude: Sequence[str]
    ) -> Sequence[Any]:
        check_texts("prefix", prefix, after or "", *exclude)
        if "\0" in prefix:
            return ()
        # No key has a NUL, and the server refuses it even in a comparison: what stands before it says the same.
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

    async def select(
        self,
        prefix: str,
        *,
        audiences: Audiences,
        where: Mapping[str, Condition] | None = None,
        order_by: str = "key",
        descending: bool = False,
        after: str | None = None,
        limit: int = PAGE,
        under: str = "",
    ) -> EntryPage:
        query = Query.of(
            collection_of(prefix), where or {}, order_by, descending, after, limit, audiences, under
        )
        statement, arguments = select(query, self.now())
        rows = await self._db.fetch(statement, *arguments) if statement else ()
        items = tuple(Entry(*row) for row in rows[:limit])
        return EntryPage(items, query.cursor(items[-1]) if len(rows) > limit else None)

    async def count_by(self, prefix: str, field: str, *, audiences: Audiences) -> dict[str | None, int]:
        collection = collection_of(prefix)
        collection.counted_field(field)
        return (await self._counts(collection, (field,), audiences))[field]

    async def count_all(self, prefix: str, *, audiences: Audiences) -> dict[str, dict[str | None, int]]:
        collection = collection_of(prefix)
        return await self._counts(collection, collection.counted, audiences)

    async def _counts(
        self, collection: RecordKind, fields: Sequence[str], audiences: Audiences
    ) -> dict[str, dict[str | None, int]]:
        check_audiences(collection, audiences)
        if isinstance(audiences, Everything):
            return _sum_counts(fields, await self._db.fetch(_TOTALS, collection.name, fields))
        if len(audiences) <= FEW_AUDIENCES:
            rows = await self._db.fetch(_COUNTS, collection.name, fields, sorted(audiences), False)
            return _sum_counts(fields, rows)
        # One view for which audiences there are and for their sums.
        async with self._db.connection() as connection, connection.transaction(isolation="repeatable_read"):
            return await _count_many(connection, collection.name, fields, audiences)

    async def search(
        self,
        prefix: str,
        text: str,
        *,
        audiences: Audiences,
        where: Mapping[str, Condition] | None = None,
        limit: int = 100,
        loosely: Loosening | None = None,
    ) -> Found:
        collection = collection_of(prefix)
        check_audiences(collection, audiences)
        conditions = check_filters(collection, where or {})
        steps = plan_search(text, loosely=loosely)
        if not steps or audiences == frozenset():
            return Found(())
        limit = min(limit, SEARCH_LIMIT)
        few = await self._are_few(collection, audiences)
        matches = search(
            collection, steps, audiences, conditions, self.now(), limit, few=few, loosely=loosely is not None
        )
        hits = [Entry(*row) for row in await self._fetch_found(matches, ENTRY, few=few)]
        if matches.rest:
            fields = collection.fields
            hits = [
                one
                for one in hits
                if all(wanted.holds(fields[name].read(one.value)) for name, wanted in matches.rest)
            ]
        return Found(tuple(hits[:limit]), truncated=len(hits) > limit)

    async def search_values(
        self,
        prefix: str,
        text: str,
        fields: Sequence[str],
        *,
        audiences: Audiences,
        limit: int = SEARCH_LIMIT,
    ) -> FoundValues:
        collection = collection_of(prefix)
        check_audiences(collection, audiences)
        steps = plan_search(text)
        if not steps or audiences == frozenset():
            return FoundValues(())
        few = await self._are_few(collection, audiences)
        matches = search(collection, steps, audiences, (), self.now(), limit, few=few)
        what = ", ".join(column(collection, name) for name in fields)
        rows = [tuple(row) for row in await self._fetch_found(matches, what, few=few)]
        return FoundValues(tuple(rows[:limit]), truncated=len(rows) > limit)

    async def overlap(
        self,
        prefix: str,
        numbers: Collection[int],
        *,
        audiences: Audiences,
        least: int,
        limit: int,
        without: str,
    ) -> tuple[Overlap, ...]:
        statement, arguments = postgres_overlaps(
            OverlapQuery.of(prefix, numbers, audiences, least, limit, without), self.now()
        )
        return tuple(Overlap(*row) for row in await self._db.fetch(statement, *arguments))

    async def _fetch_found(self, matches: Matches, what: str, *, few: bool) -> Sequence[Any]:
        # A common word needs another plan than a rare one, except where the audience bounds both.
        fetch = self._db.fetch if few else self._db.fetch_once
        return await fetch(matches.select(what), *matches.arguments)

    async def _are_few(self, collection: RecordKind, audiences: Audiences) -> bool:
        """Whether these audiences have few records, by counts of a while ago: only the plan depends on it. In a small
        store everybody has few, and the server needs no statistics, which a new one lacks."""
        now = self.now()
        read_at, sizes = self._sizes.get(collection.name, (None, {}))
        if read_at is None or now - read_at > _SIZES_MS:
            rows = await self._db.fetch(_TOTALS, collection.name, (AUDIENCE,))
            sizes = {value: n for _, value, known, n in rows if known}
            self._sizes[collection.name] = (now, sizes)
        if isinstance(audiences, Everything) or len(audiences) > FEW_AUDIENCES:
            return sum(sizes.values()) <= _FEW_RECORDS
        return sum(sizes.get(audience, 0) for audience in audiences) <= _FEW_RECORDS

    # Following what changes.

    async def changes(self, prefix: str, *, after: str | None = None, limit: int = PAGE) -> Page[Change]:
        check_texts("prefix", prefix)
        place = None if after is None else _place(after)
        async with self._db.connection() as connection, connection.transaction(isolation="repeatable_read"):
            swept = tuple(await connection.fetchrow("SELECT xid, seq FROM changes_swept"))
            last = tuple(await connection.fetchrow(_LAST))
            start = swept if place is None else place
            # A place of another store has another number in its upper bits (0017_change_numbers.sql).
            if not swept <= start <= last or start[1] >> _STORE_BITS != swept[1] >> _STORE_BITS:
                raise CursorGone(cursor=after)
            rows = await connection.fetch(_CHANGES, *start, *last, prefix, end_of(prefix), limit)
        items = tuple(
            Change(_cursor(xid, seq), key, version, deleted, at)
            for xid, seq, key, version, deleted, at in rows
        )
        return Page(items, items[-1].cursor if len(items) == limit else _cursor(*last))

    async def change_cursor(self) -> str:
        return _cursor(*await self._db.fetchrow(_LAST))

    async def wait_for_change(self, cursor: str, timeout_ms: int) -> bool:
        place = _place(cursor)
        deadline = time.monotonic() + timeout_ms / 1000
        with self._db.watch(CHANGES) as event:
            while tuple(await self._db.fetchrow(_LAST)) == place:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                await wait_for(event, left)
        return True

    # Everything at once.

    def snapshot(self) -> AbstractAsyncContextManager[StoreSnapshot]:
        return open_postgres_snapshot(self._db.location, self.now())

    # Keeping house.

    async def sweep(self, *, changes_before: int, limit: int = 5000) -> int:
        # All of them: a busy queue adds more in a minute than one step holds, and every count reads what is left.
        while await self._db.fetchval(_FOLD, _FOLD_STEP) >= _FOLD_STEP:
            pass
        removed = await self._db.fetchval(_SWEEP_EXPIRED, self.now(), limit)
        return int(removed) + int(await self._db.fetchval(_SWEEP_CHANGES, changes_before, limit - removed))

    async def check(self) -> None:
        """Fails on a server that only reads, and on one whose log cannot be written: a message that nobody reads is on
        the disk when the statement returns."""
        await self._db.fetchval(
            "SELECT nextval('versions') FROM pg_logical_emit_message(true, 'vskill-ready', '')"
        )

    async def risks(self) -> tuple[str, ...]:
        row = await self._db.fetchrow(_DURABILITY)
        return tuple(find_risks(row["fsync"], row["waits_for"], row["standby_names"], row["standbys"]))

    async def close(self) -> None:
        await self._db.detach(self)


#: Every account may read these: of a standby an ordinary one sees only that it is there.
_DURABILITY = """
SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS waits_for,
    current_setting('synchronous_standby_names') AS standby_names,
    (SELECT count(*) FROM pg_stat_replication WHERE application_name <> 'pg_basebackup') AS standbys
"""


def find_risks(fsync: str, waits_for: str, standby_names: str, standbys: int) -> Iterator[str]:
    """What these settings of a server could lose, and what to set."""
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
# The oldest changes in their order, up to the first that is young enough to keep.
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


async def _count_many(
    connection: Any, kind: str, fields: Sequence[str], audiences: frozenset[str]
) -> dict[str, dict[str | None, int]]:
    """Beside the sums over everything there are those of each audience: where a reader has most of them, the others
    are taken off."""
    rows = await connection.fetch(_TOTALS, kind, (AUDIENCE,))
    existing = {value for _, value, known, _ in rows if known}
    hidden, readable = sorted(existing - audiences), sorted(existing & audiences)
    if len(hidden) >= len(readable):
        return _sum_counts(fields, await connection.fetch(_COUNTS, kind, fields, readable, False))
    totals = await connection.fetch(_TOTALS, kind, fields)
    others = await connection.fetch(_COUNTS, kind, fields, hidden, True)
    return _sum_counts(fields, [*totals, *((field, value, known, -n) for field, value, known, n in others)])


def _sum_counts(fields: Sequence[str], rows: Iterable[Any]) -> dict[str, dict[str | None, int]]:
    found: dict[str, dict[str | None, int]] = {field: {} for field in fields}
    for field, value, known, n in rows:
        name = value if known else None
        found[field][name] = found[field].get(name, 0) + n
    return {field: {name: n for name, n in values.items() if n} for field, values in found.items()}


def _call(operations: Sequence[Operation], now: int) -> tuple[object, ...]:
    """The operations as the arguments of `commit_records`."""
    written: list[str] = []
    asserted: list[str] = []
    expected: dict[str, int] = {}
    puts: list[dict[str, object]] = []
    adds: list[dict[str, object]] = []
    deletes: list[str] = []
    told: list[str] = []
    for operation in operations:
        match operation:
            case Put(key=key, value=value, if_version=wanted, quiet=quiet, ttl_ms=ttl_ms):
                written.append(key)
                puts.append(row_of(key, value, None if ttl_ms is None else now + ttl_ms))
                if not quiet:
                    told.append(key)
                if wanted is not None:
                    expected[key] = wanted
            case Delete(key=key, if_version=wanted):
                written.append(key)
                deletes.append(key)
                if wanted is not None:
                    expected[key] = wanted
            case Assert(key=key, version=wanted):
                asserted.append(key)
                expected[key] = wanted
            case Add(key=key, n=n):
                written.append(key)
                told.append(key)
                adds.append({"key": key, "collection": row_of(key, b"0", None).get("collection"), "n": n})
            case _:
                pass
    return (
        written,
        asserted,
        list(expected),
        list(expected.values()),
        _json(puts),
        _json(adds),
        deletes,
        told,
        now,
    )


def _json(rows: list[dict[str, object]]) -> str | None:
    return msgspec.json.encode(rows).decode() if rows else None


def _outcome(row: Sequence[object]) -> int:
    version, refused_key, actual = row
    if refused_key is None:
        assert isinstance(version, int)  # noqa: S101 - what the function returns where nothing is refused
        return version
    if actual == _NOT_A_COUNTER:
        raise RecordMalformed(f"{refused_key} is not a counter", key=refused_key, reason="not an integer")
    raise Conflict(
        f"{refused_key} is at version {actual}, not the one named", key=refused_key, version=actual
    )


async def _roll_back(transaction: Any) -> None:
    """Whatever went wrong is what the caller hears, not that the connection is gone too."""
    with contextlib.suppress(Exception):
        await asyncio.shield(transaction.rollback())


def _cursor(xid: int, seq: int) -> str:
    return f"{xid}-{seq}"


def _place(cursor: str) -> tuple[int, int]:
    xid, _, seq = cursor.partition("-")
    if (
        not (xid.isascii() and xid.isdigit() and seq.isascii() and seq.isdigit())
        or max(len(xid), len(seq)) > 19
    ):
        raise CursorGone(cursor=cursor)
    return int(xid), int(seq)
