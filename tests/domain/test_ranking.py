"""The order of what was found: the better fit, then the more established; and what is marked in it."""

import pytest

from vskill_platform.domain.skills.known_words import KnownWords, Vocabulary
from vskill_platform.domain.skills.ranking import mark_words, score
from vskill_platform.domain.skills.search import wanted_terms
from vskill_platform.domain.skills.terms import field_terms

KNOWN = KnownWords(Vocabulary({}, {"pdf": 40, "make": 60, "tool": 50, "form": 5}, 100))


def fields(name: str, description: str = "", owner: str = "o") -> tuple[str, ...]:
    return (
        field_terms(name, is_name=True),
        field_terms(f"{owner}/r/{name}", is_name=True),
        field_terms(description, is_name=False),
    )


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        # The name itself, then words in the name, then in the description.
        ("pdf", [fields("pdf"), fields("pdf-forms"), fields("reader", "a pdf")]),
        ("code review", [fields("code-review"), fields("code-review-helper"), fields("a", "review of code")]),
        ("codereview", [fields("code-review"), fields("code", "review")]),
        ("o/r/pdf", [fields("pdf"), fields("o-r-pdf-tools")]),
        # Forms of a word are the word; a beginning is less.
        ("zebra slides", [fields("sliding-zebras"), fields("slide-show")]),
        ("zebra atlas", [fields("zebras-atlas"), fields("zebras-atlassian"), fields("zebras-other")]),
        # The last word may be a beginning, the others may not.
        ("pdf form", [fields("x-pdf", "a formula"), fields("y-pdf", "other word")]),
        # Every word counts, the rarer one more.
        ("pdf forms", [fields("a", "forms of a pdf"), fields("b", "forms"), fields("c", "a pdf")]),
        ("make zebras", [fields("x", "zebras"), fields("y", "make")]),
        # Words that signs join are one word.
        ("nextjs pages", [fields("a", "pages with Next.js"), fields("b", "the next pages")]),
        # A shorter text is more about the word.
        ("zebra", [fields("a", "zebra"), fields("b", "zebra " + " ".join(f"word{n}" for n in range(60)))]),
        # The owner counts least.
        ("acme", [fields("x-acme"), fields("x", "by acme"), fields("x", owner="acme")]),
    ],
)
def test_the_better_fit_comes_first(text, texts):
    scores = [score(one, wanted_terms(text, KNOWN)) for one in texts]
    assert scores == sorted(scores, reverse=True) and len(set(scores)) == len(scores)


def test_what_has_no_word_of_the_query_has_no_score():
    assert score(fields("pdf"), wanted_terms("zebra", KNOWN)) == 0


@pytest.mark.parametrize(
    ("text", "query", "pieces"),
    [
        (
            "Make slide decks",
            "make slides",
            (("Make", True), (" ", False), ("slide", True), (" decks", False)),
        ),
        ("PDF: a pdf-reader", "pdf", (("PDF", True), (": a ", False), ("pdf", True), ("-reader", False))),
        ("kubernetes", "kube", (("kubernetes", True),)),
        ("kube kubernetes", "kube zebras", (("kube", True), (" kubernetes", False))),
        ("Résumé", "resume", (("Résumé", True),)),
        ("for a pdf", "for pdf", (("for a ", False), ("pdf", True))),
        ("", "pdf", ()),
        ("nothing here", "pdf", (("nothing here", False),)),
        ("nothing here", "", (("nothing here", False),)),
    ],
)
def test_found_words_are_marked_and_the_text_is_whole(text, query, pieces):
    found = mark_words(text, query)
    assert found == pieces
    assert "".join(piece for piece, _ in found) == text
