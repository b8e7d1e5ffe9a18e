"""Questions to the SQLite store as SQL: ranges of keys, declared fields, searched terms. Values are always
parameters; only declared names stand in the text."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from vskill_platform.kv.collections import Collection, Value
from vskill_platform.kv.query import Between, Condition, In, Is, Query
from vskill_platform.kv.sqlite_fields import column, kept_fields, search_table

Parameters = list[str | int | None]

_INTEGERS = range(-(2**63), 2**63)

#: What an entry is made of, without decoding the value.
ENTRY = "key, CAST(value AS BLOB), version"


class Statement(msgspec.Struct):
    """SQL and its parameters."""

    text: str
    parameters: Parameters


# Ranges of keys.


def end_of(prefix: str) -> str | None:
    """The least text above everything that begins with the prefix; None where there is none."""
    for place in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[place]) + 1
        if code <= 0x10FFFF:
            # Surrogates are no characters: the next one stands after them.
            return prefix[:place] + chr(0xE000 if 0xD800 <= code <= 0xDFFF else code)
    return None


def ranges(prefix: str, after: str | None, exclude: Sequence[str]) -> Iterator[Statement]:
    """The ranges of keys that are left when the excluded ones are cut out, in order, as conditions."""
    least, open_start = prefix, False
    if after is not None and after >= prefix:
        least, open_start = after, True
    for hole in sorted(exclude):
        if not (hole.startswith(prefix) or prefix.startswith(hole)):
            continue
        if hole > least:
            yield _between(least, hole, open_start=open_start)
        end = end_of(hole)
        if end is None:
            return
        if end > least:
            least, open_start = end, False
    end = end_of(prefix)
    if end is None or least < end:
        yield _between(least, end, open_start=open_start)


def _between(least: str, end: str | None, *, open_start: bool) -> Statement:
    text = "key > ?" if open_start else "key >= ?"
    return Statement(text, [least]) if end is None else Statement(f"{text} AND key < ?", [least, end])


def read_ranges(
    connection_read: "Reader", what: str, conditions: Iterator[Statement], limit: int, now: int
) -> list[tuple[object, ...]]:
    """Rows of the ranges in order, up to the limit."""
    rows: list[tuple[object, ...]] = []
    for condition in conditions:
        rows += connection_read(
            f"SELECT {what} FROM records WHERE {condition.text} AND (expires_at IS NULL OR expires_at > ?) "  # noqa: S608
            "ORDER BY key LIMIT ?",
            [*condition.parameters, now, limit - len(rows)],
        )
        if len(rows) >= limit:
            break
    return rows


def reader(connection: sqlite3.Connection) -> "Reader":
    return lambda text, parameters: connection.execute(text, parameters).fetchall()
