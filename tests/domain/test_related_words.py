"""Words that lead to those by which a skill is described, and not back."""

from vskill_platform.domain.skills.related_words import ASKED, LINES, related_to
from vskill_platform.domain.skills.stems import form_of
from vskill_platform.domain.skills.synonyms import synonyms_of
from vskill_platform.domain.skills.terms import cut_terms

TEXTS = [line for line in LINES.split("\n") if line]
#: Each is looked for twice, so they bound what a word of a query costs.
MOST_RELATED = 8


def test_every_line_leads_from_words_to_others_as_search_cuts_them():
    for line in TEXTS:
        sides = [side.split() for side in line.split(" > ")]
        assert len(sides) == 2 and all(sides), line
        for words in sides:
            assert cut_terms(" ".join(words)) == tuple(words)
            assert len({form_of(word) for word in words}) == len(words), line


def test_lines_stand_in_the_order_of_the_alphabet():
    assert sorted(TEXTS) == TEXTS
    assert len(set(TEXTS)) == len(TEXTS)


def test_a_word_leads_to_others_in_any_form_and_they_do_not_lead_back():
    assert related_to("dollars") == ("≈currenc",)
    assert related_to("currency") == ("≈convert", "≈unit")
    assert related_to("pumpkin") == ()


def test_the_lines_of_a_word_are_joined_without_itself_and_its_synonyms():
    assert related_to("node") == (
        "≈javascript",
        "≈backend",
        "≈packag",
        "≈dependenc",
        "≈librar",
        "≈typescript",
    )
    assert not [word for word in ASKED if form_of(word) in related_to(word)]
    assert not [word for word in ASKED if set(synonyms_of(word)) & set(related_to(word))]


def test_no_word_leads_to_very_many():
    assert len(set(ASKED)) == len(ASKED) > 700
    assert max(len(related_to(word)) for word in ASKED) <= MOST_RELATED
