"""The policies of the how-to do what the page says of them."""

import re

import msgspec
import pytest

from tools.files import ROOT
from vskill_core.publisher import Publisher
from vskill_platform.domain.signals import RuleEffect
from vskill_platform.domain.verdicts.facts import (
    CapabilityFacts,
    CardFacts,
    Facts,
    JudgeFacts,
    OwnerFacts,
    SkillFacts,
)
from vskill_platform.domain.verdicts.policy import load_policy, match_rules

_PAGE = (ROOT / "docs/how-to/decide-what-needs-a-person.md").read_text("utf-8")
POLICIES = dict(re.findall(r"^## (.+?)$(?:(?!^## ).)*?^```yaml\n(.*?)^```", _PAGE, re.MULTILINE | re.DOTALL))

HOST = CardFacts(hosts=(CapabilityFacts(value="pkg.corp.example", acts=True, known=True),))
ELSEWHERE = CardFacts(hosts=(CapabilityFacts(value="api.example.org", acts=True, known=True),))
COMMAND = CardFacts(commands=(CapabilityFacts(value="git", acts=True),))
VOUCHED = OwnerFacts(name="ann", vouched=True, proven=True)
STRANGER = OwnerFacts(name="mia")
PROSE = SkillFacts(name="notes", licence="MIT", first=True)
FINANCE = OwnerFacts(name="upload~finance", vouched=True, managed=True)

COMPANY, MARKET = "A company with reviewers", "A public marketplace with a judge"
STRANGERS, PROVEN = "Time for strangers", "Only from owners who have shown who they are"
LICENCES, DEPARTMENT = "Licences", "One department stricter"
FROM_CI = "Only from your own CI"
ACME = OwnerFacts(name="acme", vouched=True, managed=True)
TAGGED = Publisher(
    repository="github.com/acme/skills", workflow=".github/workflows/publish.yml", ref="refs/tags/v1.2.0"
)

#: The page's heading, a skill, and the rules that match it with what they do.
CASES = [
    (COMPANY, Facts(skill=PROSE, owner=STRANGER), {"stranger-first": RuleEffect.WAIT}),
    (COMPANY, Facts(skill=PROSE, owner=VOUCHED), {}),
    (
        COMPANY,
        Facts(owner=VOUCHED, card=COMMAND, judge=JudgeFacts(answered=1, verdict="PASS", score=95)),
        {"acts-unread-by-anybody": RuleEffect.REVIEW},
    ),
    (COMPANY, Facts(owner=OwnerFacts(name="acme", trusted=True), card=COMMAND), {}),
    (MARKET, Facts(owner=STRANGER, judge=JudgeFacts(answered=1, verdict="PASS", score=90)), {}),
    (
        MARKET,
        Facts(owner=STRANGER, judge=JudgeFacts(answered=1, verdict="CONCERNS", score=60)),
        {"judge-is-not-sure": RuleEffect.REVIEW},
    ),
    (MARKET, Facts(owner=VOUCHED, judge=JudgeFacts(answered=1, verdict="CONCERNS", score=60)), {}),
    (STRANGERS, Facts(skill=PROSE, owner=STRANGER), {"new-owner": RuleEffect.WAIT}),
    (STRANGERS, Facts(skill=PROSE, owner=VOUCHED), {}),
    (STRANGERS, Facts(skill=SkillFacts(name="notes"), owner=STRANGER), {}),
    (PROVEN, Facts(skill=SkillFacts(name="notes"), owner=STRANGER), {"unproven": RuleEffect.REFUSE}),
    (PROVEN, Facts(skill=SkillFacts(name="notes"), owner=VOUCHED), {}),
    (LICENCES, Facts(skill=PROSE, owner=STRANGER), {}),
    (LICENCES, Facts(skill=SkillFacts(name="notes"), owner=VOUCHED), {"no-licence": RuleEffect.REFUSE}),
    (
        LICENCES,
        Facts(skill=SkillFacts(name="notes", licence="SSPL-1.0"), owner=VOUCHED),
        {"unknown-licence": RuleEffect.REVIEW},
    ),
    (FROM_CI, Facts(owner=ACME, publisher=TAGGED), {}),
    (FROM_CI, Facts(owner=ACME, submitter="ann"), {"only-from-ci": RuleEffect.REFUSE}),
    (
        FROM_CI,
        Facts(owner=ACME, publisher=msgspec.structs.replace(TAGGED, ref="refs/heads/main")),
        {"only-from-ci": RuleEffect.REFUSE},
    ),
    (FROM_CI, Facts(owner=VOUCHED), {}),
    (DEPARTMENT, Facts(owner=FINANCE, card=HOST), {}),
    (DEPARTMENT, Facts(owner=FINANCE, card=ELSEWHERE), {"finance-stays-inside": RuleEffect.REFUSE}),
    (DEPARTMENT, Facts(owner=VOUCHED, card=ELSEWHERE), {}),
]


@pytest.mark.parametrize(("heading", "facts", "expected"), CASES)
def test_a_policy_of_the_page_does_what_the_page_says(heading, facts, expected):
    matched = match_rules(load_policy(POLICIES[heading]), facts)
    assert {rule.name: rule.then for rule in matched} == expected
    assert not any(rule.failed for rule in matched)


def test_every_policy_of_the_page_is_tried():
    assert set(POLICIES) == {heading for heading, _, _ in CASES}
