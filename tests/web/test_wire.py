"""Names and times on the wire."""

from typing import Annotated

import msgspec
import pytest

from vskill_client.wire.base import Sent, Wire, camel, camel_name, iso_time, maybe_time
from vskill_platform.actions.wire import as_written, wire_names
from vskill_platform.domain.submissions.states import State


class Inner(msgspec.Struct):
    waiting_for: str
    died_at: int | None = None


class Outer(msgspec.Struct):
    by_state: dict[State, int]
    inner_ones: tuple[Inner, ...]
    duration_ms: int
    at: int
    until: int | None
    format: int = 7
    source: str | None = msgspec.field(default=None, name="from")


def test_fields_become_camel_case_and_keys_of_mappings_stay():
    value = Outer({State.TIER1_SCANNING: 2}, (Inner("github.com", 1_700_000_000_123),), 5, 0, None)
    assert camel(value) == {
        "byState": {"TIER1_SCANNING": 2},
        "innerOnes": [{"waitingFor": "github.com", "diedAt": "2023-11-14T22:13:20.123Z"}],
        "durationMs": 5,
        "at": "1970-01-01T00:00:00.000Z",
        "until": None,
        "format": 7,
        "from": None,
    }


@pytest.mark.parametrize(("name", "shown"), [("id", "id"), ("repo_url", "repoUrl"), ("a_b_c", "aBC")])
def test_camel_names(name, shown):
    assert camel_name(name) == shown


class InnerAnswer(Wire, frozen=True):
    waiting_for: str
    died_at: str | None


class OuterAnswer(Wire, frozen=True):
    inner_ones: tuple[InnerAnswer, ...]
    at: str
    until: str | None
    duration_ms: int
    state: str


def test_an_answer_is_derived_from_a_record():
    record = Outer({}, (Inner("github.com", 1_700_000_000_123), Inner("")), 5, 0, None)
    assert OuterAnswer.of(record, state="given", at="now") == OuterAnswer(
        (InnerAnswer("github.com", "2023-11-14T22:13:20.123Z"), InnerAnswer("", None)),
        "now",
        None,
        5,
        "given",
    )


def test_an_answer_has_times_and_members_of_enums_as_text():
    class Record(msgspec.Struct):
        inner_ones: tuple[Inner, ...] = ()
        at: int = 0
        until: int = 1_700_000_000_123
        duration_ms: int = 7
        state: State = State.TIER1_SCANNING

    derived = OuterAnswer.of(Record())
    assert derived == OuterAnswer(
        (), "1970-01-01T00:00:00.000Z", "2023-11-14T22:13:20.123Z", 7, "TIER1_SCANNING"
    )
    assert type(derived.state) is str


def test_an_answer_says_how_long_a_text_may_be_without_losing_what_it_is():
    class Noted(Wire, frozen=True):
        state: Annotated[str, msgspec.Meta(max_length=20)]

    class Record(msgspec.Struct):
        state: State = State.TIER1_SCANNING

    assert type(Noted.of(Record()).state) is str


def test_keys_are_text_and_a_time_may_be_missing():
    assert camel({State.BLOCKED: 1, "a": 2, 3: 4}) == {"BLOCKED": 1, "a": 2, "3": 4}
    assert (maybe_time(None), maybe_time(0)) == (None, "1970-01-01T00:00:00.000Z")


class Renamed(Sent, frozen=True):
    repo_url: str
    source: str = msgspec.field(name="from")


class AsItIs(msgspec.Struct, frozen=True):
    error_uri: str


def test_a_text_names_fields_as_they_are_on_the_wire():
    text = "repo_url: this source has an error_uri"
    assert as_written(text, wire_names(Renamed)) == "repoUrl: this source has an error_uri"
    assert wire_names(AsItIs) == wire_names(None) == {}
    assert as_written(text, {}) == text


@pytest.mark.parametrize(
    "text",
    [
        "'a repo_url b' is not a valid name.",
        'There is no "it\'s a repo_url x" here; repo_url is not it.',
        "https://github.com/o/repo_url is gone, and so is my_repo_url and repo_url_2",
        "",
    ],
)
def test_what_a_caller_wrote_is_repeated_as_it_is(text):
    assert as_written(text, wire_names(Renamed)) == text


def test_times_are_utc_with_milliseconds():
    assert iso_time(1_700_000_000_000) == "2023-11-14T22:13:20.000Z"
