"""What a search looks for: marked terms of records, and texts as steps."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vskill_platform.domain.skills.search import (
    FILLERS,
    LIGHT,
    MOST_LOOSENED,
    MOST_WIDENED,
    Lexeme,
    Loosening,
    SearchStep,
    WantedWord,
    field_terms,
    plan_search,
    significant_words,
    step_of,
    telling_words,
    wanted_words,
    whole,
)
from vskill_platform.domain.skills.stems import STEM
from vskill_platform.domain.skills.terms import MAX_TERM


def place(text: str, name: str, description: str = "", loosely: dict[str, int] | None = None) -> int | None:
    named = field_terms(name, is_name=True)
    terms = {*named, *field_terms(description, is_name=False)}
    known = None if loosely is None else Loosening(loosely)
    return step_of(plan_search(text, loosely=known), named, terms, 0)


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
        ("I don't know what it's for", ("know",)),
        ("to do", ("to", "do")),
        ("the pdf skill", ("pdf",)),
        ("", ()),
    ],
)
def test_words_that_say_nothing_are_left_out_where_others_are_left(text, words):
    assert significant_words(text) == words


def test_fillers_and_light_words_are_single_words():
    assert all(word.isalpha() and word.islower() for word in FILLERS)
    assert all(word.strip(STEM).isalpha() for word in LIGHT)


def test_a_wanted_word_knows_its_forms_synonyms_and_answers():
    dollars, podman = wanted_words("my dollars podman")
    assert dollars == WantedWord(
        "dollars", False, ("≈dollar", "≈mydollar", "≈dollarspodman"), (), ("≈currenc",)
    )
    assert podman == WantedWord("podman", True, ("≈podman", "≈dollarspodman"), ("≈contain", "≈dock"), ())


def test_what_a_query_says_itself_answers_no_other_word_of_it():
    assert wanted_words("dollars")[0].related == ("≈currenc",)
    assert wanted_words("dollars currencies")[0].related == ()


def test_two_words_are_also_one_and_lead_where_it_leads():
    (log,) = wanted_words("log in")
    assert log.forms == ("log", "≈login") and "≈oauth" in log.synonyms and "≈sess" in log.related
    assert len(wanted_words("a" * 30 + " " + "b" * 30)[0].forms[1]) == MAX_TERM + 1


def test_very_many_words_have_no_other_words():
    few, many = (" ".join(["podman", *map(str, range(n))]) for n in (MOST_WIDENED - 1, MOST_WIDENED))
    assert wanted_words(few)[0].synonyms and len(wanted_words(few)[0].forms) == 2
    assert wanted_words(many)[0] == WantedWord("podman", False, ("≈podman",))
    assert wanted_words(many)[-1] == WantedWord(str(MOST_WIDENED - 1), True, (str(MOST_WIDENED - 1),))


@pytest.mark.parametrize(
    ("text", "telling"),
    [("make slides", ["slides"]), ("writing tests", ["tests"]), ("fix it quickly", ["fix", "quickly"])],
)
def test_light_words_are_left_out_where_others_are_left(text, telling):
    assert [word.text for word in telling_words(wanted_words(text))] == telling


def test_a_word_is_looked_for_as_it_is_written_by_its_forms_and_by_others():
    word = WantedWord("tests", True, ("≈test", "≈mytest"), ("qa",), ("≈check",))
    meant = (
        Lexeme("tests", is_prefix=True),
        *map(Lexeme, ("test", "≈test", "mytest", "≈mytest", "qa", "qas")),
    )
    assert word.lexemes() == meant
    assert word.lexemes(widely=True) == (*meant, Lexeme("check"), Lexeme("≈check"))
    assert WantedWord("qa", False, ("qa",), ("≈test",)).lexemes() == tuple(
        map(Lexeme, ("qa", "qas", "test", "≈test"))
    )


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
        ("change log rules", "git", "rules of a changelog", 4),
        ("make slides", "pptx", "", 5),
        ("create slides quickly", "pptx", "", 5),
        ("make", "pptx", "", None),
        ("note taking", "a", "does not take", None),
        ("honeymoon", "planner", "a trip, a journey, travel", 5),
        ("travel", "planner", "honeymoon", None),
        ("make honeymoon plans", "travel", "plan routes", 5),
    ],
)
def test_a_record_is_found_by_the_closest_step(text, name, description, expected):
    assert place(text, name, description) == expected


@pytest.mark.parametrize(
    ("weights", "places"),
    [
        # Equal words: two of three, then one. All of them were looked for before.
        ((2, 2, 2), {"alpha beta": 0, "gamma alpha": 0, "alpha": 2, "gamma": 2}),
        # A rare word says more than two common ones.
        ((6, 1, 1), {"alpha": 0, "beta gamma": None}),
        ((4, 2, 2), {"alpha beta": 0, "alpha": 1, "beta gamma": 1, "beta": None}),
        # A word that no public skill has is not needed, and enough.
        ((0, 3, 3), {"beta": 1, "alpha": 1, "beta gamma": 0, "alpha beta": 0}),
        ((0, 0, 0), {"alpha beta": 0, "alpha": 2}),
        # Nothing known at all, as before the first vocabulary.
        ((), {"alpha beta": 0, "alpha": 2}),
    ],
)
def test_loosely_words_may_be_missing_by_their_weight(weights, places):
    known = dict(zip(("alpha", "beta", "gamma"), weights, strict=False))
    found = {name: place("alpha beta gamma", name, loosely=known) for name in places}
    assert found == places
    assert place("alpha beta gamma", "delta", loosely=known) is None


def test_loosely_light_words_do_not_count_and_others_are_widened():
    known = {"make": 9, "slides": 2, "honeymoon": 2}
    assert place("make slides honeymoon", "make", loosely=known) is None
    assert place("make slides honeymoon", "pptx", loosely=known) == 0
    assert place("make slides honeymoon", "travel", loosely=known) == 0


def test_one_word_is_never_loosened_and_of_very_many_only_the_most_telling():
    assert plan_search("pdf", loosely=Loosening()) == plan_search("make pdf", loosely=Loosening()) == ()
    assert plan_search("", loosely=Loosening()) == plan_search("- -") == ()
    words = [f"word{n}" for n in range(MOST_LOOSENED + 1)]
    known = {word: 2 + n for n, word in enumerate(words)}
    steps = plan_search(" ".join(words), loosely=Loosening(known))
    texts = {one.text for step in steps for way in step.ways for part in way for one in part}
    assert "word0" not in texts and set(words[1:]) <= texts
    equal = plan_search(" ".join(words), loosely=Loosening())
    # Of six, every choice of four, of three and of two.
    assert [len(step.ways) for step in equal] == [15, 20, 15]


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
    assert step_of(steps, named, named, 0) == 0
    assert all(wider.holds(named, named) for wider in steps)
    for name in (text, f"{text}s", f"a {text} b"):
        terms = field_terms(name, is_name=True)
        for closer, wider in pairwise((steps[1], *steps[3:])):
            assert wider.holds(terms, terms) or not closer.holds(terms, terms)


def test_there_is_no_last_step_that_asks_the_same_again():
    steps = plan_search("zqxv")
    assert len(set(steps)) == len(steps) == 5
    assert len(plan_search("make slides honeymoon")) == 6


def test_loosely_a_word_without_a_weight_is_one_of_weight_0():
    text = "alpha beta gamma"
    known = {"alpha": 5}
    assert plan_search(text, loosely=Loosening(known)) == plan_search(
        text, loosely=Loosening({"beta": 0, "gamma": 0, **known})
    )
    assert plan_search(text, loosely=Loosening(known)) != plan_search(
        text, loosely=Loosening({"beta": 1, "gamma": 1, **known})
    )


def test_loosely_common_words_alone_are_looked_for_in_the_heaviest_records():
    known = Loosening({"alpha": 2, "beta": 2, "gamma": 2}, frozenset({"alpha", "beta"}), heaviest=7)
    steps = plan_search("alpha beta gamma", loosely=known)
    ways = [[tuple(part[0].text for part in way) for way in step.ways] for step in steps]
    assert ways == [
        [("alpha", "gamma"), ("beta", "gamma")],
        [("alpha", "beta")],
        [("alpha", "gamma"), ("beta", "gamma")],
        [("alpha", "beta")],
        [("gamma",)],
        [("alpha",), ("beta",)],
    ]
    assert [step.heaviest for step in steps] == [0, 7, 0, 7, 0, 7]
    # The eighth record is not looked at where it has common words alone.
    assert [step_of(steps, (), {"alpha", "beta"}, rank) for rank in (0, 6, 7)] == [1, 1, None]
    assert [step_of(steps, (), {"beta", "gamma"}, rank) for rank in (0, 7)] == [0, 0]


def test_loosely_the_last_word_is_no_beginning():
    assert place("alpha beta gam", "gamma") is None
    assert place("gam", "gamma") == 1
    assert place("alpha beta gam", "alpha gamma", loosely={}) == 2
    assert place("alpha beta gam", "alpha gam", loosely={}) == 0


def test_loosely_there_is_no_step_without_a_way():
    text, words = "alpha beta gamma", frozenset({"alpha", "beta", "gamma"})
    assert {step.heaviest for step in plan_search(text, loosely=Loosening())} == {0}
    assert {step.heaviest for step in plan_search(text, loosely=Loosening(common=words, heaviest=9))} == {9}
