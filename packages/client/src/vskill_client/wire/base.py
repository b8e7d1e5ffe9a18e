"""How values travel over HTTP: JSON with camelCase names, and times as text in UTC.

Inside, a time is a number of milliseconds in a field whose name says so; a duration ends in `_ms`.
"""

import enum
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from types import NoneType
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar, get_args, get_origin

import msgspec

Req = TypeVar("Req", bound=msgspec.Struct)
Ans = TypeVar("Ans")

#: What may be part of a name: no control characters, line separators or direction overrides. The document says so
#: with it; `has_control_characters` is what decides.
PLAIN = r"^[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]*$"
#: How the names of fields that hold a point in time end.
TIME_FIELDS = ("_at", "_until", "_since", "_start", "_success")

SubmissionId = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
SkillName = Annotated[str, msgspec.Meta(min_length=1, max_length=400)]
VersionNumber = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class Wire(msgspec.Struct, frozen=True, rename="camel"):
    """What the API answers with: ready to be encoded in one step. Times are text already (`iso_time`)."""

    @classmethod
    def of(cls, record: object, beside: object = None, /, **given: Any) -> Self:
        """An answer of the fields that a record, or else the one `beside` it, has under the same names: times and
        members of enums as text, and structs inside as the answers that the fields declare. `given` are those that both
        lack or have in another form."""
        derived = {
            name: convert(getattr(record if beside is None or hasattr(record, name) else beside, name))
            for name, convert in _conversions(cls).items()
            if name not in given
        }
        return cls(**derived, **given)


class Asked(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The query parameters of an address: another one is refused, not ignored (E4)."""


class Sent(msgspec.Struct, frozen=True, rename="camel"):
    """A JSON body that clients send; what they send beside it is none of our business."""


class ActionRequest(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What an action is asked for. Its fields have the API's names on the wire."""

    #: Fields that are taken as they were given, spaces and all, and that no log shows: passwords.
    SECRETS: ClassVar[frozenset[str]] = frozenset()

    def __repr__(self) -> str:
        shown = (field for field in self.__struct_fields__ if field not in self.SECRETS)
        return f"{type(self).__name__}({', '.join(f'{field}={getattr(self, field)!r}' for field in shown)})"


class NoParameters(ActionRequest, frozen=True, kw_only=True):
    """The request of what needs no parameters."""


class RegistryCall(msgspec.Struct, Generic[Req, Ans], frozen=True, kw_only=True):
    """How one thing is asked of a registry."""

    #: `subject.verb`
    name: str
    request: type[Req]
    #: What a successful answer holds; None is nothing.
    answer: Any
    method: str = "POST"
    #: Of the JSON route; parts in braces are fields of the request, and `{skill}` is a skill's name in every form.
    path: str
    #: The field that is the whole body of the request, as bytes; the others are its query then.
    body_field: str = ""
    #: The media type of such a body.
    body_media: str = ""

    @property
    def path_fields(self) -> tuple[str, ...]:
        """The fields of the request that stand in the path."""
        parts = (part for part in self.path.split("/") if part.startswith("{"))
        return tuple(part.strip("{}") for part in parts)


def call_for(
    name: str, path: str, request: type[Req], answer: type[Ans], method: str = "GET", **body: str
) -> RegistryCall[Req, Ans]:
    """Declare a call with what it sends and gets."""
    return RegistryCall(name=name, path=path, request=request, answer=answer, method=method, **body)


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


def iso_time(ms: int) -> str:
    """Milliseconds since the epoch as text, in UTC."""
    text = datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


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
        return hint.of
    return _as_text if hint is str else lambda value: value


def _as_text(value: str | int | enum.Enum) -> str:
    if isinstance(value, enum.Enum):
        return str(value.value)
    return iso_time(value) if isinstance(value, int) else value


def maybe_time(ms: int | None) -> str | None:
    return None if ms is None else iso_time(ms)


def _key(key: object) -> str:
    return str(key.value) if isinstance(key, enum.Enum) else str(key)
