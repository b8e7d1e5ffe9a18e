"""What PostgreSQL derives from the records of a collection, computed anew for a migration that asks for it."""

from typing import Any

import msgspec

from vskill_platform.ledger.kv.collections import AUDIENCE, COLLECTIONS, RecordKind
from vskill_platform.ledger.kv.fields import column, end_of, kept_fields
from vskill_platform.ledger.kv.postgres_query import row_of

#: Records of one statement.
_BLOCK = 1000
_READ = "SELECT key, convert_to(value, 'UTF8') FROM records WHERE key > $1 AND key < $2 ORDER BY key LIMIT $3"


async def derive_again(connection: Any, name: str) -> None:
    """Compute a collection's columns, words and counts anew, in the connection's transaction."""
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
