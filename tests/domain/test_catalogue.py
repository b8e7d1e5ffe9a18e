"""Counts of what was found, and what filters mean."""

from typing import Any

import pytest

from tests.domain.test_skill_changes import by, publication
from vskill_core.capability import Lack
from vskill_platform.domain.skills.catalogue import (
    OFFERED,
    Facets,
    Filter,
    count_rows,
    counted_values,
    facets_of,
)
from vskill_platform.domain.skills.listing import About
from vskill_platform.domain.skills.skill import StatusRole
from vskill_platform.domain.skills.skill_changes import publish_version, yank

#: category, certification, trust, agent, licence, without, provenance, min_installs, min_age, owner
ROWS = [
    (*(None,) * 9, "acme"),
    ("data", "SCANNED", "T2", "any", "MIT", "network,secrets", "unknown", "0", "0", "acme"),
    ("data", "VERIFIED", "T2", "claude", "MIT", "network", "verified", "10", "90", "acme"),
    ("web", "SCANNED", "T3", "any", "none", None, "unknown", "100", "18", "acme"),
    ("web", "SCANNED", "T2", "any", "MIT", "nothing", "unknown", "1", "0", "other"),
]


def facets(total: int, **counts: dict[str, int]) -> Facets:
    every: dict[str, Any] = {name: counts.get(name, {}) for name in Facets.__struct_fields__[1:-1]}
    return Facets(total=total, **every)


def test_what_cannot_be_installed_is_not_counted():
    assert count_rows(ROWS, Filter()) == facets(
        4,
        category={"data": 2, "web": 2},
        certification={"SCANNED": 3, "VERIFIED": 1},
        trust={"T2": 3, "T3": 1},
        agent={"any": 3, "claude": 1},
        licence={"MIT": 3, "none": 1},
        without={"network": 2, "secrets": 1},
        provenance={"verified": 1},
        min_installs={"1": 3, "10": 2, "50": 1, "100": 1},
        min_age={"18": 2, "54": 1, "90": 1},
    )
    assert count_rows([], Filter(), truncated=True).truncated


def test_a_row_with_a_value_too_many_is_refused():
    with pytest.raises(ValueError, match="longer"):
        count_rows([(*ROWS[1], "more")], Filter())


def test_counts_are_of_everything_unless_it_is_said_otherwise():
    nothing: dict[str, dict[str | None, int]] = {name: {} for name in Facets.__struct_fields__[1:-1]}
    assert facets_of(nothing, 0, Filter()) == facets(0)


def test_a_skill_is_counted_by_what_lists_show_of_it():
    about = About("data", "MIT", "claude")
    skill, _ = publish_version(None, publication(about=about, without="network,files"))
    values = ("data", "SCANNED", "T1", "claude", "MIT", "network,files", "unknown", "0", "0", "Acme")
    assert counted_values(skill) == values
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


def test_what_was_not_read_whole_is_without_nothing():
    for lack in Lack:
        assert {None, "nothing"}.isdisjoint(Filter(without=lack).values()["without"])
    assert count_rows(ROWS, Filter(without="network")).total == 2


def test_several_lacks_are_all_lacked_in_whatever_order_they_are_asked_for():
    both = Filter(without="secrets,network")
    assert both.values() == Filter(without="network,secrets").values()
    found = count_rows(ROWS, both)
    assert (found.total, found.category) == (1, {"data": 1})
    # A choice is counted with those before it.
    assert count_rows(ROWS, Filter(without="network")).without == {"network": 2, "secrets": 1}
    assert found.without == {"network": 1, "secrets": 1}
    everything = ",".join(Lack)
    assert Filter(without=everything).values() == {"without": (everything,)}


@pytest.mark.parametrize("name", ["min_installs", "min_age"])
def test_a_step_is_reached_by_what_has_reached_a_higher_one(name):
    *_, last = OFFERED[name]
    assert Filter(**{name: last}).values() == {name: (last,)}
    assert Filter(**{name: OFFERED[name][0]}).values() == {name: OFFERED[name]}
