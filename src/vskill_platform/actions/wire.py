"""How values travel over HTTP, the registry's half: what is sent to it, and how its fields are described. The other
half is what clients know too (`vskill_client.wire.base`)."""

import enum
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import cache
from itertools import dropwhile, takewhile
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin

import msgspec

from vskill_client.wire.base import Wire, iso_time

Ans = TypeVar("Ans", bound=Wire)


class Asked(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The query parameters of an address: another one is refused, not ignored (E4)."""


class Sent(msgspec.Struct, frozen=True, rename="camel"):
    """A JSON body that clients send; what they send beside it is none of our business."""


encode = msgspec.json.Encoder().encode


def derive(kind: type[Ans], record: object, /, **given: Any) -> Ans:
    """An answer of the fields that a record has under the same names: times and members of enums as text, and structs
    inside as the answers that the fields declare. `given` are those that the record lacks or has in another form."""
    derived = {
        name: convert(getattr(record, name))
        for name, convert in _conversions(kind).items()
        if name not in given
    }
    return kind(**derived, **given)


@cache
def _conversions(kind: type[Wire]) -> dict[str, Callable[[Any], Any]]:
    return {field.name: _conversion_to(field.type) for field in msgspec.structs.fields(kind)}


def _conversion_to(hint: Any) -> Callable[[Any], Any]:
    """From what a record holds to a value of the type that an answer declares."""
    if get_origin(hint) is Annotated:
        return _conversion_to(get_args(hint)[0])
    if NoneType in get_args(hint):
        (inner,) = (_conversion_to(one) for one in get_args(hint) if one is not NoneType)
        return lambda value: None if value is None else inner(value)
    if get_origin(hint) is tuple:
        each = _conversion_to(get_args(hint)[0])
        return lambda values: tuple(map(each, values))
    if isinstance(hint, type) and issubclass(hint, Wire):
        return lambda value: derive(hint, value)
    return _as_text if hint is str else lambda value: value


def _as_text(value: str | int | enum.Enum) -> str:
    if isinstance(value, enum.Enum):
        return str(value.value)
    return iso_time(value) if isinstance(value, int) else value


#: What stands around a text that is repeated.
QUOTES = "'\"`"


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


def maybe_time(ms: int | None) -> str | None:
    return None if ms is None else iso_time(ms)
