"""The error tree: stable codes, statuses, default messages, and details that name the cause."""

import pickle
from collections.abc import Iterator

import pytest

from vskill_core import errors
from vskill_core.errors import BlobUnavailable, PlatformError, StoreError
from vskill_platform.worker_context import require_env


def walk(cls: type[PlatformError] = PlatformError) -> Iterator[type[PlatformError]]:
    yield cls
    for child in cls.__subclasses__():
        yield from walk(child)


TREE = [cls for cls in walk() if cls.__module__ == errors.__name__]


def test_every_code_is_unique_and_declared_by_its_own_class() -> None:
    codes = [cls.__dict__.get("code") for cls in TREE]
    assert None not in codes
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("cls", TREE, ids=lambda cls: cls.__name__)
def test_every_error_has_a_docstring_a_status_and_a_message(cls: type[PlatformError]) -> None:
    assert cls.__doc__ and cls.__doc__.strip()
    assert 400 <= cls.status <= 599
    assert str(cls()) == cls().message == cls().args[0] != ""
    assert cls().code.replace("_", "").isalpha() and cls().code == cls().code.lower()


@pytest.mark.parametrize("cls", TREE, ids=lambda cls: cls.__name__)
def test_whoever_asks_reads_what_went_wrong_but_no_words_of_a_store_that_failed(
    cls: type[PlatformError],
) -> None:
    error = cls("cannot open /srv/vskill.db")
    hidden = issubclass(cls, BlobUnavailable) or (issubclass(cls, StoreError) and cls.status >= 500)
    assert error.public_message == (cls().message if hidden else error.message)


@pytest.mark.parametrize("cls", TREE, ids=lambda cls: cls.__name__)
def test_message_and_details_survive_a_trip_to_another_process(cls: type[PlatformError]) -> None:
    back = pickle.loads(pickle.dumps(cls("what happened", key="k")))
    assert type(back) is cls
    assert (back.message, back.details) == ("what happened", {"key": "k"})


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("InvalidInput", 400),
        ("TransitionError", 409),
        ("Conflict", 409),
        ("NotFound", 404),
        ("Ambiguous", 404),
        ("Blocked", 403),
        ("StoreError", 500),
        ("StoreUnavailable", 503),
        ("StoreBusy", 503),
        ("StoreFull", 503),
        ("StoreReadOnly", 503),
        ("StoreCorrupt", 500),
        ("SchemaUnknown", 500),
        ("RecordMalformed", 500),
        ("CursorGone", 410),
        ("UnindexedQuery", 500),
        ("Unsupported", 501),
        ("NoEnvironment", 500),
        ("ClaimLost", 409),
        ("BudgetExceeded", 504),
        ("SourceUnavailable", 503),
        ("BlobUnavailable", 503),
        ("ContentDamaged", 503),
        ("SourceGone", 422),
        ("NoSkillFound", 422),
        ("InvalidManifest", 422),
        ("InvalidSettings", 500),
        ("LimitExceeded", 413),
    ],
)
def test_the_status_that_the_web_side_shows(name: str, status: int) -> None:
    assert getattr(errors, name).status == status


def test_a_full_busy_or_read_only_store_is_an_unavailable_store() -> None:
    for cls in (errors.StoreBusy, errors.StoreFull, errors.StoreReadOnly):
        assert issubclass(cls, errors.StoreUnavailable) and issubclass(cls, errors.StoreError)


def test_invalid_input_names_the_field_and_the_fix() -> None:
    error = errors.InvalidInput("The address is empty.", field="repo_url", fix="write owner/repository")
    assert (str(error), error.field, error.fix) == (
        "The address is empty.",
        "repo_url",
        "write owner/repository",
    )
    assert errors.InvalidInput().field == ""


def test_a_detail_is_read_as_text_and_empty_where_it_is_missing() -> None:
    assert errors.Conflict(key="sub:1").text("key") == "sub:1"
    assert errors.Conflict(key=None).text("key") == errors.Conflict().text("key") == ""
    assert errors.LimitExceeded(found=1001).text("found") == "1001"


def test_no_environment_names_the_binding_and_where_it_is_available() -> None:
    """AC-US3-04: outside of every batch, job and request the error says which binding and where to get it."""
    with pytest.raises(errors.NoEnvironment) as caught:
        require_env("kv")
    text = str(caught.value)
    assert "'kv'" in text
    assert all(place in text for place in ("queue batch", "scheduled job", "web request"))


def test_unsupported_names_engine_and_capability() -> None:
    text = str(errors.Unsupported(engine="nats", capability="fair_order"))
    assert "nats" in text and "fair_order" in text
    for incomplete in ({}, {"engine": "nats"}, {"capability": "fair_order"}):
        assert str(errors.Unsupported(**incomplete)) == "The storage engine does not support this."


@pytest.mark.parametrize(
    ("message", "details", "said"),
    [
        ("it is wrong.", {"fix": "make it right"}, "it is wrong: make it right."),
        ("it is wrong: make it right.", {"fix": "make it right"}, "it is wrong: make it right."),
        ("...it is wrong", {"fix": "make it right"}, "...it is wrong: make it right."),
        ("it is wrong.", {}, "it is wrong."),
    ],
)
def test_in_words_an_error_says_once_what_to_do(message: str, details: dict[str, str], said: str) -> None:
    assert PlatformError(message, **details).in_words == said
