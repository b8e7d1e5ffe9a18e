"""Counts of the PostgreSQL store. Every write adds rows of differences, so that no two commits wait for each other; a
sweep folds them into the sums."""

from collections.abc import Iterable, Sequence
from typing import Any

from vskill_platform.domain.audience import Audiences, Everything
from vskill_platform.ledger.database.postgres import PostgresDatabase
from vskill_platform.ledger.kv.collections import AUDIENCE, RecordKind
from vskill_platform.ledger.kv.contract import Counts, sum_counts
from vskill_platform.ledger.kv.postgres_query import FEW_AUDIENCES

#: Rows of differences that one statement folds.
FOLD_STEP = 20_000
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


async def count(
    database: PostgresDatabase, collection: RecordKind, fields: Sequence[str], audiences: Audiences
) -> Counts:
    """The counts of each of these fields."""
    kind = collection.name
    if isinstance(audiences, Everything):
        return _sum(fields, await database.fetch(_TOTALS, kind, fields))
    if len(audiences) <= FEW_AUDIENCES:
        return _sum(fields, await database.fetch(_COUNTS, kind, fields, sorted(audiences), False))
    # One view for which audiences there are and for their sums.
    async with database.connection() as connection, connection.transaction(isolation="repeatable_read"):
        return await _count_many(connection, kind, fields, audiences)


async def _count_many(connection: Any, kind: str, fields: Sequence[str], audiences: frozenset[str]) -> Counts:
    """Beside the sums over everything there are those of each audience: where a reader has most of them, the others
    are taken off."""
    rows = await connection.fetch(_TOTALS, kind, (AUDIENCE,))
    existing = {value for _, value, known, _ in rows if known}
    hidden, readable = sorted(existing - audiences), sorted(existing & audiences)
    if len(hidden) >= len(readable):
        return _sum(fields, await connection.fetch(_COUNTS, kind, fields, readable, False))
    totals = await connection.fetch(_TOTALS, kind, fields)
    others = await connection.fetch(_COUNTS, kind, fields, hidden, True)
    return _sum(fields, [*totals, *((field, value, known, -n) for field, value, known, n in others)])


async def read_audiences(database: PostgresDatabase, collection: RecordKind) -> dict[str, int]:
    """How many records each audience has."""
    rows = await database.fetch(_TOTALS, collection.name, (AUDIENCE,))
    return {value: n for _, value, known, n in rows if known}


async def fold_counts(database: PostgresDatabase) -> None:
    """All of them: a busy queue adds more in a minute than one step holds, and every count reads what is left."""
    while await database.fetchval(_FOLD, FOLD_STEP) >= FOLD_STEP:
        pass


def _sum(fields: Sequence[str], rows: Iterable[Any]) -> Counts:
    return sum_counts(fields, ((field, value if known else None, n) for field, value, known, n in rows))
