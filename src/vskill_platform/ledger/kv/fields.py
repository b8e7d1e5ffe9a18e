"""The columns that SQL engines keep beside a record's value: its declared fields, as the contract itself reads them.

They are ordinary columns, written with the value, and not expressions over it: an engine's JSON functions disagree
with ours about duplicate keys, escapes and odd numbers, and cost more than the rest of a write.
"""

from hashlib import blake2b
from typing import Any

import msgspec

from vskill_platform.ledger.kv import collections

#: Version of the tokeniser. A new number makes a record's terms be computed again when it is next written.
_FORM = 3

#: The searched texts' hash, the collection's name, then one value per field column of any collection.
Columns = tuple[collections.Value, ...]


def kept_fields(collection: collections.RecordKind) -> tuple[str, ...]:
    """Fields with a column: those of indexes and counts, the one that orders a search, and the list of integers."""
    needed = {
        *collection.counted,
        collection.weighed,
        collection.numbers,
        *(name for index in collection.indexes for name in index),
    }
    return tuple(name for name in collection.fields if name in needed)


def column(collection: collections.RecordKind, field: str) -> str:
    return f"{collection.name}_{field}"


FIELD_COLUMNS = tuple(column(kind, name) for kind in collections.COLLECTIONS for name in kept_fields(kind))
DERIVED_COLUMNS = ("searched", "collection", *FIELD_COLUMNS)
NOTHING: Columns = (None,) * len(DERIVED_COLUMNS)


class _Step(msgspec.Struct, frozen=True):
    """How to read one field. Fast paths for a name in the record or in one object in it; others use `Field.of`."""

    field: collections.Field
    #: The name of the object that holds it; None where the record itself does.
    holder: str | None
    #: None if the field has several paths.
    name: str | None


class _Plan(msgspec.Struct, frozen=True):
    """What to read for a collection, with the empty columns before and after it."""

    fields: tuple[_Step, ...]
    #: What the search index holds: the texts, and who may read them.
    searched: tuple[_Step, ...]
    before: Columns
    after: Columns
    #: Prefixes of keys that are not its records.
    exclude: tuple[str, ...]


def _step(field: collections.Field) -> _Step:
    if isinstance(field, collections.NumbersField):
        return _Step(field, None, None)
    match field.paths:
        case ((name,),):
            return _Step(field, None, name)
        case ((holder, name),):
            return _Step(field, holder, name)
        case _:
            return _Step(field, None, None)


def _plan(collection: collections.RecordKind) -> _Plan:
    indexed = collection.searched
    if indexed and collection.has_audience:
        indexed = (*indexed, collections.AUDIENCE)
    mine = [FIELD_COLUMNS.index(column(collection, name)) for name in kept_fields(collection)]
    return _Plan(
        tuple(_step(collection.fields[name]) for name in kept_fields(collection)),
        tuple(_step(collection.fields[name]) for name in indexed),
        (None,) * mine[0],
        (None,) * (len(FIELD_COLUMNS) - mine[-1] - 1),
        collection.exclude,
    )


PLANS = {kind.name: _plan(kind) for kind in collections.COLLECTIONS}

#: By the key's part up to its first colon, which is a collection's whole prefix.
_BY_PREFIX = {kind.prefix: (kind.name, PLANS[kind.name]) for kind in collections.COLLECTIONS}


def derive(key: str, value: bytes) -> Columns:
    """What the columns hold for this record."""
    found = _BY_PREFIX.get(key[: key.find(":") + 1])
    if found is None:
        return NOTHING
    name, plan = found
    if plan.exclude and key.startswith(plan.exclude):
        return NOTHING
    record = collections.parse(value)
    return (
        _hash(_values(record, plan.searched)) if plan.searched else None,
        name,
        *plan.before,
        *_values(record, plan.fields),
        *plan.after,
    )


def _values(record: Any, steps: tuple[_Step, ...]) -> list[collections.Value]:
    """The same values as `Field.of`, without its calls: this runs for every record that is written."""
    if type(record) is not dict:
        return [None] * len(steps)
    values: list[collections.Value] = []
    for step in steps:
        field, name = step.field, step.name
        if name is None:
            values.append(field.of(record))
            continue
        holder = record if step.holder is None else record.get(step.holder)
        found = holder.get(name, field.default) if type(holder) is dict else None
        if type(found) is str:
            values.append(found if field.kind is str and "\0" not in found else None)
        else:
            values.append(found if found is not None and field.fits(found) else None)
    return values


def _hash(texts: list[collections.Value]) -> int:
    """A hash that detects unchanged texts without tokenising them."""
    cut = msgspec.json.encode([_FORM, texts])
    return int.from_bytes(blake2b(cut, digest_size=8).digest(), "big", signed=True)


# Ranges of keys.

_LAST_CHARACTER = 0x10FFFF


def end_of(prefix: str) -> str | None:
    """The least text above everything that begins with the prefix; None where there is none."""
    for place in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[place]) + 1
        if code <= _LAST_CHARACTER:
            # Surrogates are not characters: skip them.
            return prefix[:place] + ("\ue000" if code == 0xD800 else chr(code))
    return None
