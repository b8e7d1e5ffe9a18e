"""The order of what was found: the better fit, then the more established; and what is marked in it."""

import msgspec
import pytest

from vskill_core.identity import Identity
from vskill_platform.domain.skills.listing import Listing
from vskill_platform.domain.skills.ranking import mark_words, rank
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.domain.skills.trust import TrustTier


def skill(name: str, description: str = "", weight: int | None = 0, **fields: object) -> PublishedSkill:
    owner = fields.pop("owner", "o")
    shown = Listing("other", "MIT", "any", TrustTier.T2, 50, 0, 1, 1, weight or 0)
    draft = PublishedSkill(
        canonical=f"{owner}/r/{name}",
        identity=Identity("github.com", str(owner), "r", name),
        slug=name,
        name=name,
        description=description,
        listing=None if weight is None else shown,
    )
    return msgspec.structs.replace(draft, **fields)


def order(text: str, *skills: PublishedSkill) -> list[str]:
    found = [one.slug for one in rank(skills, text)]
    assert [one.slug for one in rank(skills[::-1], text)] == found
    return found


@pytest.mark.parametrize(
    ("text", "skills"),
    [
        # The name itself, then all words in it, then its forms, its synonyms, and the description.
        ("pdf", [skill("pdf"), skill("pdf-forms", weight=9), skill("reader", "a pdf", weight=60)]),
        ("pdf", [skill("pdf-forms"), skill("pdfs"), skill("acrobat", weight=60)]),
        ("slides", [skill("slides-a"), skill("slide", weight=9), skill("pptx", weight=10)]),
        ("slides", [skill("pptx"), skill("b", "slides"), skill("c", "slide"), skill("d", "pptx")]),
        # The last word may be a beginning, the others may not.
        ("pdf form", [skill("forms-pdf"), skill("pdf-x", "forms", weight=9)]),
        ("pdf", [skill("a-pdfium", weight=1), skill("b", "pdf")]),
        # Every word counts.
        ("pdf forms", [skill("pdf", "forms"), skill("pdf-x", weight=63)]),
        ("merge pdf zebras", [skill("a", "merge pdf zebras"), skill("pdf", "merge", weight=63)]),
        # Two words that are one in the name.
        ("change log rules", [skill("changelog", "rules"), skill("change", "rules log", weight=63)]),
        # What may answer a word comes behind what means the same, and before what lacks it.
        ("chocolate honeymoon", [skill("a", "chocolate travel"), skill("chocolate", weight=63)]),
        ("vacation", [skill("holiday"), skill("a-itinerary", weight=9), skill("b", "holiday", weight=9)]),
        # A light word counts less than another.
        ("make zebra", [skill("zebra-x"), skill("make-x", weight=63)]),
        ("make zebra", [skill("a", "zebra"), skill("maker", weight=63)]),
        # Where they fit equally well, the more established; then the name.
        ("pdf", [skill("b-pdf", weight=3), skill("a-pdf", weight=2)]),
        ("pdf", [skill("a-pdf"), skill("b-pdf")]),
        # What cannot be installed is last.
        ("pdf", [skill("b", "pdf"), skill("pdf", weight=None)]),
        # The canonical name, and the owner's.
        ("o/r/pdf", [skill("pdf"), skill("o-r-pdf-tools", weight=63)]),
        ("acme pdf", [skill("pdf-x", owner="acme"), skill("pdf-acme-b", weight=0, owner="z")][::-1]),
    ],
)
def test_the_better_fit_comes_first(text, skills):
    assert order(text, *skills) == [one.slug for one in skills]


def test_a_rare_word_counts_more_where_its_weight_is_known():
    common, rare = skill("common", weight=9), skill("rare")
    assert order("rare common", common, rare) == ["common", "rare"]
    assert [one.slug for one in rank((common, rare), "rare common", {"rare": 5, "common": 1})] == [
        "rare",
        "common",
    ]
    # A weight of 0 is none: the word counts as usual.
    assert [one.slug for one in rank((common, rare), "rare common", {"rare": 0, "common": 3})] == [
        "common",
        "rare",
    ]


def test_a_name_is_also_what_the_front_matter_calls_it():
    declared = msgspec.structs.replace(skill("tool-1"), name="Slide Maker")
    assert order("slide maker", declared, skill("slide-maker-x", weight=63)) == ["tool-1", "slide-maker-x"]


def test_of_copies_the_holder_of_the_name_comes_first_then_the_oldest():
    holder = skill("pdf", owner="z", listed_as={"public": "pdf"}, created_at=9)
    old, new = skill("pdf", owner="a", created_at=1), skill("pdf", owner="b", weight=63, created_at=5)
    found = rank((new, old, holder, skill("pdf-x", weight=9)), "pdf")
    assert [one.canonical for one in found] == ["z/r/pdf", "a/r/pdf", "b/r/pdf", "o/r/pdf-x"]


@pytest.mark.parametrize(
    ("text", "query", "pieces"),
    [
        (
            "Make slide decks",
            "make slides",
            (("Make", True), (" ", False), ("slide", True), (" ", False), ("decks", True)),
        ),
        ("PDF: a pdf-reader", "pdf", (("PDF", True), (": a ", False), ("pdf", True), ("-reader", False))),
        ("kubernetes", "kube", (("kubernetes", True),)),
        ("kube kubernetes", "kube zebras", (("kube", True), (" kubernetes", False))),
        ("Résumé", "resume", (("Résumé", True),)),
        ("a Changelog", "change log", (("a ", False), ("Changelog", True))),
        ("Travel light", "honeymoon", (("Travel", True), (" light", False))),
        ("", "pdf", ()),
        ("nothing here", "pdf", (("nothing here", False),)),
        ("nothing here", "", (("nothing here", False),)),
    ],
)
def test_found_words_are_marked_and_the_text_is_whole(text, query, pieces):
    found = mark_words(text, query)
    assert found == pieces
    assert "".join(piece for piece, _ in found) == text
