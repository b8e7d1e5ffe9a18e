"""Users and groups as a directory's SCIM 2.0 client sends them (RFC 7643, RFC 7644): what is kept of them, filters, and
changes in the dialects of Okta (an object without a path) and Entra (`Replace`, `"False"`, paths with a filter).

What a client sends is foreign input. Directories send names, addresses and much more, which nothing here needs: those
attributes are accepted, and not kept.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar

import msgspec
import re2

from vskill_core.errors import InvalidInput

T = TypeVar("T")

#: In one request.
MOST_OPERATIONS = 1_000
MOST_MEMBERS = 10_000
_MOST_TEXT = 300
#: The attributes that are kept, as RFC 7643 spells them; clients may spell them otherwise.
_KEPT = ("id", "userName", "externalId", "active", "displayName", "members")
_SPELLED = {name.lower(): name for name in _KEPT}
#: They can be replaced at most.
_NEEDED = frozenset({"userName", "externalId", "active"})
_TEXT = r'"((?:[^"\\]|\\.)*)"'
_PATH = re2.compile(
    r"(?i)(?:urn:ietf:params:scim:schemas:core:2\.0:(?:user|group):)?([a-z]+)(?:\[\s*value\s+eq\s+"
    + _TEXT
    + r"\s*\])?"
)
_FILTER = re2.compile(r"(?i)\s*([a-z]+)\s+eq\s+" + _TEXT + r"\s*")

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]


class ScimUser(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What a directory says about a person."""

    user_name: Name
    #: The subject that the person signs in as.
    external_id: Name
    active: bool
    display_name: Annotated[str, msgspec.Meta(max_length=_MOST_TEXT)] | None = None


class ScimMember(msgspec.Struct, frozen=True):
    """An account in a group."""

    value: str


class ScimGroup(msgspec.Struct, frozen=True, rename="camel"):
    """What a directory says about a group."""

    display_name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    external_id: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    members: Annotated[tuple[ScimMember, ...], msgspec.Meta(max_length=MOST_MEMBERS)] = ()


class PatchOperation(msgspec.Struct, frozen=True):
    """One change of a resource."""

    op: str
    path: Annotated[str, msgspec.Meta(max_length=_MOST_TEXT)] | None = None
    value: Any = None


class Patch(msgspec.Struct, frozen=True, rename={"operations": "Operations"}):
    """Changes that are made together."""

    operations: Annotated[tuple[PatchOperation, ...], msgspec.Meta(max_length=MOST_OPERATIONS)]


def refuse(problem: str, scim_type: str, fix: str, field: str = "body") -> InvalidInput:
    """An error with the word that SCIM has for it."""
    return InvalidInput(problem, field=field, fix=fix, scim_type=scim_type)


class ScimFilter(msgspec.Struct, frozen=True):
    """`ATTRIBUTE eq "VALUE"`. Names are compared without case."""

    attribute: str
    value: str

    def fits(self, resource: Mapping[str, Any]) -> bool:
        if self.attribute in ("id", "externalId"):
            return resource.get(self.attribute) == self.value
        return str(resource.get(self.attribute, "")).casefold() == self.value.casefold()


def parse_filter(text: str, attributes: Iterable[str]) -> ScimFilter:
    found = _FILTER.fullmatch(text) if len(text) <= _MOST_TEXT else None
    name = "" if found is None else _SPELLED.get(found[1].lower(), "")
    if found is None or name not in attributes:
        fix = " or ".join(f'{one} eq "..."' for one in attributes)
        raise refuse(f"The filter {text[:80]!r} is not supported.", "invalidFilter", f"use {fix}", "filter")
    return ScimFilter(name, _unquote(found[2]))


def read_document(sent: Any) -> dict[str, Any]:
    """The attributes that are kept, as the RFC spells them. Null is no value."""
    if not isinstance(sent, dict):
        raise refuse("The body is no resource.", "invalidSyntax", "send a JSON object")
    named = ((_SPELLED.get(name.lower()), value) for name, value in sent.items())
    return {name: value for name, value in named if name is not None and value is not None}


def convert(document: dict[str, Any], kind: type[T]) -> T:
    try:
        return msgspec.convert(document, type=kind, strict=False)
    except msgspec.ValidationError as error:
        raise refuse(
            f"The resource is not valid: {error}.", "invalidValue", "correct the attribute"
        ) from None


def document_of(resource: ScimUser | ScimGroup) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(resource)
    return {name: value for name, value in found.items() if value is not None}


def apply_patch(document: dict[str, Any], patch: Patch) -> dict[str, Any]:
    changed = dict(document)
    for one in patch.operations:
        verb = one.op.lower()
        if verb not in ("add", "replace", "remove"):
            fix = "use add, replace or remove"
            raise refuse(f"There is no operation {one.op[:80]!r}.", "invalidSyntax", fix)
        if one.path:
            _apply(changed, verb, one.path, one.value)
        elif verb == "remove" or not isinstance(one.value, dict):
            raise refuse(
                "It is not said what is to change.", "noTarget", "give a path, or an object as value"
            )
        else:
            for path, value in one.value.items():
                _apply(changed, verb, path, value)
    return changed


def _apply(document: dict[str, Any], verb: str, path: str, value: Any) -> None:
    """Make one change; one of an attribute that is not kept does nothing."""
    found = _PATH.fullmatch(path) if len(path) <= _MOST_TEXT else None
    first = path[:_MOST_TEXT].partition("[")[0].partition(".")[0] if found is None else found[1]
    name = _SPELLED.get(first.lower())
    if name is None:
        return
    if found is None or (found[2] is not None and name != "members"):
        raise refuse(f"The path {path[:80]!r} is not supported.", "invalidPath", "name an attribute")
    if name == "members":
        chosen = value if found[2] is None else {"value": _unquote(found[2])}
        document[name] = _change_members(document.get(name, []), verb, chosen)
    elif verb != "remove" and value is not None:
        document[name] = value
    elif name in _NEEDED:
        raise refuse(f"{name} cannot be removed.", "mutability", "replace it", name)
    else:
        document.pop(name, None)


def _change_members(members: list[Any], verb: str, value: Any) -> list[Any]:
    """Removing nothing in particular removes all."""
    given = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(one, dict) and isinstance(one.get("value"), str) for one in given):
        raise refuse("A member is no object.", "invalidValue", 'send {"value": "ID"}', "members")
    names = {one["value"] for one in given}
    others = [one for one in members if one["value"] not in names]
    if verb == "remove":
        return others if given else []
    return [*(others if verb == "add" else ()), *given]


def _unquote(text: str) -> str:
    """The text of a filter, which is written as in JSON."""
    try:
        return msgspec.json.decode(f'"{text}"', type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise refuse(f"{text[:80]!r} is no text.", "invalidFilter", "write it as in JSON", "filter") from None
