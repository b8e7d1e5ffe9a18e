"""How values travel over HTTP: JSON with camelCase names, and times as text in UTC.

Inside, a time is a number of milliseconds in a field whose name says so; a duration ends in `_ms`.
"""

import enum
import inspect
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from itertools import dropwhile, takewhile
from typing import Any

import msgspec


class Wire(msgspec.Struct, frozen=True, rename="camel"):
    """What the API answers with: ready to be encoded in one step. Times are text already (`iso_time`)."""


class Asked(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The query parameters of an address: another one is refused, not ignored (E4)."""


class Sent(msgspec.Struct, frozen=True, rename="camel"):
    """A JSON body that clients send; what they send beside it is none of our business."""


#: What may be part of a name: no control characters, line separators or direction overrides. The document says so
#: with it; `has_control_characters` is what decides.
PLAIN = r"^[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]*$"

encode = msgspec.json.Encoder().encode

#: What stands around a text that is repeated.
QUOTES = "'\"`"

#: How the names of fields that hold a point in time end.
TIME_FIELDS = ("_at", "_until", "_since", "_start", "_success")


def camel(value: object) -> Any:
    """Plain data in which the fields of structs have camelCase names; keys of mappings stay as they are."""
    if isinstance(value, msgspec.Struct):
        return dict(_members(value))
    if isinstance(value, Mapping):
        return {_key(key): camel(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [camel(item) for item in value]
    return value


def _members(struct: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    kind = type(struct)
    for field, name in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True):
        value = getattr(struct, field)
        is_time = type(value) is int and f"_{field}".endswith(TIME_FIELDS)
        yield camel_name(name), iso_time(value) if is_time else camel(value)


def camel_name(name: str) -> str:
    """`oldest_waiting_ms` → `oldestWaitingMs`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def wire_names(kind: Any) -> dict[str, str]:
    """The fields of a struct that go by another name on the wire, each with that name."""
    fields, written = getattr(kind, "__struct_fields__", ()), getattr(kind, "__struct_encode_fields__", ())
    return {name: shown for name, shown in zip(fields, written, strict=True) if name != shown}


def as_written(text: str, names: Mapping[str, str]) -> str:
    """A text in which fields go by their names on the wire; whoever refuses one knows Python's. Only whole words are
    changed, and none from the first quotation mark on: there a caller's own words are repeated."""
    ours = min((place for mark in QUOTES if (place := text.find(mark)) >= 0), default=len(text))
    return " ".join(_word(word, names) for word in text[:ours].split(" ")) + text[ours:]


def _word(word: str, names: Mapping[str, str]) -> str:
    name = word.rstrip(",.:;")
    # A name of one word may be any word of the text.
    return names.get(name, name) + word[len(name) :] if "_" in name else word


#: Where a struct that was made from another one keeps it: that one has the source.
DECLARED_AS = "__declared_as__"


def field_texts(kind: type[msgspec.Struct]) -> dict[str, str]:
    """What the `#:` lines above a struct's fields say, by the name on the wire; bases included."""
    wire = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if issubclass(base, msgspec.Struct) and base is not msgspec.Struct:
            texts |= _comments_of(getattr(base, DECLARED_AS, base))
    return {wire[name]: text for name, text in texts.items() if name in wire}


@cache
def _comments_of(kind: type) -> dict[str, str]:
    """By field; every command asks, and `inspect.getsource` would parse the whole module for each class."""
    module, _ = inspect.findsource(sys.modules[kind.__module__])
    beginnings = (f"class {kind.__name__}(", f"class {kind.__name__}:")
    body = dropwhile(lambda line: not line.lstrip().startswith(beginnings), module)
    outside = _indentation(next(body))
    found: dict[str, str] = {}
    lines: list[str] = []
    for line in map(
        str.strip, takewhile(lambda line: not line.strip() or _indentation(line) > outside, body)
    ):
        name, colon, _ = line.partition(":")
        if line.startswith("#:"):
            lines.append(line[2:].strip())
        elif lines and colon and name.isidentifier():
            found[name] = " ".join(lines)
            lines = []
        else:
            lines = []
    return found


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def iso_time(ms: int) -> str:
    """Milliseconds since the epoch as text, in UTC."""
    text = datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def maybe_time(ms: int | None) -> str | None:
    return None if ms is None else iso_time(ms)


def _key(key: object) -> str:
    return str(key.value) if isinstance(key, enum.Enum) else str(key)
