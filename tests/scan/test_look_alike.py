"""Which names can be taken for another one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vskill_scan.memory.look_alike import LONGEST, SHORTEST, look_alikes

NAMES = st.text("abcxyz019-", min_size=SHORTEST, max_size=LONGEST)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("lint", "lnit"),
        ("lint", "ilnt"),
        ("lint", "litn"),
        ("lint", "lint0"),
        ("lint", "zlint"),
        ("lint", "li-nt"),
        ("lint", "int"),
        ("lint", "lin"),
        ("lint", "l1nt"),
        ("lint", "lintz"),
        ("modern", "rnodern"),
        ("modern", "modem"),
        ("runner", "rumer"),
        ("swag", "svvag"),
        ("vvork", "work"),
        ("clean", "dean"),
        ("data", "clata"),
        ("pdf", "dpf"),
    ],
)
def test_a_letter_more_less_changed_or_swapped_and_letters_that_look_the_same(name, other):
    assert other in look_alikes(name)


@pytest.mark.parametrize(
    ("name", "other"),
    [("lint", "lint"), ("lint", "flints"), ("lint", "tnil"), ("pdf", "pdb"), ("pdf", "pdfs")],
)
def test_what_differs_more_or_is_short_is_another_name(name, other):
    assert other not in look_alikes(name)


def test_every_close_name_is_written_down_and_no_other():
    assert look_alikes("pdf") == {"dpf", "pfd"}
    # Of 37 letters: swapped, one less, one changed, and one more, which doubles a letter in two places.
    assert len(look_alikes("efgh")) == 3 + 4 + 4 * 36 + (5 * 37 - 4)


@given(NAMES)
@settings(deadline=None, max_examples=40)
def test_no_name_is_like_itself_and_swapping_back_gives_the_name(name):
    found = look_alikes(name)
    assert name not in found
    swapped = [other for other in found if sorted(other) == sorted(name)]
    assert all(name in look_alikes(other) for other in swapped)


def test_a_name_at_the_limit_is_compared_and_a_longer_one_is_not():
    assert look_alikes("a" * SHORTEST) >= {"a" * (SHORTEST - 1), "a" * (SHORTEST + 1)}
    assert "b" + "a" * (LONGEST - 1) in look_alikes("a" * LONGEST)
    assert look_alikes("a" * (LONGEST + 1)) == frozenset()
