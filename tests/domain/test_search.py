"""What a search looks for: marked terms of records, and texts as steps."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vskill_platform.domain.search import (
    FILLERS,
    MOST_LOOSENED,
    Lexeme,
    SearchStep,
    field_terms,
    plan_search,
    significant_words,
    step_of,
    whole,
)
from vskill_platform.domain.terms import MAX_TERM


def place(text: str, name: str, description: str = "", *, loosely: bool = False) -> int | None:
    named = field_terms(name, is_name=True)
    terms = {*named, *field_terms(description, is_name=False)}
    return step_of(plan_search(text, loosely=loosely), named, terms)


def test_a_name_has_its_words_its_whole_its_last_part_and_its_stems():
    assert field_terms("Acme/Code-Reviews", is_name=True) == (
        "acme",
        "code",
        "reviews",
        "¶acmecodereviews",
        "¶codereviews",
        "≈acm",
        "≈cod",
        "≈review",
    )
    assert field_terms("Code reviews, code", is_name=False) == ("code", "reviews", "≈cod", "≈review")
    assert field_terms("pdf", is_name=True) == ("pdf", "¶pdf")
    assert field_terms("- / -", is_name=True) == ()


def test_a_whole_name_has_no_gaps_and_is_cut():
    assert whole("Code Review") == whole("code-review") == whole("CODEREVIEW") == "codereview"
    assert whole("Résumé") == "resume"
    assert len(whole("x y " * 100)) <= MAX_TERM
    assert len(whole("abcdefghij klmnopqrst uvwxyz0123 456789abcd efgh")) == MAX_TERM


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("why does my pod not start", ("pod", "start")),
        ("to do", ("to", "do")),
        ("the pdf skill", ("pdf",)),
        ("", ()),
    ],
)
def test_words_that_say_nothing_are_left_out_where_others_are_left(text, words):
    assert significant_words(text) == words


def test_fillers_are_single_words():
    assert all(word.isalpha() and word.islower() for word in FILLERS)


@pytest.mark.parametrize(
    ("text", "name", "description", "expected"),
    [
        ("code review", "code-review", "", 0),
        ("codereview", "Code Review", "", 0),
        ("the pdf skill", "pdf", "", 0),
        ("to do", "to-do", "", 0),
        ("pdf", "acme/tools/pdf", "", 0),
        ("code rev", "code-review", "", 1),
        ("review code", "code-review", "", 1),
        ("review co", "code-review", "", 1),
        ("codere", "code-review", "", 2),
        ("code rev", "codereview", "", 2),
        ("review slides", "code-review", "slides", 3),
        ("slides rev", "code-review", "slides", 3),
        ("make slides", "pptx", "Make slide decks", 4),
        ("slide make", "pptx", "slides are made: making", 4),
        ("excel", "xlsx", "", 4),
        ("slid", "pptx", "slides", 3),
        ("sliding", "pptx", "slid", 4),
        ("spreadsheets", "sheet", "spreadsheet", 4),
        ("pdf word", "pdf", "", None),
        ("df", "pdf", "", None),
        ("start pod", "kube", "why a pod does not start", 3),
    ],
)
def test_a_record_is_found_by_the_closest_step(text, name, description, expected):
    assert place(text, name, description) == expected


@pytest.mark.parametrize(
    ("text", "found", "missed"),
    [
        ("alpha beta", "alpha", "gamma"),
        ("alpha beta gamma", "alpha gammas", "alpha"),
        ("alpha beta gamma delta", "delta alpha", "beta"),
        ("alpha beta gamma delta epsilon", "alpha beta gamma", "alpha beta"),
    ],
)
def test_loosely_half_of_the_words_are_enough(text, found, missed):
    assert place(text, found, loosely=True) == 0
    assert place(text, missed, loosely=True) is None


def test_one_word_and_very_many_are_never_loosened():
    assert plan_search("pdf", loosely=True) == ()
    many = " ".join(f"word{n}" for n in range(MOST_LOOSENED))
    assert len(plan_search(many, loosely=True)) == 1
    assert plan_search(f"{many} more", loosely=True) == ()
    assert plan_search("", loosely=True) == plan_search("- -") == ()


def test_a_step_needs_all_parts_of_one_way_and_any_term_of_a_part():
    a, b, c = Lexeme("a"), Lexeme("b"), Lexeme("c", is_prefix=True)
    step = SearchStep((((a, b), (c,)), ((b,),)))
    assert step.holds((), {"a", "cat"}) and step.holds((), {"b"})
    assert not step.holds((), {"a"}) and not step.holds((), {"cat"})
    assert not SearchStep((((a,),),), in_name=True).holds({"b"}, {"a"})
    assert SearchStep((((a,),),), in_name=True).holds({"a"}, ())


@given(st.lists(st.sampled_from(["pdf", "make", "slides", "testing", "k8s", "x"]), min_size=1, max_size=4))
def test_what_a_record_says_finds_it_again_and_each_step_is_wider(words):
    text = " ".join(words)
    steps = plan_search(text)
    named = field_terms(text, is_name=True)
    assert step_of(steps, named, named) == 0
    assert all(wider.holds(named, named) for wider in steps)
    for name in (text, f"{text}s", f"a {text} b"):
        terms = field_terms(name, is_name=True)
        for closer, wider in pairwise((steps[1], *steps[3:])):
            assert wider.holds(terms, terms) or not closer.holds(terms, terms)
