"""Checks that every request goes through, whichever entry point it came from: types and limits as its struct declares
them, and text without control characters."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, TypeVar

import msgspec

from vskill_platform.domain.errors import InvalidInput
from vskill_platform.domain.identity import has_control_characters

Req = TypeVar("Req", bound=msgspec.Struct)

MOST_REASON = 2_000
#: Why somebody acts: never empty, shown in the history and kept in the audit.
Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_REASON)]
SubmissionId = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
SkillName = Annotated[str, msgspec.Meta(min_length=1, max_length=400)]
VersionNumber = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
AccountName = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
#: What a field with a pattern holds, in words: nobody reads a pattern.
FORMS = {
    "digest": "a digest of 64 hexadecimal digits",
    "url": "an address that can be posted to, such as https://host/path",
}
#: Where a page of a list begins: what the page before answered.
Cursor = Annotated[str, msgspec.Meta(min_length=1, max_length=2_000)]
PageSize = Annotated[int, msgspec.Meta(ge=1, le=1_000)]


class ActionRequest(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What an action is asked for. Its fields have the API's names on the wire."""

    #: Fields that are taken as they were given, spaces and all, and that no log shows: passwords.
    SECRETS: ClassVar[frozenset[str]] = frozenset()

    def __repr__(self) -> str:
        """Without the secrets."""
        shown = (field for field in self.__struct_fields__ if field not in self.SECRETS)
        return f"{type(self).__name__}({', '.join(f'{field}={getattr(self, field)!r}' for field in shown)})"


def check_request(request: Req) -> Req:
    """The request with its texts stripped; InvalidInput names the field and the fix."""
    kind = type(request)
    plain = msgspec.to_builtins(_stripped(request), builtin_types=(bytes,))
    try:
        checked = msgspec.convert(plain, type=kind, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise invalid_request(str(error), kind) from None
    for field, text in _texts(checked):
        if has_control_characters(text.replace("\n", " ").replace("\t", " ")):
            raise InvalidInput(f"{field} has control characters.", field=field, fix="remove them")
    return checked


def _stripped(request: Req) -> Req:
    texts = {field: text.replace("\r\n", "\n").strip() for field, text in _texts(request)}
    return msgspec.structs.replace(request, **texts) if texts else request


def _texts(request: msgspec.Struct) -> Iterator[tuple[str, str]]:
    secrets = request.SECRETS if isinstance(request, ActionRequest) else frozenset()
    for field in request.__struct_fields__:
        value = getattr(request, field)
        if type(value) is str and field not in secrets:
            yield field, value


def invalid_request(message: str, kind: type[msgspec.Struct]) -> InvalidInput:
    """What msgspec says is wrong with a request, as a sentence with the field and the fix."""
    wire = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    what, _, where = message.partition(" - at ")
    place = where.strip("`").removeprefix("$").lstrip(".")
    first = place.partition(".")[0].partition("[")[0]
    field = place.replace(first, wire.get(first, first), 1) if place else "request"
    if what == "Expected `str` of length >= 1":
        words = field.replace("_", " ")
        fix = "say in a few words why" if field == "reason" else f"give a {words}"
        return InvalidInput(f"A {words} is needed.", field=field, fix=fix)
    if what == "Expected `array` of length >= 1":
        return InvalidInput(f"At least one of {field} is needed.", field=field, fix="give at least one")
    if what.startswith("Expected `str` of length <= "):
        most = what.rpartition(" ")[2]
        return InvalidInput(f"{field} is too long.", field=field, fix=f"use at most {most} characters")
    if what.startswith("Expected `int`, got"):
        return InvalidInput(f"{field} is not a number.", field=field, fix="write a whole number")
    if what.startswith(("Expected `int` <= ", "Expected `int` >= ")):
        bound = "at most" if "<=" in what else "at least"
        number = what.rpartition(" ")[2]
        return InvalidInput(f"{field} is out of range.", field=field, fix=f"give {bound} {number}")
    if what.startswith("Expected `str` matching regex") and field in FORMS:
        return InvalidInput(f"{field} is not {FORMS[field]}.", field=field, fix=f"give {FORMS[field]}")
    if what.startswith("Invalid enum value "):
        value = what.removeprefix("Invalid enum value ")
        return InvalidInput(f"{field}: {value} is not known here.", field=field, fix="choose a known value")
    return InvalidInput(f"{field}: {what}.", field=field, fix=what)
