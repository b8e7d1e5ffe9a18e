"""Questions to the SQLite store as SQL: ranges of keys, declared fields, searched terms. Values are always
parameters; only declared names stand in the text.

Every question over fields names its index (`INDEXED BY`), so that SQLite either uses it or refuses: no plan is
left to chance.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import msgspec

from vskill_platform.domain.errors import InvalidInput
from vskill_platform.kv.collections import RecordKind, Value
from vskill_platform.kv.fields import column, end_of, kept_fields
from vskill_platform.kv.query import FIRST_PAGE, Between, Condition, In, Is, Query
from vskill_platform.kv.sqlite_fields import search_table

Row = tuple[Any, ...]
Parameters = list[Value]
#: The pairs of each range, how many there are, and the last key where there may be more.
Joined = tuple[list[bytes], int, str | None]
#: Executes a statement and fetches all of its rows.
Read = Callable[[str, Parameters], list[Row]]

#: What an entry is made of; the cast gives the value's bytes without decoding them.
ENTRY = "key, CAST(value AS BLOB), version"

_LEAST = -(2**63)
_MOST = 2**63 - 1
_ALIVE = "(expires_at IS NULL OR expires_at > ?)"


class Clause(msgspec.Struct, frozen=True):
    """A piece of SQL and its parameters."""

    text: str
    parameters: tuple[Value, ...] = ()


NEVER = Clause("0")


def index_name(collection: RecordKind, fields: Sequence[str]) -> str:
    return f"{collection.name}_by_{'_'.join(fields)}"


# Ranges of keys.


def key_ranges(prefix: str, after: str | None, exclude: Iterable[str]) -> Iterator[Clause]:
    """The ranges of keys that are left when the excluded ones are cut out, in order."""
    least, beyond = (after, True) if after is not None and after >= prefix else (prefix, False)
    for hole in sorted(exclude):
        if not hole.startswith(prefix) and not prefix.startswith(hole):
            continue
        if hole > least:
            yield _key_range(least, hole, beyond=beyond)
        end = end_of(hole)
        if end is None:
            return
        if end > least:
            least, beyond = end, False
    end = end_of(prefix)
    if end is None or least < end:
        yield _key_range(least, end, beyond=beyond)


def _key_range(least: str, end: str | None, *, beyond: bool) -> Clause:
    start = "key > ?" if beyond else "key >= ?"
    return Clause(start, (least,)) if end is None else Clause(f"{start} AND key < ?", (least, end))


def read_ranges(
    read: Read, what: str, ranges: Iterable[Clause], limit: int, now: int, *, descending: bool = False
) -> list[Row]:
    """Living records of the ranges, one range after the other, up to the limit."""
    direction = "DESC" if descending else "ASC"
    rows: list[Row] = []
    for one in ranges:
        rows += read(
            f"SELECT {what} FROM records WHERE {one.text} AND {_ALIVE} ORDER BY key {direction} LIMIT ?",  # noqa: S608
            [*one.parameters, now, limit - len(rows)],
        )
        if len(rows) >= limit:
            break
    return rows


def join_ranges(read: Read, ranges: Iterable[Clause], limit: int, now: int) -> Joined:
    """Living records of the ranges as pairs of key and value, joined by SQLite itself: every row that is fetched
    waits for the interpreter's lock, and so there is one for each range."""
    joined: list[bytes] = []
    left = limit
    for one in ranges:
        ((pairs, last, count),) = read(
            "SELECT CAST(group_concat('[' || json_quote(key) || ',' || value || ']') AS BLOB), max(key), count(*) "  # noqa: S608
            f"FROM (SELECT key, value FROM records WHERE {one.text} AND {_ALIVE} ORDER BY key LIMIT ?)",
            [*one.parameters, now, left],
        )
        left -= count
        if count:
            joined.append(pairs)
        if not left:
            return joined, limit, last
    return joined, limit - left, None


# Declared fields.


def select(read: Read, query: Query, now: int) -> list[Row]:
    """The entries that a query asks for, one more than its limit where there are more."""
    if query.order_by == "key" and not query.equal:
        return _select_by_key(read, query, now)
    branches = [
        branch for values in _combinations(query) if (branch := _branch(query, values, now)) is not None
    ]
    if not branches:
        return []
    order = _order(query, "place", "key")
    text = " UNION ALL ".join(f"SELECT * FROM ({branch.text})" for branch in branches)  # noqa: S608 - the same
    parameters = [value for branch in branches for value in branch.parameters]
    return read(
        f"SELECT r.key, CAST(r.value AS BLOB), r.version FROM "  # noqa: S608 - declared names only
        f"(SELECT * FROM ({text}) ORDER BY {order} LIMIT ?) AS found "
        f"JOIN records AS r ON r.id = found.id ORDER BY {_order(query, 'found.place', 'found.key')}",
        [*parameters, query.limit + 1],
    )


def _select_by_key(read: Read, query: Query, now: int) -> list[Row]:
    collection = query.collection
    after = query.after[1] if query.after is not None else None
    if not query.descending:
        ranges = list(key_ranges(collection.prefix, after, collection.exclude))
        return read_ranges(read, ENTRY, ranges, query.limit + 1, now)
    ranges = list(key_ranges(collection.prefix, None, collection.exclude))[::-1]
    if after is not None:
        ranges = [Clause(f"{one.text} AND key < ?", (*one.parameters, after)) for one in ranges]
    return read_ranges(read, ENTRY, ranges, query.limit + 1, now, descending=True)


def _combinations(query: Query) -> Iterator[tuple[Value, ...]]:
    """Each combination of values that the equality conditions allow; each is one run through the index."""
    choices: list[tuple[Value, ...]] = [
        tuple(dict.fromkeys(one.values)) if isinstance(one, In) else (one.value,) for _, one in query.equal
    ]
    return product(*choices)


def _branch(query: Query, values: tuple[Value, ...], now: int) -> Clause | None:
    """The first rows of one run through the index, up to the limit; None where there can be none."""
    collection, by_key = query.collection, query.order_by == "key"
    names = [name for name, _ in query.equal]
    bounds = _bounds_of_key(query) if by_key else _bounds(query)
    if NEVER in bounds or not all(_storable(value) for value in values):
        return None
    conditions = [
        Clause(f"collection = '{collection.name}'"),
        *(
            Clause(f"{column(collection, name)} IS ?", (value,))
            for name, value in zip(names, values, strict=True)
        ),
        *bounds,
        *(_filter(collection, name, condition) for name, condition in query.also),
        Clause(_ALIVE, (now,)),
    ]
    place = "NULL" if by_key else column(collection, query.order_by)
    index = index_name(collection, names if by_key else [*names, query.order_by])
    return Clause(
        f"SELECT id, {place} AS place, key FROM records INDEXED BY {index} "  # noqa: S608 - declared names only
        f"WHERE {' AND '.join(one.text for one in conditions)} ORDER BY {_order(query, place, 'key')} LIMIT ?",
        (*(value for one in conditions for value in one.parameters), query.limit + 1),
    )


def _order(query: Query, place: str, key: str) -> str:
    direction = "DESC" if query.descending else "ASC"
    return f"{key} {direction}" if query.order_by == "key" else f"{place} {direction}, {key} {direction}"


def _bounds_of_key(query: Query) -> list[Clause]:
    if query.after is None:
        return []
    return [Clause("key < ?" if query.descending else "key > ?", (query.after[1],))]


def _bounds(query: Query) -> list[Clause]:
    """The range on the field that orders. It always has a lower end, so that entries without the field are not
    read; a cursor takes the place of the end that it lies beyond."""
    name = column(query.collection, query.order_by)
    kind = query.collection.fields[query.order_by].kind
    within = query.within or Between()
    if _is_empty(within) or (query.within is not None and kind is not int):
        return [NEVER]
    least: Value = _at_least(within) if kind is int else ""
    lower = Clause(f"{name} >= ?", (least,))
    upper = Clause(f"{name} <= ?", (min(within.most, _MOST),)) if within.most is not None else None
    beyond = _beyond(query, name, kind)
    # Of two ends at the same place the cursor is the narrower one, and of equals the first is taken.
    if beyond is not None and not query.descending:
        lower = max(beyond, lower, key=_place)
    elif beyond is not None:
        upper = beyond if upper is None else min(beyond, upper, key=_place)
    return [lower] if upper is None else [lower, upper]


def _place(bound: Clause) -> Any:
    return bound.parameters[0]


def _beyond(query: Query, name: str, kind: type) -> Clause | None:
    """What lies after the cursor, in the query's direction."""
    if query.after is None:
        return None
    value, key = query.after
    if type(value) is not kind or not _storable(value):
        raise InvalidInput("The cursor belongs to another sort order.", field="after", fix=FIRST_PAGE)
    return Clause(f"({name}, key) {'<' if query.descending else '>'} (?, ?)", (value, key))


def _at_least(within: Between) -> int:
    return _LEAST if within.least is None else max(within.least, _LEAST)


def _is_empty(within: Between) -> bool:
    """Whether no integer that a column can hold lies in the range."""
    return _at_least(within) > _MOST or (within.most is not None and within.most < _LEAST)


def _storable(value: Value) -> bool:
    """Whether a column can hold it; what it cannot hold, no entry has."""
    return not isinstance(value, int) or _LEAST <= value <= _MOST


# Searched terms.


def split_filters(
    collection: RecordKind, conditions: Iterable[tuple[str, Condition]]
) -> tuple[list[Clause], dict[str, Condition]]:
    """Conditions on fields that have a column, as SQL; and the others, to be looked at in the value."""
    kept = kept_fields(collection)
    clauses: list[Clause] = []
    rest: dict[str, Condition] = {}
    for name, condition in conditions:
        if name in kept:
            clauses.append(_filter(collection, name, condition))
        else:
            rest[name] = condition
    return clauses, rest


def _filter(collection: RecordKind, name: str, condition: Condition) -> Clause:
    field = column(collection, name)
    match condition:
        case Is(value=value):
            return Clause(f"{field} IS ?", (value,)) if _storable(value) else NEVER
        case In(values=values):
            storable = tuple(value for value in values if _storable(value))
            return Clause(f"{field} IN ({', '.join('?' * len(storable))})", storable)
        case Between() if collection.fields[name].kind is int and not _is_empty(condition):
            most = _MOST if condition.most is None else min(condition.most, _MOST)
            return Clause(f"{field} BETWEEN ? AND ?", (_at_least(condition), most))
        case _:
            return NEVER


def search(
    collection: RecordKind, terms: Sequence[str], filters: Sequence[Clause], now: int, most: int | None
) -> Clause:
    """Matching entries: first those that match in the most telling field, then any others, the newest of each
    first, up to a limit (`most`).

    Weighing words by how rare they are would read every match of a common one, and so cost more the more records
    there are; this order stops at the limit.
    """
    match = _match(terms)
    parts = [f"{collection.searched[0]} : ({match})", match]
    ranked = [
        _matching(collection, part, filters, now, rank, -1 if most is None else most)
        for rank, part in enumerate(parts)
    ]
    text = " UNION ALL ".join(f"SELECT * FROM ({one.text})" for one in ranked)  # noqa: S608 - declared names only
    return Clause(
        "SELECT records.key, CAST(records.value AS BLOB), records.version FROM "  # noqa: S608 - declared names only
        f"(SELECT id, min(rank) AS rank FROM ({text}) GROUP BY id ORDER BY min(rank), id DESC LIMIT ?) AS found "
        "CROSS JOIN records ON records.id = found.id ORDER BY found.rank, found.id DESC",
        (*(value for one in ranked for value in one.parameters), -1 if most is None else most),
    )


def _matching(
    collection: RecordKind, match: str, filters: Sequence[Clause], now: int, rank: int, most: int
) -> Clause:
    """The newest matches, read from the end of the index's list."""
    table = search_table(collection)
    conditions = [Clause(f"{table} MATCH ?", (match,)), *filters, Clause(_ALIVE, (now,))]
    return Clause(
        f"SELECT {table}.rowid AS id, {rank} AS rank FROM {table} "  # noqa: S608 - declared names only
        f"CROSS JOIN records ON records.id = {table}.rowid WHERE {' AND '.join(one.text for one in conditions)} "
        f"ORDER BY {table}.rowid DESC LIMIT ?",
        (*(value for one in conditions for value in one.parameters), most),
    )


def _match(terms: Sequence[str]) -> str:
    """Each term quoted, the last one as a prefix. Terms are letters and digits, so a quote cannot end early."""
    return " ".join(f'"{term}"' for term in terms) + "*"


def holds(collection: RecordKind, value: bytes, conditions: Mapping[str, Condition]) -> bool:
    return all(one.holds(collection.fields[name].read(value)) for name, one in conditions.items())
