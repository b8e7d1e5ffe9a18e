"""Queries to the SQLite store as SQL: ranges of keys, declared fields, searched terms. Values are always parameters;
only declared names appear in the text.

Every query over fields names its index (`INDEXED BY`), so that SQLite either uses it or refuses: no plan is left to
chance.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from vskill_core.errors import InvalidInput
from vskill_platform.domain.people.namespace import Audiences, Everything
from vskill_platform.domain.skills.search import TermQuery, WantedTerm
from vskill_platform.ledger.database.sqlite import Read
from vskill_platform.ledger.kv.collections import AUDIENCE, RecordKind, Value
from vskill_platform.ledger.kv.contract import Counts, sum_counts
from vskill_platform.ledger.kv.fields import column, end_of
from vskill_platform.ledger.kv.query import FIRST_PAGE, Between, CheckedSearch, Condition, In, Is, Query
from vskill_platform.ledger.kv.sqlite_fields import audience_term, search_table

Row = tuple[Any, ...]
Parameters = list[Value]
#: The pairs of each range, how many there are, and the last key where there may be more.
Joined = tuple[list[bytes], int, str | None]

#: The columns of an entry; the cast gives the value's bytes without decoding them.
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
    """Living records of the ranges as pairs of key and value. SQLite joins them into one row per range, because
    fetching a row waits for the GIL."""
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
    """The entries of a query, one more than its limit if there are more."""
    if query.order_by == "key" and not query.equal and not query.by_audience:
        return _select_by_key(read, query, now)
    statement = _select_by_index(query, now)
    return [] if statement is None else read(statement.text, list(statement.parameters))


def _select_by_key(read: Read, query: Query, now: int) -> list[Row]:
    exclude = query.collection.exclude
    after = query.after[1] if query.after is not None else None
    if not query.descending:
        ranges = list(key_ranges(query.prefix, after, exclude))
        return read_ranges(read, ENTRY, ranges, query.limit + 1, now)
    ranges = list(key_ranges(query.prefix, None, exclude))[::-1]
    if after is not None:
        ranges = [Clause(f"{one.text} AND key < ?", (*one.parameters, after)) for one in ranges]
    return read_ranges(read, ENTRY, ranges, query.limit + 1, now, descending=True)


class _Lead(msgspec.Struct, frozen=True):
    """A leading column of the index that serves a query: with one value, or with one run per value."""

    column: str
    #: The value if there is one; otherwise `values` is the SQL that gives them, each as `value`.
    value: Value = None
    values: Clause | None = None


def _leads(query: Query) -> list[_Lead] | None:
    """The index's columns before the one that orders; None if one of them cannot have any wanted value."""
    leads: list[_Lead | None] = []
    collection = query.collection
    if query.by_audience:
        name = column(collection, AUDIENCE)
        if isinstance(query.audiences, Everything):
            leads.append(_Lead(name, values=_existing_audiences(collection)))
        else:
            leads.append(_lead(name, sorted(query.audiences)))
    for name, condition in query.equal:
        values = condition.distinct if isinstance(condition, In) else (condition.value,)
        leads.append(_lead(column(collection, name), values))
    certain = [lead for lead in leads if lead is not None]
    return certain if len(certain) == len(leads) else None


def _lead(name: str, values: Iterable[Value]) -> _Lead | None:
    storable = [value for value in values if _storable(value)]
    if len(storable) <= 1:
        return _Lead(name, storable[0]) if storable else None
    return _Lead(name, values=Clause("json_each(?)", (msgspec.json.encode(storable).decode(),)))


def _existing_audiences(collection: RecordKind) -> Clause:
    """Every audience of a record in this collection; the empty blob stands for no audience."""
    return Clause(
        "(SELECT nullif(value, x'') AS value FROM counts "  # noqa: S608 - declared names only
        f"WHERE collection = '{collection.name}' AND field = '{AUDIENCE}' AND n > 0)"
    )


def _select_by_index(query: Query, now: int) -> Clause | None:
    """One run along the index, or several merged; None if nothing can match."""
    leads, bounds = _leads(query), _bounds(query, _beyond(query))
    if leads is None or NEVER in bounds:
        return None
    varying = [lead for lead in leads if lead.values is not None]
    fixed = {lead.column: Clause("?", (lead.value,)) for lead in leads if lead.values is None}
    if varying:
        return _walk(query, varying, fixed, bounds, now)
    what = f"id, {_place_of(query)} AS place, key"
    found = _first(query, fixed, [*bounds, Clause(_ALIVE, (now,))], what, query.limit + 1)
    return Clause(
        f"SELECT r.key, CAST(r.value AS BLOB), r.version FROM ({found.text}) AS found "  # noqa: S608 - declared names only
        f"JOIN records AS r ON r.id = found.id ORDER BY {_order(query, 'found.place', 'found.key')}",
        found.parameters,
    )


def _walk(
    query: Query, varying: Sequence[_Lead], fixed: Mapping[str, Clause], bounds: Sequence[Clause], now: int
) -> Clause:
    """Merge the runs: the first row of each goes into a priority queue in the query's order, and a row taken out is
    replaced by the next one of its run. So a page reads one row per run, and one per row of its own.

    Expired rows pass through the queue and are filtered after it: the index does not hold the expiry, and this saves
    one record lookup per run."""
    names = [f"lead{number}" for number in range(len(varying))]
    heads = {lead.column: Clause(f"{name}.value") for name, lead in zip(names, varying, strict=True)}
    taken = {lead.column: Clause(f"walk.{name}") for name, lead in zip(names, varying, strict=True)}
    sources = [
        Clause(f"{lead.values.text} AS {name}", lead.values.parameters)
        for name, lead in zip(names, varying, strict=True)
        if lead.values is not None
    ]
    head = _first(query, {**fixed, **heads}, bounds, "id", 1)
    # The sign takes the key's affinity away; with it, SQLite seeks the place alone and steps over all who share it.
    beyond = _bounds(query, _beyond_place(query, "walk.place", "+walk.key"))
    following = _first(query, {**fixed, **taken}, beyond, "id", 1)
    place = f"r.{_place_of(query)}" if query.order_by != "key" else "NULL"
    # Without LIMIT, SQLite would drop the queue's ORDER BY, and so the page's; -1 means no limit. The outer LIMIT ends
    # the walk.
    text = (
        f"WITH RECURSIVE walk (id, place, key, {', '.join(names)}) AS ("  # noqa: S608 - declared names only
        f"SELECT r.id, {place}, r.key, {', '.join(f'{name}.value' for name in names)} "
        f"FROM {' CROSS JOIN '.join(one.text for one in sources)} CROSS JOIN records AS r ON r.id = ({head.text}) "
        f"UNION ALL SELECT r.id, {place}, r.key, {', '.join(f'walk.{name}' for name in names)} "
        f"FROM walk CROSS JOIN records AS r ON r.id = ({following.text}) ORDER BY {_order(query, '2', '3')} LIMIT -1) "
        "SELECT r.key, CAST(r.value AS BLOB), r.version FROM walk CROSS JOIN records AS r ON r.id = walk.id "
        f"WHERE {_ALIVE} LIMIT ?"
    )
    parameters = [value for one in (*sources, head, following) for value in one.parameters]
    return Clause(text, (*parameters, now, query.limit + 1))


def _first(
    query: Query, leads: Mapping[str, Clause], bounds: Sequence[Clause], what: str, most: int
) -> Clause:
    """The first rows of one run along the index."""
    collection = query.collection
    conditions = [
        Clause(f"collection = '{collection.name}'"),
        *(Clause(f"{name} IS {one.text}", one.parameters) for name, one in leads.items()),
        *bounds,
        *(_filter(collection, name, condition) for name, condition in query.also),
    ]
    return Clause(
        f"SELECT {what} FROM records INDEXED BY {_index_of(query)} "  # noqa: S608 - declared names only
        f"WHERE {' AND '.join(one.text for one in conditions)} "
        f"ORDER BY {_order(query, _place_of(query), 'key')} LIMIT ?",
        (*(value for one in conditions for value in one.parameters), most),
    )


def _index_of(query: Query) -> str:
    names = [AUDIENCE] if query.by_audience else []
    names += [name for name, _ in query.equal]
    return index_name(query.collection, names if query.order_by == "key" else [*names, query.order_by])


def _place_of(query: Query) -> str:
    return "NULL" if query.order_by == "key" else column(query.collection, query.order_by)


def _order(query: Query, place: str, key: str) -> str:
    direction = "DESC" if query.descending else "ASC"
    return f"{key} {direction}" if query.order_by == "key" else f"{place} {direction}, {key} {direction}"


def _bounds(query: Query, beyond: Clause | None) -> list[Clause]:
    """The range on the column that orders. A field's range always has a lower end, so that entries without the field
    are not read; the cursor replaces the end that it narrows."""
    if query.order_by == "key":
        return [*_bounds_of_prefix(query), *([] if beyond is None else [beyond])]
    name = column(query.collection, query.order_by)
    kind = query.collection.fields[query.order_by].kind
    within = query.within or Between()
    if _is_empty(within) or (query.within is not None and kind is not int):
        return [NEVER]
    least: Value = _at_least(within) if kind is int else ""
    lower = Clause(f"{name} >= ?", (least,))
    upper = Clause(f"{name} <= ?", (min(within.most, _MOST),)) if within.most is not None else None
    # If both ends have the same value, the cursor is narrower: it comes first, and `max` and `min` take the first.
    if beyond is not None and not query.descending:
        lower = max(beyond, lower, key=_place) if beyond.parameters else beyond
    elif beyond is not None:
        upper = beyond if upper is None or not beyond.parameters else min(beyond, upper, key=_place)
    return [lower] if upper is None else [lower, upper]


def _bounds_of_prefix(query: Query) -> list[Clause]:
    """The range of a longer prefix; the collection's own prefix needs none, since its indexes hold nothing else."""
    if query.prefix == query.collection.prefix:
        return []
    end = end_of(query.prefix)
    lower = Clause("key >= ?", (query.prefix,))
    return [lower] if end is None else [lower, Clause("key < ?", (end,))]


def _place(bound: Clause) -> Any:
    return bound.parameters[0]


def _beyond(query: Query) -> Clause | None:
    """What lies after the cursor, in the query's direction."""
    if query.after is None:
        return None
    value, key = query.after
    if query.order_by == "key":
        return msgspec.structs.replace(_beyond_place(query, "?", "?"), parameters=(key,))
    kind = query.collection.fields[query.order_by].kind
    if type(value) is not kind or not _storable(value):
        raise InvalidInput("The cursor belongs to another sort order.", field="after", fix=FIRST_PAGE)
    return msgspec.structs.replace(_beyond_place(query, "?", "?"), parameters=(value, key))


def _beyond_place(query: Query, place: str, key: str) -> Clause:
    sign = "<" if query.descending else ">"
    if query.order_by == "key":
        return Clause(f"key {sign} {key}")
    return Clause(f"({_place_of(query)}, key) {sign} ({place}, {key})")


def _at_least(within: Between) -> int:
    return _LEAST if within.least is None else max(within.least, _LEAST)


def _is_empty(within: Between) -> bool:
    """Whether no integer that a column can hold lies in the range."""
    return _at_least(within) > _MOST or (within.most is not None and within.most < _LEAST)


def _storable(value: Value) -> bool:
    """Whether a column can hold it; if not, no entry has it."""
    if isinstance(value, str):
        return "\0" not in value
    return value is None or _LEAST <= value <= _MOST


# Counts.

#: With more audiences than this, all audiences are read first, to sum the smaller side.
FEW_AUDIENCES = 10


def count(read: Read, collection: RecordKind, fields: Sequence[str], audiences: Audiences) -> Counts:
    """The counts of each of these fields: the sums of the reader's audiences; if they are the majority, the total
    minus the others."""
    if isinstance(audiences, Everything):
        return _sum_counts(fields, _read_totals(read, collection, fields))
    readable: set[str | bytes] = set(audiences)
    if len(readable) > FEW_AUDIENCES:
        existing = {value for _, value, _ in _read_totals(read, collection, (AUDIENCE,))}
        hidden, readable = existing - readable, existing & readable
        if len(hidden) < len(readable):
            totals = _read_totals(read, collection, fields)
            taken_off = [
                (name, value, -n) for name, value, n in _read_counts(read, collection, fields, hidden)
            ]
            return _sum_counts(fields, [*totals, *taken_off])
    return _sum_counts(fields, _read_counts(read, collection, fields, readable))


def _read_totals(read: Read, collection: RecordKind, fields: Sequence[str]) -> list[Row]:
    return read(
        "SELECT field, value, n FROM counts "
        "WHERE collection = ? AND field IN (SELECT value FROM json_each(?)) AND n > 0",
        [collection.name, msgspec.json.encode(fields).decode()],
    )


def _read_counts(
    read: Read, collection: RecordKind, fields: Sequence[str], audiences: Iterable[str | bytes]
) -> list[Row]:
    """The sums of these audiences. The empty blob (no audience) is null in JSON, which cannot hold it."""
    named = [None if one == b"" else one for one in audiences]
    return read(
        "SELECT counted.field, counted.value, sum(counted.n) FROM json_each(?) AS f CROSS JOIN json_each(?) AS a "
        "CROSS JOIN audience_counts AS counted ON counted.collection = ? AND counted.field = f.value "
        "AND counted.audience = ifnull(a.value, x'') GROUP BY counted.field, counted.value",
        [
            msgspec.json.encode(fields).decode(),
            msgspec.json.encode(named).decode(),
            collection.name,
        ],
    )


def _sum_counts(fields: Sequence[str], rows: Iterable[Row]) -> Counts:
    return sum_counts(fields, ((field, None if value == b"" else value, n) for field, value, n in rows))


# Searched terms.


def _filter(collection: RecordKind, name: str, condition: Condition) -> Clause:
    field = column(collection, name)
    match condition:
        case Is(value=value):
            return Clause(f"{field} IS ?", (value,)) if _storable(value) else NEVER
        case In(values=values):
            storable = tuple(value for value in values if _storable(value))
            return Clause(f"{field} IN ({', '.join('?' * len(storable))})", storable) if storable else NEVER
        case Between() if collection.fields[name].kind is int and not _is_empty(condition):
            most = _MOST if condition.most is None else min(condition.most, _MOST)
            return Clause(f"{field} BETWEEN ? AND ?", (_at_least(condition), most))
        case _:
            return NEVER


def narrow_index(collection: RecordKind) -> str:
    """The index that holds all that ordering the matches needs (`tools/declared_schema.py`)."""
    return f"{collection.name}_narrow"


def search(read: Read, query: CheckedSearch, now: int) -> list[Row]:
    """The first candidates, one more than the limit if there are more: key, terms of each searched field, and the
    wanted fields.

    The audience is a term of the index, so entries that the reader may not read never match; each entry's own audience
    column is tested too."""
    collection = query.collection
    conditions = [Clause(f"collection = '{collection.name}'"), Clause(_ALIVE, (now,))]
    conditions += [_filter(collection, name, condition) for name, condition in query.where]
    readable = ""
    if not isinstance(query.audiences, Everything):
        named = sorted(query.audiences)
        readable = f" AND {AUDIENCE} : ({' OR '.join(map(audience_term, named))})"
        wanted = Clause("IN (SELECT value FROM json_each(?))", (msgspec.json.encode(named).decode(),))
        conditions.append(Clause(f"{column(collection, AUDIENCE)} {wanted.text}", wanted.parameters))
    if NEVER in conditions:
        return []
    matches = list(_matches(collection, query.terms, readable))
    points = " UNION ALL ".join(one.text for one in matches)
    statement = (
        f"SELECT records.id FROM (SELECT id, sum(points) AS points FROM ({points}) GROUP BY id) AS matched "  # noqa: S608
        f"CROSS JOIN records INDEXED BY {narrow_index(collection)} ON records.id = matched.id "
        f"WHERE {' AND '.join(one.text for one in conditions)} "
        f"ORDER BY matched.points DESC, {column(collection, collection.weighed)} DESC, key LIMIT ?"
    )
    parameters = [value for one in (*matches, *conditions) for value in one.parameters]
    numbers = [number for (number,) in read(statement, [*parameters, query.limit + 1])]
    return _read_candidates(read, collection, query.fields, numbers)


def _matches(collection: RecordKind, query: TermQuery, readable: str) -> Iterator[Clause]:
    """The ids of the records that hold each term, with its points, and of those with any term in the first field."""
    table = search_table(collection)
    every = f"{{{' '.join(collection.searched)}}}"
    asked = f"SELECT rowid AS id, ? AS points FROM {table} WHERE {table} MATCH ?"  # noqa: S608 - declared names only
    terms = [f"({_match(term)})" for term in query.terms]
    if query.every:
        yield Clause(asked, (0, f"({every} : ({' AND '.join(terms)})){readable}"))
        return
    for term, match in zip(query.terms, terms, strict=True):
        yield Clause(asked, (term.points, f"({every} : {match}){readable}"))
    yield Clause(asked, (query.name_points, f"({collection.searched[0]} : ({' OR '.join(terms)})){readable}"))


def _match(term: WantedTerm) -> str:
    """The quoted term. Terms are letters, digits and marks, so they cannot hold a quote."""
    return f'"{term.text}"' + (f' OR "{term.beginning}" *' if term.beginning else "")


def _read_candidates(
    read: Read, collection: RecordKind, fields: Sequence[str], numbers: Sequence[int]
) -> list[Row]:
    """The records with these ids, in their order."""
    table = search_table(collection)
    texts = [f"{table}.{name}" for name in collection.searched]
    what = ", ".join(["records.key", *texts, *(column(collection, name) for name in fields)])
    return read(
        f"SELECT {what} FROM (SELECT key AS place, value AS number FROM json_each(?)) AS found "  # noqa: S608 - declared names only
        f"CROSS JOIN {table} ON {table}.rowid = found.number CROSS JOIN records ON records.id = found.number "
        "ORDER BY found.place",
        [msgspec.json.encode(numbers).decode()],
    )
