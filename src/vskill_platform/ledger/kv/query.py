"""Queries over declared fields, checked against the declared indexes before any engine sees them.

`evaluate` is the meaning of a query, in plain Python; an engine that answers by index must give the same.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from vskill_core.errors import InvalidInput, UnindexedQuery
from vskill_core.foreign_json import read_json
from vskill_platform.domain.people.namespace import Audiences, Everything, may_read
from vskill_platform.domain.skills.search import TermQuery
from vskill_platform.ledger.kv.checks import check_texts
from vskill_platform.ledger.kv.collections import AUDIENCE, Field, RecordKind, Value
from vskill_platform.ledger.kv.entries import Entry, EntryPage, Settled
from vskill_platform.ledger.kv.fields import kept_fields

#: What to do about a cursor that cannot be used.
FIRST_PAGE = "leave it out to start from the first page"


class Is(msgspec.Struct, frozen=True):
    """The field has this value; None: it has none."""

    value: Value

    def holds(self, value: Value) -> bool:
        return value == self.value


class In(msgspec.Struct, frozen=True):
    """The field has one of these values."""

    values: tuple[str, ...] | tuple[int, ...]

    @property
    def distinct(self) -> tuple[Value, ...]:
        return tuple(dict.fromkeys(self.values))

    def holds(self, value: Value) -> bool:
        return value in self.values


class Between(msgspec.Struct, frozen=True):
    """The field lies in this range, ends included; entries without the field do not match."""

    least: int | None = None
    most: int | None = None

    def holds(self, value: Value) -> bool:
        if not isinstance(value, int):
            return False
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


Condition = Is | In | Between


class Query(msgspec.Struct, frozen=True):
    """A checked query to one collection."""

    collection: RecordKind
    #: Whose records it may find.
    audiences: Audiences
    #: Whether the index that serves it begins with the audience: then there is one run per audience.
    by_audience: bool
    #: Equality conditions, in the order of the index that serves them; at most one is an `In`.
    equal: tuple[tuple[str, Is | In], ...]
    #: Conditions on facets that the index does not serve: tested on every entry that it gives.
    also: tuple[tuple[str, Is | In], ...]
    #: The range, always on `order_by`.
    within: Between | None
    order_by: str
    descending: bool
    #: The order value and key of the last entry of the page before.
    after: tuple[Value, str] | None
    limit: int
    #: Only keys that begin with it: the collection's prefix, or a longer one if ordered by key.
    prefix: str

    @classmethod
    def of(
        cls,
        collection: RecordKind,
        where: Mapping[str, Condition],
        order_by: str,
        descending: bool,  # noqa: FBT001 - the keywords of `select`, in their order
        after: str | None,
        limit: int,
        audiences: Audiences,
        under: str = "",
    ) -> "Query":
        """Check that an index serves it: equality on its first fields, order and range on the next one."""
        check_audiences(collection, audiences)
        check_texts("under", under)
        if under and order_by != "key":
            raise UnindexedQuery(f"{collection.prefix}*: only the order of keys can be asked under {under!r}")
        conditions = dict(check_filters(collection, where))
        within = conditions.get(order_by)
        if isinstance(within, Between):
            del conditions[order_by]
        else:
            within = None
        equal = {name: condition for name, condition in conditions.items() if isinstance(condition, Is | In)}
        if len(equal) != len(conditions) or order_by in equal:
            raise UnindexedQuery(f"{collection.prefix}*: a range must be on the order's field, {order_by!r}")
        by_audience, index = _serving_index(collection, set(equal), order_by, audiences)
        served = tuple((name, equal.pop(name)) for name in index if name in equal)
        if sum(isinstance(condition, In) for _, condition in served) > 1:
            raise UnindexedQuery(f"{collection.prefix}*: only one field can have several values")
        place = _decode_cursor(after, collection.fields.get(order_by))
        asked = (served, tuple(equal.items()), within, order_by, descending, place, limit)
        return cls(collection, audiences, by_audience, *asked, collection.prefix + under)

    def cursor(self, entry: Entry) -> str:
        """Where a page ends: the order value and key of its last entry."""
        value = None if self.order_by == "key" else self.collection.fields[self.order_by].read(entry.value)
        return base64.urlsafe_b64encode(msgspec.json.encode((value, entry.key))).decode()


class CheckedSearch(msgspec.Struct, frozen=True):
    """A checked search in one collection."""

    collection: RecordKind
    terms: TermQuery
    #: Whose records it may find.
    audiences: Audiences
    where: tuple[tuple[str, Condition], ...]
    #: The fields whose values are given with each candidate.
    fields: tuple[str, ...]
    limit: int

    @classmethod
    def of(
        cls,
        collection: RecordKind,
        terms: TermQuery,
        audiences: Audiences,
        where: Mapping[str, Condition],
        fields: Iterable[str],
        limit: int,
    ) -> "CheckedSearch":
        check_audiences(collection, audiences)
        return cls(collection, terms, audiences, check_filters(collection, where), tuple(fields), limit)


def check_audiences(collection: RecordKind, audiences: Audiences) -> None:
    """Only the system, which reads everything, may query a collection without audiences."""
    if isinstance(audiences, Everything):
        return
    if not collection.has_audience:
        raise UnindexedQuery(
            f"{collection.prefix}* has no audiences: it is asked for everything, by the system"
        )
    check_texts("audiences", *audiences)
    if any("\0" in one for one in audiences):
        raise InvalidInput("An audience cannot hold a NUL.", field="audiences", fix="leave it out")


def in_order(
    settled: Settled, keys: Iterable[str], collection: RecordKind, audiences: Audiences
) -> tuple[Entry, ...]:
    """The entries of these keys, in order, without failed reads and those that these audiences may not read: a record
    may have changed since it was found."""
    entries = (settled.found.get(key) for key in keys)
    return tuple(one for one in entries if one is not None and is_readable(collection, one, audiences))


def check_filters(
    collection: RecordKind, where: Mapping[str, Condition]
) -> tuple[tuple[str, Condition], ...]:
    """Check that every field has a column, and that every engine can compare the values."""
    if AUDIENCE in where:
        raise UnindexedQuery(f"{collection.prefix}*: the audience is no condition; give `audiences`")
    unknown = sorted(set(where) - set(kept_fields(collection)))
    if unknown:
        raise UnindexedQuery(f"{collection.prefix}* has no column for {unknown[0]!r}")
    for name, condition in where.items():
        values: tuple[Value, ...] = condition.values if isinstance(condition, In) else ()
        if isinstance(condition, Is):
            values = (condition.value,)
        check_texts(name, *(value for value in values if isinstance(value, str)))
    return tuple(where.items())


def evaluate(query: Query, entries: Sequence[Entry]) -> EntryPage:
    rows = sorted((row for row in _rows(query, entries)), key=lambda row: row[0], reverse=query.descending)
    if query.after is not None:
        place = _place(query, *query.after)
        rows = [row for row in rows if (row[0] < place if query.descending else row[0] > place)]
    items = tuple(entry for _, entry in rows[: query.limit])
    return EntryPage(items, query.cursor(items[-1]) if len(rows) > query.limit else None)


def is_readable(collection: RecordKind, entry: Entry, audiences: Audiences) -> bool:
    return isinstance(audiences, Everything) or may_read(collection.audience_of(entry.value), audiences)


def _rows(query: Query, entries: Sequence[Entry]) -> list[tuple[tuple[Any, ...], Entry]]:
    fields = query.collection.fields
    rows = []
    asked = (*query.equal, *query.also)
    for entry in entries:
        if not entry.key.startswith(query.prefix) or not is_readable(
            query.collection, entry, query.audiences
        ):
            continue
        if not all(condition.holds(fields[name].read(entry.value)) for name, condition in asked):
            continue
        if query.order_by == "key":
            rows.append((_place(query, None, entry.key), entry))
            continue
        value = fields[query.order_by].read(entry.value)
        if value is not None and (query.within is None or query.within.holds(value)):
            rows.append((_place(query, value, entry.key), entry))
    return rows


def _place(query: Query, value: Value, key: str) -> tuple[Any, ...]:
    encoded = key.encode()
    return (encoded,) if query.order_by == "key" else (value, encoded)


def _serving_index(
    collection: RecordKind, names: set[str], order_by: str, audiences: Audiences
) -> tuple[bool, tuple[str, ...]]:
    """Whether the index that serves most of the conditions begins with the audience, and its other fields. Conditions
    that it does not serve must be facets. A query for everything prefers an index without audiences, which has one run
    instead of many."""
    tail = (order_by,) if order_by != "key" else ()
    fitting: list[tuple[int, bool, tuple[str, ...]]] = []
    for declared in collection.indexes:
        by_audience = declared[0] == AUDIENCE
        index = declared[1:] if by_audience else declared
        lead = set(index[: len(index) - len(tail)])
        fits = index[len(lead) :] == tail and lead <= names and names - lead <= set(collection.facets)
        if fits and (by_audience or isinstance(audiences, Everything)):
            fitting.append((len(index), not by_audience, index))
    if order_by == "key" and not names and isinstance(audiences, Everything):
        return False, ()
    if fitting:
        _, plain, index = max(fitting, key=lambda one: one[:2])
        return not plain, index
    raise UnindexedQuery(
        f"{collection.prefix}*: no declared index serves equality on {sorted(names)} ordered by {order_by!r}"
        f"{'' if isinstance(audiences, Everything) else ' for readers of some audiences'}"
    )


def _decode_cursor(after: str | None, ordered_by: Field | None) -> tuple[Value, str] | None:
    """Cursors come from clients, so a forged one must not reach a comparison."""
    if after is None:
        return None
    try:
        decoded = base64.urlsafe_b64decode(after.encode())
        value, key = read_json(decoded, tuple[str | int | None, str])
    except ValueError as error:
        raise InvalidInput("The cursor is not valid.", field="after", fix=FIRST_PAGE) from error
    if value is not None if ordered_by is None else not ordered_by.fits(value):
        raise InvalidInput("The cursor belongs to another sort order.", field="after", fix=FIRST_PAGE)
    return value, key
