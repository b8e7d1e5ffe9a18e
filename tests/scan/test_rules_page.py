"""Every rule of the scanner is in the reference, and no secret is."""

from tools import rules_page
from vskill_scan.rules.ruleset import bundled_rules
from vskill_scan.rules.structure import RULES


def test_every_rule_is_on_the_page():
    text = rules_page.render()
    assert all(f"### {rule.id}: {rule.title}" in text for rule in bundled_rules().rules)
    assert all(f"| {rule.id} |" in text for rule in RULES)


def test_no_secret_stands_on_the_page_whole():
    whole = [f"gh{letter}_" for letter in "pousr"]
    words = rules_page.render().split()
    assert not [word for word in words if any(one in word for one in whole) and len(word) > 30]
