"""SQLite's side of the declared fields: the search tables, and the columns of stored records as one value."""

import sqlite3
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import chain

from vskill_platform.ledger.kv.collections import AUDIENCE, COLLECTIONS, RecordKind, Value
from vskill_platform.ledger.kv.fields import (
    DERIVED_COLUMNS,
    NOTHING,
    PLANS,
    Columns,
    column,
    derive,
    end_of,
    kept_fields,
)

#: Records of one step; a statement writes the words of all of them.
_BLOCK = 500


def search_table(collection: RecordKind) -> str:
    return f"{collection.name}_search"


def search_columns(collection: RecordKind) -> tuple[str, ...]:
    """The searched fields, and the audience as one term, so that a search skips what the reader may not read."""
    return (*collection.searched, AUDIENCE) if collection.has_audience else collection.searched


def audience_term(audience: str | None) -> str:
    """One term for one audience, whatever its text; a record without an audience has none."""
    return "" if audience is None else "x" + blake2b(audience.encode(), digest_size=16).hexdigest()


#: SQL for the field columns of a record `r` of any collection, as one JSON array; NULL for other records.
STORED_FIELDS = "CASE r.collection {} END".format(
    " ".join(
        f"WHEN '{kind.name}' THEN json_array({', '.join(f'r.{column(kind, name)}' for name in kept_fields(kind))})"
        for kind in COLLECTIONS
    )
)


def columns_from(searched: Value, collection: str | None, fields: Iterable[Value] | None) -> Columns:
    """The columns of a stored record, from the result of `STORED_FIELDS`."""
    if collection is None or fields is None:
        return (searched, collection, *NOTHING[2:])
    plan = PLANS[collection]
    return (searched, collection, *plan.before, *fields, *plan.after)


def write_terms(
    connection: sqlite3.Connection, collection: RecordKind, rows: Sequence[tuple[int, bytes]]
) -> None:
    """Index the current texts of these records; the rows are ids and values."""
    columns = search_columns(collection)
    names = ", ".join(columns)
    marks = "(" + "?, " * len(columns) + "?)"
    connection.execute(
        f"INSERT OR REPLACE INTO {search_table(collection)} (rowid, {names}) VALUES "  # noqa: S608 - our own names
        + ", ".join([marks] * len(rows)),
        list(chain.from_iterable((number, *_terms(collection, value)) for number, value in rows)),
    )


def _terms(collection: RecordKind, value: bytes) -> tuple[str, ...]:
    texts = collection.search_texts(value)
    return (*texts, audience_term(collection.audience_of(value))) if collection.has_audience else texts


def derive_again(connection: sqlite3.Connection, name: str) -> None:
    """Compute a collection's columns, words and counts again, for a migration that changes its declaration."""
    collection = next(kind for kind in COLLECTIONS if kind.name == name)
    after, end = collection.prefix, end_of(collection.prefix)
    while block := connection.execute(
        "SELECT id, key, CAST(value AS BLOB) FROM records WHERE key > ? AND key < ? ORDER BY key LIMIT ?",
        (after, end, _BLOCK),
    ).fetchall():
        after = block[-1][1]
        _derive_rows(connection, collection, [row for row in block if collection.holds(row[1])])
    _count_again(connection, collection)


def _derive_rows(
    connection: sqlite3.Connection, collection: RecordKind, rows: Sequence[tuple[int, str, bytes]]
) -> None:
    settings = ", ".join(f"{name} = ?" for name in DERIVED_COLUMNS)
    connection.executemany(
        f"UPDATE records SET {settings} WHERE id = ?",  # noqa: S608 - our own names
        [(*derive(key, value), number) for number, key, value in rows],
    )
    if collection.searched and rows:
        write_terms(connection, collection, [(number, value) for number, _, value in rows])


def _count_again(connection: sqlite3.Connection, collection: RecordKind) -> None:
    connection.execute("DELETE FROM counts WHERE collection = ?", (collection.name,))
    connection.execute("DELETE FROM audience_counts WHERE collection = ?", (collection.name,))
    for name in collection.counted:
        value = f"ifnull({column(collection, name)}, x'')"
        given = (collection.name, name, collection.name)
        connection.execute(
            f"INSERT INTO counts SELECT ?, ?, {value}, count(*) "  # noqa: S608 - our own names
            "FROM records WHERE collection = ? GROUP BY 3",
            given,
        )
        if collection.has_audience:
            connection.execute(
                f"INSERT INTO audience_counts SELECT ?, ?, ifnull({column(collection, AUDIENCE)}, x''), {value}, "  # noqa: S608
                "count(*) FROM records WHERE collection = ? GROUP BY 3, 4",
                given,
            )
