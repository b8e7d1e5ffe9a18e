"""What SQLite makes of the declared fields: the search tables, and the columns of stored records as one value."""

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import chain

from vskill_platform.kv.collections import COLLECTIONS, Collection, Value
from vskill_platform.kv.fields import DERIVED_COLUMNS, NOTHING, PLANS, Columns, column, derive, kept_fields

_BLOCK = 1000


def search_table(collection: Collection) -> str:
    return f"{collection.name}_search"


#: SQL for the field columns of a record `r` of any collection, as one JSON array; NULL for other records.
STORED_FIELDS = "CASE r.collection {} END".format(
    " ".join(
        f"WHEN '{kind.name}' THEN json_array({', '.join(f'r.{column(kind, name)}' for name in kept_fields(kind))})"
        for kind in COLLECTIONS
    )
)


def columns_from(searched: Value, collection: str | None, fields: Iterable[Value] | None) -> Columns:
    """The columns of a stored record out of what `STORED_FIELDS` gives for it."""
    if collection is None or fields is None:
        return (searched, collection, *NOTHING[2:])
    plan = PLANS[collection]
    return (searched, collection, *plan.before, *fields, *plan.after)


def write_terms(
    connection: sqlite3.Connection, collection: Collection, rows: Sequence[tuple[int, bytes]]
) -> None:
    """Make these records found by their texts as they are now; the rows are ids and values."""
    names = ", ".join(collection.searched)
    marks = "(" + "?, " * len(collection.searched) + "?)"
    connection.execute(
        f"INSERT OR REPLACE INTO {search_table(collection)} (rowid, {names}) VALUES "  # noqa: S608 - our own names
        + ", ".join([marks] * len(rows)),
        list(chain.from_iterable((number, *collection.search_texts(value)) for number, value in rows)),
    )


def derive_again(connection: sqlite3.Connection, name: str) -> None:
    """Compute a collection's columns and terms anew: for the migration that changes what they hold."""
    collection = next(kind for kind in COLLECTIONS if kind.name == name)
    last = 0
    while block := connection.execute(
        "SELECT id, key, CAST(value AS BLOB) FROM records WHERE id > ? ORDER BY id LIMIT ?", (last, _BLOCK)
    ).fetchall():
        last = block[-1][0]
        _derive_rows(connection, collection, [row for row in block if collection.holds(row[1])])


def _derive_rows(
    connection: sqlite3.Connection, collection: Collection, rows: Iterable[tuple[int, str, bytes]]
) -> None:
    settings = ", ".join(f"{name} = ?" for name in DERIVED_COLUMNS)
    for number, key, value in rows:
        connection.execute(f"UPDATE records SET {settings} WHERE id = ?", (*derive(key, value), number))  # noqa: S608
        if collection.searched:
            write_terms(connection, collection, [(number, value)])
