"""The groups of synonyms are kept in order: words as search cuts them, which lead to the others of all their groups."""

from vskill_platform.domain.skills.stems import form_of
from vskill_platform.domain.skills.synonyms import GROUPED, GROUPS, _others, synonyms_of
from vskill_platform.domain.skills.terms import cut_terms

LINES = [line for line in GROUPS.split("\n") if line]
#: Each is looked for twice, so they bound what a word of a query costs.
MOST_SYNONYMS = 12


def test_every_group_has_words_as_search_cuts_them_with_different_forms():
    for line in LINES:
        words = line.split()
        assert len(words) >= 2, line
        assert cut_terms(line) == tuple(words)
        assert len({form_of(word) for word in words}) == len(words), line


def test_no_group_is_part_of_another():
    groups = [frozenset(map(form_of, line.split())) for line in LINES]
    assert not [(one, other) for one in groups for other in groups if one < other]
    assert len(set(groups)) == len(groups)


def test_groups_stand_in_the_order_of_the_alphabet():
    assert sorted(LINES) == LINES


def test_a_word_leads_to_the_forms_of_the_others_in_any_form():
    assert synonyms_of("podman") == ("≈contain", "≈dock")
    assert synonyms_of("invoices") == ("≈bill", "≈receipt")
    assert synonyms_of("pumpkin") == ()


def test_a_word_of_several_groups_leads_to_the_others_of_all():
    assert synonyms_of("roadmaps") == ("≈gantt", "≈timelin", "≈plan")
    assert synonyms_of("spec") == ("prd", "≈requir", "≈specific")
    assert synonyms_of("quiz") == ("≈exam", "≈trivia", "≈test")
    assert synonyms_of("test") == ("≈quiz", "≈exam", "≈trivia", "qa")


def test_every_word_has_some_synonyms_and_none_very_many():
    assert len(set(GROUPED)) == len(GROUPED) > 800
    assert all(1 <= len(synonyms_of(word)) <= MOST_SYNONYMS for word in GROUPED)
    assert not [word for word in GROUPED if form_of(word) in synonyms_of(word)]


def test_no_word_is_its_own_synonym():
    found = _others()
    assert found and all(form not in others for form, others in found.items())
