"""The groups of synonyms are kept in order: each word stands once, as search cuts it, and leads to the others."""

from vskill_platform.domain.stems import stem
from vskill_platform.domain.synonyms import GROUPS, synonyms_of
from vskill_platform.domain.terms import cut_terms

LINES = [line for line in GROUPS.split("\n") if line]


def test_every_group_has_words_as_search_cuts_them_with_different_stems():
    for line in LINES:
        words = line.split()
        assert len(words) >= 2, line
        assert cut_terms(line) == tuple(words)
        assert len({stem(word) for word in words}) == len(words), line


def test_no_word_is_in_two_groups():
    stems = [stem(word) for line in LINES for word in line.split()]
    assert sorted(set(stems)) == sorted(stems)


def test_groups_stand_in_the_order_of_the_alphabet():
    assert sorted(LINES) == LINES


def test_a_word_leads_to_the_stems_of_the_others_in_any_form():
    assert synonyms_of("excel") == ("spreadsheet", "xlsx", "xls")
    assert synonyms_of("spreadsheets") == ("excel", "xlsx", "xls")
    assert synonyms_of("slides") == tuple(
        map(stem, ("pptx", "powerpoint", "presentation", "deck", "keynote"))
    )
    assert synonyms_of("pumpkin") == ()
