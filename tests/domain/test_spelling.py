"""What was probably meant: known words within a slip or two, the nearest and most frequent first."""

from collections import Counter

import pytest

from vskill_platform.domain.spelling import (
    MOST_WORDS,
    Speller,
    Vocabulary,
    count_slips,
    count_words,
    vocabulary_of,
)

KNOWN = Vocabulary(
    {
        "kubernetes": 9,
        "terraform": 4,
        "changelog": 3,
        "test": 8,
        "tent": 2,
        "playwright": 1,
        "charts": 5,
        "chairs": 7,
    }
)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("kubernets", ""),
        ("kubrnetes", "kubernetes"),
        ("kubrnetse", "kubernetes"),
        ("kbrnetse", ""),
        ("terrafrom", "terraform"),
        ("chnagelog", "changelog"),
        ("Write a CHNAGELOG now", "write a changelog now"),
        ("changelog", ""),
        ("changelogs", ""),
        ("play", ""),
        ("play terrafrom", "play terraform"),
        ("tesst", "test"),
        ("tst", ""),
        ("tset", "test"),
        ("tezt", "test"),
        ("tsets", ""),
        ("charrs", "chairs"),
        ("excel", ""),
        ("please", ""),
        ("xylophone", ""),
        ("", ""),
    ],
)
def test_a_slip_is_corrected_and_nothing_else(text, meant):
    assert Speller(KNOWN).correct(text) == meant


def test_without_a_vocabulary_nothing_is_suggested():
    assert Speller(Vocabulary()).correct("terrafrom") == ""


@pytest.mark.parametrize(
    ("written", "meant", "slips"),
    [
        ("", "", 0),
        ("", "abc", 3),
        ("abc", "", 3),
        ("abc", "abc", 0),
        ("abc", "ab", 1),
        ("ab", "abc", 1),
        ("abc", "axc", 1),
        ("abc", "acb", 1),
        ("bac", "abc", 1),
        ("abcd", "badc", 2),
        ("ca", "abc", 3),
        ("abc", "cab", 2),
        ("kitten", "sitting", 3),
    ],
)
def test_slips_are_letters_left_out_added_mistyped_or_swapped(written, meant, slips):
    assert count_slips(written, meant) == slips


def test_each_word_of_a_skill_counts_once_and_short_ones_do_not():
    counts: Counter[str] = Counter()
    count_words(counts, ("Test the tests", "a TEST of pods"))
    count_words(counts, ("test",))
    assert counts == {"test": 2, "tests": 1, "pods": 1}
    assert vocabulary_of(counts) == Vocabulary({"test": 2, "pods": 1, "tests": 1})


def test_the_most_frequent_words_are_kept():
    counts = Counter({f"word{n:06}": 1 for n in range(MOST_WORDS)})
    counts["frequent"] = 2
    words = vocabulary_of(counts).words
    assert len(words) == MOST_WORDS
    assert list(words)[:2] == ["frequent", "word000000"]
    assert f"word{MOST_WORDS - 1:06}" not in words
