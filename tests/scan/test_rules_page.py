"""`docs/reference/rules.md` says what the rules say."""

from pathlib import Path

from tools import rules_page
from vskill_platform.scan.ruleset import bundled_rules
from vskill_platform.scan.structure import RULES

PAGE = Path(__file__).parents[2] / rules_page.PATH


def test_the_page_is_current():
    assert PAGE.read_text("utf-8") == rules_page.render(), f"run: {rules_page.COMMAND}"


def test_every_rule_is_on_the_page():
    text = rules_page.render()
    assert all(f"### {rule.id}: {rule.title}" in text for rule in bundled_rules().rules)
    assert all(f"| {rule.id} |" in text for rule in RULES)


def test_an_old_page_is_a_problem():
    assert list(rules_page.check(rules_page.PATH, "old"))
    assert not list(rules_page.check(rules_page.PATH, rules_page.render()))
    assert not list(rules_page.check("docs/other.md", "old"))


def test_no_secret_stands_on_the_page_whole():
    whole = [f"gh{letter}_" for letter in "pousr"]
    words = rules_page.render().split()
    assert not [word for word in words if any(one in word for one in whole) and len(word) > 30]
