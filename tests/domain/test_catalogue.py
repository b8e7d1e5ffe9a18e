"""Counts of the catalogue."""

from vskill_platform.domain.catalogue import Facets


def test_every_skill_has_one_category_so_their_sum_is_the_number_of_skills():
    assert Facets({"files": 3, "web": 4}, {"SCANNED": 2}, {}, {}, {}).total == 7
