"""Counts of what a search found."""

import pytest

from tests.domain.test_skill_changes import by, publication
from vskill_platform.domain.skills.catalogue import Facets, Filter, count_rows, counted_values, facets_of
from vskill_platform.domain.skills.listing import About
from vskill_platform.domain.skills.skill import StatusRole
from vskill_platform.domain.skills.skill_changes import publish_version, yank

#: category, certification, trust, agent, licence, owner
ROWS = [
    (None, None, None, None, None, "acme"),
    ("data", "SCANNED", "T2", "any", "MIT", "acme"),
    ("data", "VERIFIED", "T2", "claude", "MIT", "acme"),
    ("web", "SCANNED", "T3", "any", "none", "acme"),
    ("web", "SCANNED", "T2", "any", "MIT", "other"),
]


def test_what_cannot_be_installed_is_not_counted():
    assert count_rows(ROWS, Filter()) == Facets(
        4,
        {"data": 2, "web": 2},
        {"SCANNED": 3, "VERIFIED": 1},
        {"T2": 3, "T3": 1},
        {"any": 3, "claude": 1},
        {"MIT": 3, "none": 1},
    )
    assert count_rows([], Filter(), truncated=True) == Facets(0, {}, {}, {}, {}, {}, truncated=True)


def test_a_row_with_a_value_too_many_is_refused():
    with pytest.raises(ValueError, match="longer"):
        count_rows([(*ROWS[1], "more")], Filter())


def test_counts_are_of_everything_unless_it_is_said_otherwise():
    assert facets_of([{}, {}, {}, {}, {}], 0) == Facets(0, {}, {}, {}, {}, {}, truncated=False)


def test_a_skill_is_counted_by_what_lists_show_of_it():
    skill, _ = publish_version(None, publication(about=About("data", "MIT", "claude")))
    assert counted_values(skill) == ("data", "SCANNED", "T1", "claude", "MIT", "Acme")
    withdrawn = counted_values(yank(skill, by(StatusRole.OWNER)))
    assert count_rows([withdrawn], Filter()).total == 0


def test_a_facet_counts_what_the_other_filters_leave():
    found = count_rows(ROWS, Filter(category="web", owner="acme"), truncated=True)
    assert (found.total, found.truncated) == (1, True)
    assert found.category == {"data": 2, "web": 1}
    assert (found.trust, found.licence) == ({"T3": 1}, {"none": 1})
    both = count_rows(ROWS, Filter(category="web", trust="T2"))
    assert (both.total, both.category, both.trust) == (1, {"data": 2, "web": 1}, {"T2": 1, "T3": 1})
    assert both.agent == {"any": 1}
