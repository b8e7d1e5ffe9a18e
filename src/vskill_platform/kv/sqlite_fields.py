"""The columns that SQLite keeps beside a record's value: its declared fields, as the contract itself reads them.

They are ordinary columns, written with the value, and not expressions over it: SQLite's JSON functions disagree
with ours about doubled keys, escapes and odd numbers, and cost more than all the rest of a write.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import chain

import msgspec

from vskill_platform.kv.collections import COLLECTIONS, Collection, Field, Value, collection_holding, parse

#: The searched texts' hash, the collection's name, then one value per field column of any collection.
Columns = tuple[Value, ...]

_BLOCK = 1000


def kept_fields(collection: Collection) -> tuple[str, ...]:
    """Fields that have a column: those that an index or a count names."""
    needed = {*collection.counted, *(name for index in collection.indexes for name in index)}
    return tuple(name for name in collection.fields if name in needed)


def column(collection: Collection, field: str) -> str:
    return f"{collection.name}_{field}"


def search_table(collection: Collection) -> str:
    return f"{collection.name}_search"


FIELD_COLUMNS = tuple(column(kind, name) for kind in COLLECTIONS for name in kept_fields(kind))
DERIVED_COLUMNS = ("searched", "collection", *FIELD_COLUMNS)
NOTHING: Columns = (None,) * len(DERIVED_COLUMNS)


class _Plan(msgspec.Struct, frozen=True):
    """What to read for a collection, with the empty columns before and after it."""

    fields: tuple[Field, ...]
    searched: tuple[Field, ...]
    before: Columns
    after: Columns


def _plan(collection: Collection) -> _Plan:
    mine = [FIELD_COLUMNS.index(column(collection, name)) for name in kept_fields(collection)]
    return _Plan(
        tuple(collection.fields[name] for name in kept_fields(collection)),
        tuple(collection.fields[name] for name in collection.searched),
        (None,) * mine[0],
        (None,) * (len(FIELD_COLUMNS) - mine[-1] - 1),
    )


_PLANS = {kind.name: _plan(kind) for kind in COLLECTIONS}


def derive(key: str, value: bytes) -> Columns:
    """What the columns hold for this record."""
    collection = collection_holding(key)
    if collection is None:
        return NOTHING
    plan = _PLANS[collection.name]
    record = parse(value)
    fields = [field.of(record) for field in plan.fields]
    return (
        _hash([field.of(record) for field in plan.searched]) if plan.searched else None,
        collection.name,
        *plan.before,
        *fields,
        *plan.after,
    )


def _hash(texts: list[Value]) -> int:
    """By it, unchanged texts are known without cutting them into terms."""
    return int.from_bytes(blake2b(msgspec.json.encode(texts), digest_size=8).digest(), "big", signed=True)


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
