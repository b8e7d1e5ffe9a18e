"""What PostgreSQL derives from the records of a collection: counts; and all of it, computed again for a migration that
asks for it.

Every write adds rows of differences, so that no two commits wait for each other; a sweep folds them into the sums."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from vskill_platform.domain.people.namespace import Audiences, Everything
from vskill_platform.ledger.database.postgres import PostgresDatabase
from vskill_platform.ledger.kv.collections import AUDIENCE, COLLECTIONS, RecordKind
from vskill_platform.ledger.kv.contract import Counts, sum_counts
from vskill_platform.ledger.kv.fields import column, end_of, kept_fields
from vskill_platform.ledger.kv.postgres_query import FEW_AUDIENCES, row_of

#: Rows of differences that one statement folds.
FOLD_STEP = 20_000
_TOTALS = """
SELECT field, value, known, sum(n)::bigint AS n FROM (
    SELECT field, value, known, n FROM counts WHERE collection = $1 AND field = ANY ($2)
    UNION ALL SELECT field, value, known, n FROM count_deltas WHERE collection = $1 AND field = ANY ($2)
) AS counted GROUP BY field, value, known HAVING sum(n) <> 0
"""
#: Counts of some audiences, and with the last argument also of the records without one.
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
#: Records of one statement.
_BLOCK = 1000
_READ = "SELECT key, convert_to(value, 'UTF8') FROM records WHERE key > $1 AND key < $2 ORDER BY key LIMIT $3"


async def derive_again(connection: Any, name: str) -> None:
    """Compute a collection's columns, words and counts again, in the connection's transaction."""
    collection = next(kind for kind in COLLECTIONS if kind.name == name)
    names = ["collection", *(column(collection, field) for field in kept_fields(collection)), "terms"]
    update = (
        f"UPDATE records SET {', '.join(f'{one} = derived.{one}' for one in names)} "  # noqa: S608 - our own names
        "FROM json_populate_recordset(NULL::records, $1) AS derived WHERE records.key = derived.key"
    )
    after, end = collection.prefix, end_of(collection.prefix)
    while block := await connection.fetch(_READ, after, end, _BLOCK):
        after = block[-1][0]
        rows = [row_of(key, value, None) for key, value in block if collection.holds(key)]
        await connection.execute(update, msgspec.json.encode(rows).decode())
    await _count_again(connection, collection)


async def _count_again(connection: Any, collection: RecordKind) -> None:
    await connection.execute("DELETE FROM counts WHERE collection = $1", collection.name)
    await connection.execute("DELETE FROM audience_counts WHERE collection = $1", collection.name)
    await connection.execute("DELETE FROM count_deltas WHERE collection = $1", collection.name)
    for name in collection.counted:
        field = column(collection, name)
        await connection.execute(
            f"INSERT INTO counts SELECT $1, $2, coalesce({field}, ''), {field} IS NOT NULL, count(*) "  # noqa: S608
            "FROM records WHERE collection = $1 GROUP BY 3, 4",
            collection.name,
            name,
        )
        if collection.has_audience:
            audience = column(collection, AUDIENCE)
            await connection.execute(
                f"INSERT INTO audience_counts SELECT $1, $2, coalesce({audience}, ''), {audience} IS NOT NULL, "  # noqa: S608
                f"coalesce({field}, ''), {field} IS NOT NULL, count(*) "
                "FROM records WHERE collection = $1 GROUP BY 3, 4, 5, 6",
                collection.name,
                name,
            )


async def count(
    database: PostgresDatabase, collection: RecordKind, fields: Sequence[str], audiences: Audiences
) -> Counts:
    kind = collection.name
    if isinstance(audiences, Everything):
        return _sum(fields, await database.fetch(_TOTALS, kind, fields))
    if len(audiences) <= FEW_AUDIENCES:
        return _sum(fields, await database.fetch(_COUNTS, kind, fields, sorted(audiences), False))
    # One snapshot for both the audiences and their sums.
    async with database.transaction("repeatable_read") as connection:
        return await _count_many(connection, kind, fields, audiences)


async def _count_many(connection: Any, kind: str, fields: Sequence[str], audiences: frozenset[str]) -> Counts:
    """Add the sums of the reader's audiences; if they are the majority, subtract the others from the total."""
    rows = await connection.fetch(_TOTALS, kind, (AUDIENCE,))
    existing = {value for _, value, known, _ in rows if known}
    hidden, readable = sorted(existing - audiences), sorted(existing & audiences)
    if len(hidden) >= len(readable):
        return _sum(fields, await connection.fetch(_COUNTS, kind, fields, readable, False))
    totals = await connection.fetch(_TOTALS, kind, fields)
    others = await connection.fetch(_COUNTS, kind, fields, hidden, True)
    return _sum(fields, [*totals, *((field, value, known, -n) for field, value, known, n in others)])


async def fold_counts(database: PostgresDatabase) -> None:
    """Fold all differences: a busy queue adds more per minute than one step folds, and every count reads the rest."""
    while await database.fetchval(_FOLD, FOLD_STEP) >= FOLD_STEP:
        pass


def _sum(fields: Sequence[str], rows: Iterable[Any]) -> Counts:
    return sum_counts(fields, ((field, value if known else None, n) for field, value, known, n in rows))
