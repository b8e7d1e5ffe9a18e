"""How values travel over HTTP, the registry's half: how answers are encoded, and how fields are named and described.
The other half is what clients know too (`vskill_client.wire.base`)."""

import inspect
import sys
from collections.abc import Mapping
from functools import cache
from itertools import dropwhile, takewhile
from typing import Any

import msgspec

encode = msgspec.json.Encoder().encode


#: What stands around a text that is repeated.
QUOTES = "'\"`"


def wire_names(kind: Any) -> dict[str, str]:
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
