"""What was probably meant: known words within a slip or two, the nearest and most frequent first."""

from collections import Counter

import pytest

from vskill_platform.domain.skills.spelling import (
    HEAVIEST,
    MOST_RARE,
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
        "marts": 9,
        "zebra": 6,
        "pip": 1,
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
        # The first letter is seldom wrong.
        ("carts", "charts"),
        # Two words written as one, and a number behind one.
        ("chairtest", "chair test"),
        ("testzebras", "test zebras"),
        ("chairtent", "chair tent"),
        ("zebra2024", "zebra"),
        ("zebrapip", "zebra pip"),
        ("pipzebra", "pip zebra"),
        ("pizebra", "zebra"),
        # Known by a synonym or by what answers it, and a slip of such a word.
        ("excel", ""),
        ("honeymoon", ""),
        ("honeymon", "honeymoon"),
        ("spredsheet", "spreadsheet"),
        # Only a word of some length: "plan" is not meant.
        ("plai terrafrom", "plai terraform"),
        ("podmn", "podman"),
        # Known by a synonym alone, and by what answers it alone.
        ("accountant", ""),
        ("haproxy", ""),
        # The beginning of a known word is corrected where more words follow.
        ("zebr", ""),
        ("zebr test", "zebra test"),
        ("please", ""),
        ("xylophone", ""),
        ("", ""),
    ],
)
def test_a_slip_is_corrected_and_nothing_else(text, meant):
    assert Speller(KNOWN).correct(text) == meant


def test_a_word_that_a_skill_has_is_meant_rather_than_one_that_none_has():
    assert Speller(Vocabulary({"podmaz": 1})).correct("podmam test") == "podmaz test"
    assert Speller(Vocabulary()).correct("podmam test") == "podman test"


def test_a_part_of_two_letters_is_not_split_off():
    known = Speller(Vocabulary({"js": 3, "test": 8}))
    assert (known.correct("testjs now"), known.correct("jstest now")) == ("", "")


def test_without_a_vocabulary_only_words_with_others_are_suggested():
    assert Speller(Vocabulary()).correct("xylofone chiars") == ""
    assert Speller(Vocabulary()).correct("spredsheet chiars") == "spreadsheet chiars"


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("kubernetes", {"kubernetes": 1}),
        ("chair tests", {"chair": 1, "tests": 1}),
        ("tents", {"tents": 3}),
        ("pip changelogs", {"pip": 4, "changelogs": 2}),
        # By what means it, or answers it.
        ("k8s", {"k8s": 1}),
        ("helm", {"helm": 1}),
        ("pumpkin", {"pumpkin": 0}),
        # A light word tells little, whether any skill has it or not.
        ("write pumpkins", {"write": 1, "pumpkins": 0}),
        ("to do", {"to": 0, "do": 0}),
    ],
)
def test_the_rarer_a_word_is_the_more_it_tells(text, weights):
    assert Speller(KNOWN).weigh(text) == weights


def test_a_weight_has_a_limit():
    known = Speller(Vocabulary({"alpha": 1_000, "beta": 8, "gamma": 7, "delta": 1}))
    assert known.weigh("alpha beta gamma delta") == {"alpha": 1, "beta": 7, "gamma": 8, "delta": 8}


def test_a_word_is_common_where_more_skills_have_it_than_an_engine_reads_at_once():
    counts = {
        "alpha": MOST_RARE,
        "beta": MOST_RARE + 1,
        "gammas": MOST_RARE,
        "gamma": 1,
        "deltaic": MOST_RARE + 1,
    }
    known = Speller(Vocabulary(counts)).loosen("alpha beta gamma delta")
    assert known.weights == Speller(Vocabulary(counts)).weigh("alpha beta gamma delta")
    # All forms of a word count, and not what begins with it.
    assert known.common == {"beta", "gamma"}
    assert known.heaviest == HEAVIEST


@pytest.mark.parametrize("other", ["kubernetes", "travel"])
def test_what_counts_as_a_word_counts_for_whether_it_is_common(other):
    known = Speller(Vocabulary({other: MOST_RARE + 1}))
    assert known.loosen("k8s honeymoon zebra").common == {"k8s" if other == "kubernetes" else "honeymoon"}


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


def test_each_word_of_a_skill_counts_once_and_single_letters_do_not():
    counts: Counter[str] = Counter()
    count_words(counts, ("Test js tests", "a TEST pods"))
    count_words(counts, ("test",))
    assert counts == {"test": 2, "tests": 1, "pods": 1, "js": 1}
    assert vocabulary_of(counts) == Vocabulary({"test": 2, "js": 1, "pods": 1, "tests": 1})


def test_the_most_frequent_words_are_kept():
    counts = Counter({f"word{n:06}": 1 for n in reversed(range(MOST_WORDS))})
    counts["xylophone"] = 2
    words = vocabulary_of(counts).words
    assert len(words) == MOST_WORDS
    assert list(words)[:2] == ["xylophone", "word000000"]
    assert f"word{MOST_WORDS - 1:06}" not in words
