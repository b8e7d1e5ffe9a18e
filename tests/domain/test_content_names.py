"""Which content a record names: exactly, where it must be whole; generously, where it must not be deleted."""

import msgspec
import pytest

from vskill_platform.domain import keys
from vskill_platform.domain.skills.content_names import ABOUT_CONTENT, NAMING, addresses_in, bundles_named
from vskill_platform.domain.skills.git_list import GitList, ListMarks, ServedList

LIST = msgspec.json.encode(GitList(ServedList("a" * 64, 1, "m"), ListMarks("1", 1, 1), 1)).decode()
A, B, C = "a" * 64, "b" * 64, "c" * 64


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        (keys.version("o/r/s", "1.0.0"), f'{{"digest":"{A}","content_hash":"{B}"}}', (A,)),
        (keys.sub("x"), f'{{"digest":"{A}","upload":"{A}"}}', (A,)),
        (
            keys.sub("x"),
            f'{{"digest":"{A}","upload":"{B}","rerun_requested":{{"at":1,"upload":"{C}"}}}}',
            (A, B, C),
        ),
        (keys.sub("x"), '{"digest":null,"rerun_requested":null}', ()),
        (keys.subrun("x", "1"), f'{{"upload":"{B}"}}', (B,)),
        (keys.git_list("marketplace", "readers"), LIST, (A,)),
        (keys.git_list("marketplace", "readers"), '{"served":{}}', ()),
        (keys.skill("o/r/s"), f'{{"current_digest":"{A}"}}', ()),
        (keys.sub("x"), "{not json", ()),
        (keys.sub("x"), '{"digest":5}', ()),
        (keys.sub("x"), "[" * 100_000, ()),
    ],
)
def test_bundles_are_named_by_versions_runs_and_lists_alone(
    key: str, value: str, named: tuple[str, ...]
) -> None:
    assert bundles_named(key, value.encode()) == named


def test_what_is_no_text_names_nothing() -> None:
    assert bundles_named(keys.sub("x"), b'{"digest":"\xff"}') == ()


def test_any_address_in_a_record_counts_whatever_the_record_is() -> None:
    value = f'{{"pack":"{A}","list":["{B}",{{"deep":"sha256:{C}"}}]}}'.encode()
    assert addresses_in("something:new", value) == {A, B, C}
    assert addresses_in(keys.sub("broken"), f'{{not json "{A}"'.encode()) == {A}


def test_what_is_longer_or_shorter_or_no_digit_is_no_address() -> None:
    value = f'["{"a" * 63}","{"a" * 65}","{"A" * 64}","{"g" * 64}"]'.encode()
    assert addresses_in("something:new", value) == frozenset()


@pytest.mark.parametrize("prefix", ABOUT_CONTENT)
def test_records_that_tell_about_content_keep_none(prefix: str) -> None:
    assert prefix not in NAMING
    assert addresses_in(f"{prefix}x", A.encode()) == frozenset()
