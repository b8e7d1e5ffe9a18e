"""What a search asks an engine for: terms, the rarest first, of which a record must hold any or every one."""

import pytest

from vskill_platform.domain.skills.known_words import KnownWords, Vocabulary
from vskill_platform.domain.skills.search import (
    MOST_TERMS,
    TermQuery,
    WantedTerm,
    every_term,
    finding_query,
    wanted_terms,
)

STEMS = {"common": 6_000, "often": 900, "seldom": 300, "rare": 100, "rarer": 100}
KNOWN = KnownWords(Vocabulary({}, STEMS, 10_000))


def shown(terms: tuple[WantedTerm, ...]) -> list[tuple[str, str]]:
    return [(term.text, term.beginning) for term in terms]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Code Reviews", [("code", ""), ("review", "reviews"), ("¶codereviews", "")]),
        # Words that a question is made of are left out, unless there are no others.
        ("how do I review", [("review", "review"), ("¶howdoireview", "")]),
        ("how to", [("how", ""), ("to", "to"), ("¶howto", "")]),
        # A word that no skill has may be a beginning too; one letter is none.
        ("review c", [("review", ""), ("c", ""), ("¶reviewc", "")]),
        # What signs join is one word too, and the last part may be a beginning.
        ("a next.js", [("next", ""), ("js", "js"), ("nextj", "nextjs"), ("¶anextjs", "")]),
        ("mongo code", [("mongo", "mongo"), ("code", "code"), ("¶mongocode", "")]),
        ("日本", [("日", ""), ("本", ""), ("¶日本", "")]),
        ("!?", []),
        ("", []),
    ],
)
def test_a_text_is_its_words_and_its_whole(text, terms):
    known = KnownWords(Vocabulary({}, dict.fromkeys(("code", "review", "how", "to", "next"), 3), 10))
    assert sorted(shown(wanted_terms(text, known))) == sorted(terms)


def test_of_a_long_text_the_rarest_words_count():
    text = " ".join(["common", *(f"word{n}" for n in range(MOST_TERMS)), "often"])
    terms = [term.text for term in wanted_terms(text, KNOWN)]
    assert len(terms) == MOST_TERMS
    assert "common" not in terms and "often" not in terms


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        # Up to a tenth of the skills; unknown words are the rarest.
        ("common rare often seldom zebras", ["zebra", "¶", "rare", "seldom"]),
        ("often common zebras", ["zebra", "¶", "often"]),
        ("rare often more", ["more", "¶", "rare", "often"]),
        # The only word finds, however common.
        ("common", ["¶", "common"]),
        # A beginning has the holders of all words that begin so.
        ("zebra seldom rar", ["zebra", "¶", "rar", "seldom"]),
        ("zebra seldom com", ["zebra", "¶", "seldom"]),
    ],
)
def test_candidates_are_found_by_the_rarest_words_that_a_tenth_of_the_skills_have(text, finding):
    query = finding_query(wanted_terms(text, KNOWN), KNOWN)
    assert not query.every
    assert ["¶" if term.text.startswith("¶") else term.text for term in query.terms] == finding


def test_among_few_skills_every_word_finds():
    few = KnownWords(Vocabulary({}, {"common": 60, "rare": 10}, 70))
    assert len(finding_query(wanted_terms("common rare", few), few).terms) == 3


def test_without_a_vocabulary_every_word_finds():
    nothing = KnownWords(Vocabulary())
    assert len(finding_query(wanted_terms("common rare", nothing), nothing).terms) == 3


@pytest.mark.parametrize(
    ("texts", "points"),
    [
        (("zebra", "", ""), 300),
        (("", "", "zebra"), 150),
        (("zebra", "", "zebra"), 300),
        (("zebra tool", "", ""), 400),
        (("tool", "", "zebra"), 400),
        # By its beginning.
        (("tooling", "", ""), 250),
        (("zebras", "stool", ""), None),
        (("", "", ""), None),
    ],
)
def test_each_term_has_points_and_a_name_those_of_the_rarest(texts, points):
    query = TermQuery((WantedTerm("zebra", weight=1.5), WantedTerm("tool", "tool", 1.0)))
    assert query.points(texts) == points


def test_all_words_of_a_text_must_be_there_and_the_last_may_be_a_beginning():
    query = every_term("my-repo tests")
    assert shown(query.terms) == [("my", ""), ("repo", ""), ("test", "tests")]
    assert query.points(("test", "git my repo")) == 0
    assert query.points(("tests2", "git my repo")) == 0
    assert query.points(("", "git my repo")) is None
