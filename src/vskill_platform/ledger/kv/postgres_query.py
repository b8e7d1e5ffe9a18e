"""Queries to the PostgreSQL store as SQL, and records as rows. Values are always arguments; only declared names
appear in the text."""

from collections.abc import Iterable, Sequence

from vskill_core.errors import InvalidInput
from vskill_platform.domain.people.namespace import Everything
from vskill_platform.domain.skills.search import TermQuery, WantedTerm
from vskill_platform.ledger.kv.collections import AUDIENCE, RecordKind, Value, collection_holding
from vskill_platform.ledger.kv.fields import DERIVED_COLUMNS, column, derive, end_of
from vskill_platform.ledger.kv.query import FIRST_PAGE, Between, CheckedSearch, Condition, In, Is, Query

ENTRY = "key, convert_to(value, 'UTF8'), version"
_LEAST = -(2**63)
_MOST = 2**63 - 1
#: Text-search weights of the searched fields, in their order.
_LABELS = "ABCD"
#: With more audiences than this, another statement is cheaper.
FEW_AUDIENCES = 10
#: Up to this many index runs are merged directly (`_union`); with more, their first rows are compared first.
_FEW_RUNS = 10
#: Positions that a text-search vector can hold.
_MOST_POSITION = 16_383


class Arguments:
    """The values of a statement, numbered as they are added."""

    def __init__(self) -> None:
        self.values: list[object] = []

    def add(self, value: object) -> str:
        self.values.append(value)
        return f"${len(self.values)}"


def row_of(key: str, value: bytes, expires_at: int | None) -> dict[str, object]:
    """A record as a row of the table; missing values are NULL."""
    named = zip(DERIVED_COLUMNS, derive(key, value), strict=True)
    row: dict[str, object] = {
        name: found for name, found in named if found is not None and name != "searched"
    }
    row.update(key=key, value=value.decode())
    if expires_at is not None:
        row["expires_at"] = expires_at
    collection = collection_holding(key)
    if collection is not None and collection.searched:
        row["terms"] = _vector(collection.search_texts(value))
    if collection is not None and collection.numbers:
        row[column(collection, collection.numbers)] = sorted(collection.numbers_of(value))
    return row


def _vector(texts: Sequence[str]) -> str:
    """Every term with its field's label. Terms are letters and digits, so they cannot hold a quote."""
    words: dict[str, list[str]] = {}
    place = 0
    for label, text in zip(_LABELS, texts, strict=False):
        for term in text.split():
            place = min(place + 1, _MOST_POSITION)
            words.setdefault(term, []).append(f"{place}{label}")
    return " ".join(f"'{term}':{','.join(places)}" for term, places in words.items())


# Ranges of keys.


def key_ranges(arguments: Arguments, prefix: str, after: str | None, exclude: Iterable[str]) -> str:
    """The condition that a key is in the range and in no excluded one."""
    parts = [f"key >= {arguments.add(prefix)}"]
    end = end_of(prefix)
    if end is not None:
        parts.append(f"key < {arguments.add(end)}")
    if after is not None:
        parts.append(f"key > {arguments.add(after)}")
    for hole in exclude:
        beyond = end_of(hole)
        rest = f" OR key >= {arguments.add(beyond)}" if beyond is not None else ""
        parts.append(f"(key < {arguments.add(hole)}{rest})")
    return " AND ".join(parts)


# Declared fields.


def select(query: Query, now: int) -> tuple[str, list[object]]:
    """The statement for a query, and its arguments; no statement if nothing can match."""
    arguments = Arguments()
    if query.order_by == "key" and not query.equal and not query.by_audience:
        return _by_key(query, arguments, now), arguments.values
    run = _IndexRun(query, arguments, now)
    if run.never:
        return "", []
    runs = _runs_of_audiences(run)
    found = _merge_heads(run) if runs is None else _union(run, runs)
    text = f"{found} ORDER BY {_order(query, 'place', 'key')} LIMIT {arguments.add(query.limit + 1)}"
    return text, arguments.values


class _IndexRun:
    """The runs along the index that serves a query, as SQL. A run has fixed values in the leading columns: `rows` gets
    those that differ between runs."""

    def __init__(self, query: Query, arguments: Arguments, now: int) -> None:
        collection = query.collection
        self.query = query
        self.arguments = arguments
        self.place = "NULL" if query.order_by == "key" else column(collection, query.order_by)
        bounds = _bounds_of_key(query, arguments) if query.order_by == "key" else _bounds(query, arguments)
        also = [_filter(collection, name, condition, arguments) for name, condition in query.also]
        fixed = [
            _equals(collection, name, condition.value, arguments)
            for name, condition in query.equal
            if isinstance(condition, Is)
        ]
        #: The field with several wanted values, and those of them that a record can have.
        self.several: str | None = None
        self.values: list[Value] = []
        for name, condition in query.equal:
            if isinstance(condition, In):
                self.several = name
                self.values = [one for one in condition.distinct if _storable(collection, name, one)]
        self._conditions = [
            f"collection = '{collection.name}'",
            *fixed,
            *bounds,
            *also,
            _alive(arguments, now),
        ]
        #: No record can match.
        self.never = (
            "false" in self._conditions
            or (self.several is not None and not self.values)
            or (query.by_audience and query.audiences == frozenset())
        )

    def rows(self, what: str, limit: int, audience: str, value: str, more: str = "") -> str:
        """A run's first rows. `audience` and `value` are the conditions on the two varying columns, or empty."""
        collection = self.query.collection
        compared = [f"{column(collection, AUDIENCE)} {audience}"] if audience else []
        if self.several is not None:
            compared.append(f"{column(collection, self.several)} {value}")
        conditions = [*compared, *self._conditions, *([more] if more else [])]
        return (
            f"SELECT {what} FROM records WHERE {' AND '.join(conditions)} "  # noqa: S608 - declared names only
            f"ORDER BY {_order_of_index(self.query, self.place)} LIMIT {limit}"
        )


def _runs_of_audiences(run: _IndexRun) -> list[str] | None:
    """The conditions on the audience if there are few runs; None if there are many."""
    if not run.query.by_audience:
        return [""]
    if isinstance(run.query.audiences, Everything):
        return None
    audiences: list[str | None] = [*sorted(run.query.audiences)]
    if len(audiences) > 1:
        most = _FEW_RUNS // max(len(run.values), 1)
        if len(audiences) > most:
            return None
        # Pad with NULL, which equals nothing: readers of a few audiences share one statement, planned once.
        audiences += [None] * (most - len(audiences))
    return [f"= {run.arguments.add(audience)}" for audience in audiences]


def _union(run: _IndexRun, audiences: Iterable[str]) -> str:
    """All runs merged, each up to the limit: the server reads one row per run, and one per row of the page."""
    values = [f"= {run.arguments.add(value)}" for value in run.values] or [""]
    what = f"key, value, version, {run.place} AS place"
    limit = run.query.limit + 1
    runs = [f"({run.rows(what, limit, audience, value)})" for audience in audiences for value in values]
    return f"SELECT key, convert_to(value, 'UTF8'), version FROM ({' UNION ALL '.join(runs)}) AS found"  # noqa: S608


def _merge_heads(run: _IndexRun) -> str:
    """Read the first row (head) of each run. A page of n rows needs only the n runs with the best heads, and nothing
    beyond the last of these. Records without an audience are one more run."""
    query, arguments = run.query, run.arguments
    limit = query.limit + 1
    sources = [_audiences(query, arguments)]
    names = ["audience"]
    if run.several is not None:
        kind = "bigint" if query.collection.fields[run.several].kind is int else "text"
        sources.append(f"unnest({arguments.add(run.values)}::{kind}[]) AS lead (value)")
        names.append("value")
    leads = ", ".join(names)
    order = _order(query, "place", "key")
    head = run.rows(f"{run.place} AS place, key", 1, "= runs.audience", "= runs.value")
    what = f"key, value, version, {run.place} AS place"
    rows = run.rows(what, limit, "= heads.audience", "= heads.value", _not_beyond_last(query, arguments))
    found = f"SELECT found.* FROM heads CROSS JOIN LATERAL ({rows}) AS found"  # noqa: S608 - declared names only
    if isinstance(query.audiences, Everything):
        values = [f"= {arguments.add(value)}" for value in run.values] or [""]
        nobody = [run.rows(what, limit, "IS NULL", value) for value in values]
        found = " UNION ALL ".join([found, *(f"({one})" for one in nobody)])
    return (
        f"WITH runs AS (SELECT {leads} FROM {' CROSS JOIN '.join(sources)}), "  # noqa: S608 - declared names only
        f"heads AS MATERIALIZED (SELECT {leads}, place, key FROM runs CROSS JOIN LATERAL ({head}) AS head "
        f"ORDER BY {order} LIMIT {limit}), "
        f"last AS MATERIALIZED (SELECT place, key FROM heads ORDER BY {order} OFFSET {query.limit}) "
        f"SELECT key, convert_to(value, 'UTF8'), version FROM ({found}) AS found"
    )


def _audiences(query: Query, arguments: Arguments) -> str:
    """The reader's audiences, or all."""
    if not isinstance(query.audiences, Everything):
        return f"unnest({arguments.add(sorted(query.audiences))}::text[]) AS reader (audience)"
    kind = f"collection = '{query.collection.name}' AND field = '{AUDIENCE}' AND known"
    return (
        f"(SELECT value AS audience FROM (SELECT value, n FROM counts WHERE {kind} "  # noqa: S608 - declared names only
        f"UNION ALL SELECT value, n FROM count_deltas WHERE {kind}) AS counted "
        "GROUP BY value HAVING sum(n) > 0) AS reader"
    )


def _not_beyond_last(query: Query, arguments: Arguments) -> str:
    """If the heads alone fill the page, no row after the last head is needed."""
    sign = ">=" if query.descending else "<="
    if query.order_by == "key":
        end = query.prefix if query.descending else end_of(query.prefix)
        last = "(SELECT key FROM last)"
        return "" if end is None else f"key {sign} coalesce({last}, {arguments.add(end)})"
    if query.collection.fields[query.order_by].kind is not int:
        return ""
    end_of_all = -_MOST if query.descending else _MOST
    last = "(SELECT place FROM last)"
    return f"{column(query.collection, query.order_by)} {sign} coalesce({last}, {end_of_all})"


def _by_key(query: Query, arguments: Arguments, now: int) -> str:
    collection = query.collection
    after = query.after[1].partition("\0")[0] if query.after is not None else None
    ranges = key_ranges(arguments, query.prefix, None if query.descending else after, collection.exclude)
    if query.descending and after is not None:
        ranges += f" AND key < {arguments.add(after)}"
    return (
        f"SELECT {ENTRY} FROM records WHERE {ranges} AND {_alive(arguments, now)} "  # noqa: S608 - declared names only
        f"ORDER BY key {'DESC' if query.descending else 'ASC'} LIMIT {arguments.add(query.limit + 1)}"
    )


def _alive(arguments: Arguments, now: int) -> str:
    return f"(expires_at IS NULL OR expires_at > {arguments.add(now)})"


def _order(query: Query, place: str, key: str) -> str:
    direction = "DESC" if query.descending else "ASC"
    return f"{key} {direction}" if query.order_by == "key" else f"{place} {direction}, {key} {direction}"


def _order_of_index(query: Query, place: str) -> str:
    """The same order with the index's first columns named. All rows are equal in them, but for NULL the planner does
    not know it, and would scan every key rather than sort."""
    direction = "DESC" if query.descending else "ASC"
    names = [AUDIENCE] if query.by_audience else []
    names += [
        name for name, condition in query.equal if not isinstance(condition, Is) or condition.value is None
    ]
    first = [f"{column(query.collection, name)} {direction}" for name in names]
    return ", ".join([*first, _order(query, place, "key")])


def _equals(collection: RecordKind, name: str, value: Value, arguments: Arguments) -> str:
    field = column(collection, name)
    if value is None:
        return f"{field} IS NULL"
    return f"{field} = {arguments.add(value)}" if _storable(collection, name, value) else "false"


def _bounds_of_key(query: Query, arguments: Arguments) -> list[str]:
    bounds = []
    if query.prefix != query.collection.prefix:
        bounds.append(key_ranges(arguments, query.prefix, None, ()))
    if query.after is not None:
        last = arguments.add(query.after[1].partition("\0")[0])
        bounds.append(f"key {'<' if query.descending else '>'} {last}")
    return bounds


def _bounds(query: Query, arguments: Arguments) -> list[str]:
    """The range on the field of `order_by`; it excludes entries without the field."""
    collection = query.collection
    name = column(collection, query.order_by)
    kind = collection.fields[query.order_by].kind
    within = query.within or Between()
    if query.within is not None and kind is not int:
        return ["false"]
    bounds = [f"{name} IS NOT NULL"]
    if within.least is not None:
        bounds.append(f"{name} >= {arguments.add(within.least)}" if within.least <= _MOST else "false")
    if within.most is not None:
        bounds.append(f"{name} <= {arguments.add(within.most)}" if within.most >= _LEAST else "false")
    if query.after is not None:
        value, key = query.after
        if type(value) is not kind or not _storable(collection, query.order_by, value):
            raise InvalidInput("The cursor belongs to another sort order.", field="after", fix=FIRST_PAGE)
        sign = "<" if query.descending else ">"
        bounds.append(
            f"({name}, key) {sign} ({arguments.add(value)}, {arguments.add(key.partition(chr(0))[0])})"
        )
    return bounds


def _storable(collection: RecordKind, name: str, value: Value) -> bool:
    """Whether the column can hold it; if not, no entry has it."""
    if collection.fields[name].kind is int:
        return type(value) is int and _LEAST <= value <= _MOST
    return isinstance(value, str) and "\0" not in value


# Searched terms.


def search(query: CheckedSearch, now: int) -> tuple[str, list[object]]:
    """The statement for the first candidates, one more than the limit: key, terms of each searched field, and the
    wanted fields.

    The word index includes the audiences. The matches are planned without the limit: with it, the planner would expect
    to find enough early in the order, although all of those may be hidden."""
    arguments, collection, wanted = Arguments(), query.collection, query.terms
    words = f"(CASE WHEN collection = '{collection.name}' THEN terms END)"
    sign = " & " if wanted.every else " | "
    found = arguments.add(sign.join(f"({_match(term)})" for term in wanted.terms))
    tested = [f"{words} @@ {found}::tsquery", _alive(arguments, now)]
    if not isinstance(query.audiences, Everything):
        readers = arguments.add(sorted(query.audiences))
        tested.append(f"ARRAY[{column(collection, AUDIENCE)}] && {readers}::text[]")
    tested += [_filter(collection, name, condition, arguments) for name, condition in query.where]
    points = "0" if wanted.every else _points(wanted, arguments)
    weight = column(collection, collection.weighed)
    labels = _LABELS[: len(collection.searched)].lower()
    texts = [f"array_to_string(tsvector_to_array(ts_filter(terms, '{{{one}}}')), ' ')" for one in labels]
    what = ", ".join(["key", *texts, *(column(collection, name) for name in query.fields)])
    order = "points DESC, weight DESC NULLS LAST, key"
    return (
        f"WITH matched AS MATERIALIZED (SELECT key, {weight} AS weight, {points} AS points FROM records "  # noqa: S608
        f"WHERE {' AND '.join(tested)}), "
        f"found AS MATERIALIZED (SELECT * FROM matched ORDER BY {order} LIMIT {arguments.add(query.limit + 1)}) "
        f"SELECT {what} FROM found JOIN records USING (key) ORDER BY {order}"
    ), arguments.values


def _points(query: TermQuery, arguments: Arguments) -> str:
    """The points of each term that a record holds, and extra points for any term in the first field."""
    tests = [(_match(term), term.points) for term in query.terms]
    tests.append((" | ".join(_match(term, "A") for term in query.terms), query.name_points))
    return " + ".join(
        f"CASE WHEN terms @@ {arguments.add(match)}::tsquery THEN {arguments.add(points)}::int ELSE 0 END"
        for match, points in tests
    )


def _match(term: WantedTerm, label: str = "") -> str:
    """The quoted term. Terms are letters, digits and marks, so they cannot hold a quote."""
    whole = f"'{term.text}'" + (f":{label}" if label else "")
    return whole + (f" | '{term.beginning}':*{label}" if term.beginning else "")


def _filter(collection: RecordKind, name: str, condition: Condition, arguments: Arguments) -> str:
    field = column(collection, name)
    match condition:
        case Is(value=value):
            return _equals(collection, name, value, arguments)
        case In(values=values):
            storable = [value for value in values if _storable(collection, name, value)]
            return f"{field} = ANY ({arguments.add(storable)})" if storable else "false"
        case Between(least=least, most=most) if collection.fields[name].kind is int:
            if (least or 0) > _MOST or (most or 0) < _LEAST:
                return "false"
            low = max(_LEAST if least is None else least, _LEAST)
            high = min(_MOST if most is None else most, _MOST)
            return f"{field} BETWEEN {arguments.add(low)} AND {arguments.add(high)}"
        case _:
            return "false"
