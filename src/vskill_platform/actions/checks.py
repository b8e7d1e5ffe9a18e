"""Checks that every request goes through, whichever entry point it came from: types and limits as its struct declares
them, and text without control characters."""

from collections.abc import Iterator
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import inspect

from vskill_client.wire.base import ActionRequest
from vskill_core.errors import InvalidInput
from vskill_core.identity import has_control_characters

Req = TypeVar("Req", bound=msgspec.Struct)

MOST_REASON = 2_000
#: Why somebody acts: never empty, shown in the history and kept in the audit.
Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_REASON)]
AccountName = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
NamespaceName = Annotated[
    str, msgspec.Meta(max_length=200, pattern=r"^[^/:\s\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+$")
]
Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
#: Fields with a pattern, in words for messages.
FORMS = {
    "digest": "64 hexadecimal digits",
    "namespace": "the first part of a skill's name, such as acme",
    "url": "an address such as https://host/path",
}
#: How msgspec's complaints begin, and what is said instead; `last` is the complaint's last word.
COMPLAINTS = (
    ("Object missing required field ", "{field} is missing.", "give {field}"),
    ("Object contains unknown field ", "There is no field {last}.", "leave it out"),
    ("Expected `str` of length >= 1 ", "A {words} is needed.", "give a {words}"),
    ("Expected `str` of length <= ", "{field} is too long.", "use at most {last} characters"),
    ("Expected `array` of length >= 1 ", "At least one of {field} is needed.", "give at least one"),
    ("Expected `array` of length <= ", "{field} has too many entries.", "give at most {last}"),
    ("Expected `int`, got", "{field} is not a number.", "write a whole number"),
    ("Expected `int` <= ", "{field} is out of range.", "give at most {last}"),
    ("Expected `int` >= ", "{field} is out of range.", "give at least {last}"),
)
#: Where a page of a list begins: what the page before answered.
Cursor = Annotated[str, msgspec.Meta(min_length=1, max_length=2_000)]
PageSize = Annotated[int, msgspec.Meta(ge=1, le=1_000)]


def check_request(request: Req) -> Req:
    """The request with its texts stripped; InvalidInput names the field and the fix."""
    kind = type(request)
    plain = msgspec.to_builtins(_strip_texts(request), builtin_types=(bytes,))
    try:
        checked = msgspec.convert(plain, type=kind, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise invalid_request(str(error), kind) from None
    for field, text in (*_texts(checked), *_listed_texts(checked)):
        if has_control_characters(text.replace("\n", " ").replace("\t", " ")):
            raise InvalidInput(f"{field} has control characters.", field=field, fix="remove them")
    return checked


def _strip_texts(request: Req) -> Req:
    texts = {field: text.replace("\r\n", "\n").strip() for field, text in _texts(request)}
    return msgspec.structs.replace(request, **texts) if texts else request


def _texts(request: msgspec.Struct) -> Iterator[tuple[str, str]]:
    secrets = request.SECRETS if isinstance(request, ActionRequest) else frozenset()
    for field in request.__struct_fields__:
        value = getattr(request, field)
        if type(value) is str and field not in secrets:
            yield field, value


def _listed_texts(request: msgspec.Struct) -> Iterator[tuple[str, str]]:
    for field in request.__struct_fields__:
        value = getattr(request, field)
        if isinstance(value, tuple):
            yield from ((field, one) for one in value if type(one) is str)


def invalid_request(message: str, kind: type[msgspec.Struct]) -> InvalidInput:
    """Msgspec's complaint about a request as an error that names the field, in Python's spelling, and the fix."""
    wire = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    what, place = split_complaint(message)
    first = place.partition(".")[0].partition("[")[0]
    field = place.replace(first, wire.get(first, first), 1) if place else "request"
    return explain_complaint(what, field, values_at(kind, place))


def split_complaint(message: str) -> tuple[str, str]:
    """What msgspec complains about, and the path of the field; empty for the whole value."""
    what, _, where = message.partition(" - at ")
    place = where.strip("`").removeprefix("$").lstrip(".")
    if what.startswith("Object missing required field "):
        place = ".".join(filter(None, (place, what.rpartition(" ")[2].strip("`"))))
    return what, place


def values_at(kind: Any, place: str) -> tuple[str, ...]:
    """The values that the field at this path may have, if there are only a few."""
    return _values(inspect.type_info(kind), [part.partition("[")[0] for part in place.split(".") if part])


def _values(info: inspect.Type, path: list[str]) -> tuple[str, ...]:
    if isinstance(info, inspect.UnionType):
        return next(filter(None, (_values(one, path) for one in info.types)), ())
    if isinstance(info, inspect.VarTupleType | inspect.ListType | inspect.SetType | inspect.FrozenSetType):
        return _values(info.item_type, path)
    if isinstance(info, inspect.StructType) and path:
        fields = {field.encode_name: field.type for field in info.fields}
        return _values(fields[path[0]], path[1:]) if path[0] in fields else ()
    if isinstance(info, inspect.EnumType):
        return tuple(str(one.value) for one in info.cls)
    return tuple(map(str, info.values)) if isinstance(info, inspect.LiteralType) else ()


def explain_complaint(what: str, field: str, values: tuple[str, ...]) -> InvalidInput:
    """Msgspec's complaint about a field as a sentence, with the fix."""
    last = what.rpartition(" ")[2].strip("`'")
    if what.startswith("Invalid enum value "):
        fix = f"use one of {', '.join(values)}" if values else "choose a known value"
        return InvalidInput(f"{field} cannot be {last!r}.", field=field, fix=fix)
    if what.startswith("Expected `str` matching regex") and field in FORMS:
        return InvalidInput(f"{field} is not valid.", field=field, fix=f"give {FORMS[field]}")
    for beginning, sentence, fix in COMPLAINTS:
        if f"{what} ".startswith(beginning):
            words = field.replace("_", " ")
            advice = "say in a few words why" if fix == "give a {words}" and field == "reason" else fix
            filled = {"field": field, "words": words, "last": last}
            return InvalidInput(sentence.format(**filled), field=field, fix=advice.format(**filled))
    return InvalidInput(f"{field}: {what}.", field=field, fix=what)
