"""What every action does before its function runs, whichever entry point calls it; and what it says of a request that it
cannot use."""

import enum
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import pytest

from tests.support.envs import open_test_env
from vskill_client.wire.base import ActionRequest, NoParameters, call_for
from vskill_core.errors import InvalidInput, NotPermitted, NotSignedIn
from vskill_core.identity import Identity
from vskill_platform.actions.action import (
    Services,
    action,
    action_for,
    check_request,
    explain_complaint,
    invalid_request,
    split_complaint,
    values_at,
)
from vskill_platform.actions.principal import ANYBODY, OPERATOR, ActionObject, Principal, Right
from vskill_platform.domain.people.namespace import PUBLIC_ONLY
from vskill_platform.domain.people.token import ActingToken, TokenScope
from vskill_platform.store.people.accounts import Role
from vskill_platform.worker_context import get_worker_env


class Size(enum.StrEnum):
    SMALL = "small"
    LARGE = "large"


class Part(msgspec.Struct, frozen=True, rename="camel"):
    part_name: str
    size: Size = Size.SMALL


class Wanted(ActionRequest, frozen=True, kw_only=True):
    """Something to check."""

    SECRETS: ClassVar[frozenset[str]] = frozenset({"pass_word"})

    full_name: Annotated[str, msgspec.Meta(min_length=1, max_length=10)] = "ann"
    reason: Annotated[str, msgspec.Meta(min_length=1)] = "why"
    count: Annotated[int, msgspec.Meta(ge=1, le=5)] = 1
    digest: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{4}$")] = "00ff"
    other: Annotated[str, msgspec.Meta(pattern="^a*$")] = ""
    sort_by: Literal["up", "down"] = "up"
    size: Size | None = None
    words: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=2)] = ("one",)
    parts: tuple[Part, ...] = ()
    pass_word: str = ""
    archive: bytes = b""


# Requests.


def test_texts_are_stripped_and_secrets_taken_as_they_are():
    given = Wanted(
        full_name=" ann\t\n", reason="two\r\nlines ", pass_word=" \x07secret ", archive=b" \xff\r\n "
    )
    checked = check_request(given)
    assert (checked.full_name, checked.reason) == ("ann", "two\nlines")
    assert (checked.pass_word, checked.archive) == (" \x07secret ", b" \xff\r\n ")


def test_a_request_that_needs_no_change_is_equal():
    assert check_request(Wanted(words=(" a ", "b"))) == Wanted(words=(" a ", "b"))
    assert check_request(NoParameters()) == NoParameters()


@pytest.mark.parametrize("text", ["two\nlines", "a\ttab"])
def test_lines_and_tabs_are_no_control_characters(text):
    assert check_request(Wanted(reason=text, words=(text,))).reason == text


@pytest.mark.parametrize("field", ["reason", "words"])
def test_control_characters_are_refused_in_texts_and_in_lists_of_them(field):
    given: Any = {"reason": "bell \x07", "words": ("fine", "bell \x07")}
    with pytest.raises(InvalidInput, match=f"{field} has control characters") as refused:
        check_request(Wanted(**{field: given[field]}))
    assert (refused.value.field, refused.value.fix) == (field, "remove them")


def test_a_list_of_other_things_holds_no_texts():
    assert check_request(Wanted(parts=(Part("bell \x07"),))).parts[0].part_name == "bell \x07"


# What is said of what cannot be used.

REFUSED = [
    ({"full_name": " "}, "full_name", "A full name is needed.", "give a full name"),
    ({"full_name": "a" * 11}, "full_name", "full_name is too long.", "use at most 10 characters"),
    ({"reason": ""}, "reason", "A reason is needed.", "say in a few words why"),
    ({"count": "x"}, "count", "count is not a number.", "write a whole number"),
    ({"count": 0}, "count", "count is out of range.", "give at least 1"),
    ({"count": 6}, "count", "count is out of range.", "give at most 5"),
    ({"digest": "xyz"}, "digest", "digest is not valid.", "give 64 hexadecimal digits"),
    ({"sort_by": "left"}, "sort_by", "sort_by cannot be 'left'.", "use one of down, up"),
    ({"size": "huge"}, "size", "size cannot be 'huge'.", "use one of small, large"),
    ({"words": ()}, "words", "At least one of words is needed.", "give at least one"),
    ({"words": ("a", "b", "c")}, "words", "words has too many entries.", "give at most 2"),
]


@pytest.mark.parametrize(("given", "field", "sentence", "fix"), REFUSED)
def test_a_value_that_cannot_be_used_is_named_with_what_to_do(given, field, sentence, fix):
    with pytest.raises(InvalidInput) as refused:
        check_request(Wanted(**given))
    assert (refused.value.field, refused.value.message, refused.value.fix) == (field, sentence, fix)


def test_what_nobody_has_words_for_is_said_as_it_is():
    with pytest.raises(InvalidInput, match=r"^other: Expected `str` matching regex") as refused:
        check_request(Wanted(other="b"))
    assert refused.value.fix == "Expected `str` matching regex '^a*$'"


def complaint_about(wire: dict[str, Any]) -> InvalidInput:
    try:
        msgspec.convert(wire, Wanted)
    except msgspec.ValidationError as error:
        return invalid_request(str(error), Wanted)
    raise AssertionError("it is valid")


def test_fields_have_the_names_of_the_struct_and_places_inside_those_of_the_wire():
    assert complaint_about({"fullName": 3}).field == "full_name"
    assert complaint_about({"fullName": 3}).message == "full_name: Expected `str`, got `int`."
    inner = complaint_about({"parts": [{"partName": "a", "size": "parts"}]})
    assert (inner.field, inner.fix) == ("parts[0].size", "use one of small, large")
    missing = complaint_about({"parts": [{}]})
    assert (missing.field, missing.message) == ("parts[0].partName", "parts[0].partName is missing.")
    assert missing.fix == "give parts[0].partName"


def test_only_the_first_word_of_a_place_is_a_field_of_the_struct():
    complaint = invalid_request("Expected `int` <= 5 - at `$.sortBy.sortBy`", Wanted)
    assert (complaint.field, complaint.fix) == ("sort_by.sortBy", "give at most 5")


def test_a_complaint_about_the_whole_names_the_request():
    whole = invalid_request("Expected `object`, got `array`", Wanted)
    assert (whole.field, whole.message) == ("request", "request: Expected `object`, got `array`.")
    unknown = explain_complaint("Object contains unknown field `colour`", "request", ())
    assert (unknown.message, unknown.fix) == ("There is no field colour.", "leave it out")


def test_a_value_of_a_kind_with_many_values_has_a_fix_too():
    assert explain_complaint("Invalid enum value 'x'", "kind", ()).fix == "choose a known value"


@pytest.mark.parametrize(
    ("message", "split"),
    [
        ("Expected `int`, got `str` - at `$.count`", ("Expected `int`, got `str`", "count")),
        ("Expected `object`, got `int`", ("Expected `object`, got `int`", "")),
        ("Object missing required field `name`", ("Object missing required field `name`", "name")),
        (
            "Object missing required field `partName` - at `$.parts[0]`",
            ("Object missing required field `partName`", "parts[0].partName"),
        ),
    ],
)
def test_a_complaint_and_its_place(message, split):
    assert split_complaint(message) == split


def test_the_values_of_a_field_are_found_wherever_it_stands():
    assert values_at(Wanted, "size") == ("small", "large")
    assert values_at(Wanted, "sortBy") == ("down", "up")
    assert values_at(Wanted, "parts[1].size") == ("small", "large")
    assert values_at(Wanted, "count") == values_at(Wanted, "parts[0]") == values_at(Wanted, "none.size") == ()
    assert values_at(Size, "") == ("small", "large")
    for kind in (list[Size], set[Size], frozenset[Size], tuple[Size, ...]):
        assert values_at(kind, "") == ("small", "large")


# Declarations.


def test_a_body_of_bytes_goes_over_the_wire_as_the_client_sends_it():
    async def run(request: Wanted) -> str:
        return request.full_name

    call = call_for(
        "part.send", "/parts/{full_name}", Wanted, str, "PUT", body_field="archive", body_media="x/y"
    )
    made = action_for(run, call, right=Right.SIGNED_IN, summary="Send it")
    assert (made.name, made.path, made.method) == ("part.send", "/parts/{full_name}", "PUT")
    assert (made.body_field, made.body_media, made.answer) == ("archive", "x/y", str)
    assert (made.tag, made.command, made.scope) == ("parts", "part send", TokenScope.OWN)
    assert made.path_fields == ("full_name",)


# Calls.


@pytest.fixture
async def env(tmp_path):
    async with open_test_env("memory", tmp_path) as opened:
        yield opened


async def show(services: Services, actor: Principal, request: Wanted) -> tuple[Any, ...]:
    return services, actor, request, get_worker_env()


SHOW = action(show, "part.show", "/parts", right=Right.SIGNED_IN, summary="Show it")


@pytest.mark.parametrize(
    ("name", "declared", "method", "scope"),
    [
        ("part.show", {}, "GET", TokenScope.READ),
        ("part.list-all", {}, "GET", TokenScope.READ),
        ("list.change", {}, "POST", TokenScope.OWN),
        ("part.show", {"method": "POST"}, "POST", TokenScope.OWN),
        ("part.change", {"method": "GET"}, "GET", TokenScope.READ),
    ],
)
def test_what_lists_or_shows_is_read_unless_it_says_otherwise(name, declared, method, scope):
    made = action(show, name, "/parts", right=Right.SIGNED_IN, summary="Do it", **declared)
    assert (made.method, made.scope) == (method, scope)


ANN = Principal("ann", Role.AUTHOR)
TOKEN = ActingToken("t1", "ci")


@pytest.mark.anyio
async def test_a_call_checks_the_request_and_finds_out_what_the_actor_may_read(env):
    _, actor, request, _ = await SHOW(env, ANN, Wanted(full_name=" ann "))
    assert (actor.account, actor.audiences, request.full_name) == ("ann", PUBLIC_ONLY, "ann")


@pytest.mark.anyio
async def test_what_was_found_out_before_is_not_asked_again(env):
    known = msgspec.structs.replace(ANN, audiences=frozenset({"ns:acme"}))
    assert (await SHOW(env, known, Wanted()))[1] is known


@pytest.mark.anyio
async def test_the_environment_of_a_call_names_the_token_that_was_used(env):
    by_token = msgspec.structs.replace(ANN, token=TOKEN, scopes=frozenset({"read"}))
    services, _, _, around = await SHOW(env, by_token, Wanted())
    assert services is env and around.acting_token == TOKEN and around.kv is env.kv


@pytest.mark.anyio
async def test_nobody_is_let_in_who_lacks_the_right(env):
    with pytest.raises(NotSignedIn):
        await SHOW(env, ANYBODY, Wanted(count=9))
    refused = msgspec.structs.replace(ANN, scopes=frozenset({"submit"}))
    with pytest.raises(NotPermitted, match="lacks the scope 'read'"):
        await SHOW(env, refused, Wanted())
    assert [SHOW.allows(one) for one in (ANYBODY, refused, ANN, OPERATOR)] == [False, False, True, True]


@pytest.mark.anyio
async def test_a_right_about_an_object_is_checked_on_the_object_that_the_request_means(env):
    asked: list[Any] = []

    async def load(services: Services, actor: Principal, request: Wanted) -> ActionObject:
        asked.append((services, actor.audiences, request.full_name))
        return ActionObject(Identity("github.com", "acme", "tools"))

    change = action(show, "part.change", "/parts", right=Right.MAINTAINER, acts_on=load, summary="Change it")
    with pytest.raises(NotPermitted, match="Only a maintainer of"):
        await change(env, ANN, Wanted(full_name=" x "))
    assert asked == [(env, PUBLIC_ONLY, "x")]
    assert (await change(env, OPERATOR, Wanted()))[2] == Wanted()
