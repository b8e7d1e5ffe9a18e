"""The words of public skills: how rare each is, and which was probably meant: within a slip or two, the nearest and most
frequent first."""

import math

import pytest

from vskill_platform.domain.skills.known_words import (
    MOST_WORDS,
    KnownWords,
    Vocabulary,
    WordCounts,
    count_slips,
)
from vskill_platform.domain.skills.terms import stem

WORDS = {
    "kubernetes": 9,
    "terraform": 4,
    "changelog": 3,
    "test": 8,
    "tent": 2,
    "playwright": 1,
    "charts": 5,
    "chairs": 7,
    "marts": 9,
    "zebra": 6,
    "pip": 1,
    "electronic": 2,
    "music": 2,
    "write": 3,
}
KNOWN = KnownWords(Vocabulary(WORDS, {stem(word): count for word, count in WORDS.items()}, 20))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("kubernets", {}),
        ("kubrnetes", {"kubrnetes": "kubernetes"}),
        ("kubrnetse", {}),
        ("terrafrom", {"terrafrom": "terraform"}),
        ("Write a CHNAGELOG", {"chnagelog": "changelog"}),
        ("changelog", {}),
        ("changelogs", {}),
        ("play", {}),
        ("play terrafrom", {"terrafrom": "terraform"}),
        ("tesst", {"tesst": "test"}),
        ("tst", {}),
        ("tset", {"tset": "test"}),
        ("charrs", {"charrs": "chairs"}),
        # The first letter is seldom wrong.
        ("carts", {"carts": "charts"}),
        # Two words written as one.
        ("chairtest", {"chairtest": "chair test"}),
        ("zebrapip", {"zebrapip": "zebra pip"}),
        ("zebra2", {"zebra2": "zebra"}),
        # The beginning of a known word is none.
        ("zebr", {}),
        ("zebr test", {}),
        ("xylophone", {}),
        # A word that is near none says that the text is not of the words' language.
        ("xylophone tesst", {}),
        ("correo electrónico", {}),
        ("correo electronico", {}),
        ("electronico", {}),
        ("tésst", {}),
        ("musica", {}),
        ("", {}),
    ],
)
def test_a_slip_is_corrected_and_no_word_of_another_language(text, meant):
    assert KNOWN.correct(text) == meant


def test_without_a_vocabulary_nothing_is_corrected_and_all_words_are_equally_rare():
    nothing = KnownWords(Vocabulary())
    assert nothing.correct("xylofone chiars") == {}
    assert nothing.weigh("test") == nothing.weigh("zebra") == math.log(2)


def test_the_rarer_a_word_is_the_more_it_tells():
    weights = [KNOWN.weigh(stem(word)) for word in ("marts", "test", "terraform", "pip", "pumpkin")]
    assert weights == sorted(weights) and len(set(weights)) == len(weights)
    # A count of before, when there were more skills.
    assert KnownWords(Vocabulary({}, {"test": 9}, 3)).weigh("test") > 0


@pytest.mark.parametrize(
    ("term", "beginning", "holders"),
    [
        ("test", "", 8),
        ("test", "te", 14),
        ("pumpkin", "", 0),
        ("pumpkin", "pump", 0),
        ("test", "zeb", 14),
        ("tent", "tent", 2),
    ],
)
def test_the_holders_of_a_beginning_are_those_of_all_words_that_begin_so(term, beginning, holders):
    assert KNOWN.count_holders(term, beginning) == holders


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
        ("aaa", "a", 2),
    ],
)
def test_slips_are_letters_left_out_added_mistyped_or_swapped(written, meant, slips):
    assert count_slips(written, meant) == slips


def test_each_word_and_each_stem_of_a_skill_counts_once():
    counts = WordCounts()
    counts.add(("Test js tests", "a TEST pods"))
    counts.add(("test",))
    words = {"test": 2, "a": 1, "js": 1, "pods": 1, "tests": 1}
    assert counts.vocabulary() == Vocabulary(words, {"test": 2, "a": 1, "js": 1, "pod": 1}, 2)
    assert list(counts.vocabulary().words) == list(words)


def test_the_most_frequent_words_are_kept():
    counts = WordCounts()
    for first in range(0, MOST_WORDS, 500):
        counts.add([f"word{n:06}" for n in reversed(range(first, first + 500))])
    counts.add(["xylophone"])
    counts.add(["xylophone"])
    words = counts.vocabulary().words
    assert len(words) == MOST_WORDS
    assert list(words)[:2] == ["xylophone", "word000000"]
    assert f"word{MOST_WORDS - 1:06}" not in words
