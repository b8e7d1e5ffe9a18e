"""Every example of every rule, as a test: what must match does, what only looks like it does not.

A benign example is an honest skill, so no rule at all may fail it.
"""

from functools import cache

import pytest

from tests.support.compiled_rules import bundled_engine
from vskill_core.findings import ScanStatus, Verdict, counting, criticals
from vskill_scan.engine import Engine
from vskill_scan.examples import Case, cases, skill_of
from vskill_scan.rules.ruleset import bundled_rules

CASES = tuple(cases(bundled_rules()))


@cache
def engine() -> Engine:
    return bundled_engine()


def names(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", CASES, ids=names)
def test_example(case: Case):
    report = engine().scan(skill_of(case.example))
    assert (report.status, report.problem) == (ScanStatus.COMPLETE, "")
    found = [f"{one.file}:{one.line} {one.excerpt}" for one in report.findings if one.rule_id == case.rule.id]
    assert bool(found) is case.must_match, found


@pytest.mark.parametrize("case", [case for case in CASES if case.expected == "benign"], ids=names)
def test_a_benign_skill_is_flagged_by_no_rule(case: Case):
    """Flagged is: the verdict FAIL, or anything critical that counts."""
    report = engine().scan(skill_of(case.example))
    flagged = [one.rule_id for one in criticals(counting(report.findings))]
    assert flagged == []
    assert report.verdict is not Verdict.FAIL


def test_ids_are_unique_and_say_their_family():
    """A prefix belongs to one family for ever."""
    families: dict[str, set[str]] = {}
    for rule in bundled_rules().rules:
        families.setdefault(rule.id.partition("-")[0], set()).add(rule.category)
    assert bundled_rules().rules
    assert {"ST", "KB"}.isdisjoint(families), "these are the structural rules' own"
