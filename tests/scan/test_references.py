"""Rules refer only to entries that exist in the lists they name."""

import pytest

from vskill_scan.rules.ruleset import TextRule, bundled_rules

#: OWASP Agentic Skills Top 10, AST01 (malicious skills) to AST10 (reuse across platforms).
AGENTIC_SKILLS = {f"OWASP-AST{number:02}" for number in range(1, 11)}
#: Techniques of MITRE ATLAS that fit what a skill can do.
ATLAS = {
    "ATLAS-AML.T0010": "AI Supply Chain Compromise",
    "ATLAS-AML.T0011": "User Execution",
    "ATLAS-AML.T0051": "LLM Prompt Injection",
    "ATLAS-AML.T0054": "LLM Jailbreak",
    "ATLAS-AML.T0061": "LLM Prompt Self-Replication",
    "ATLAS-AML.T0068": "LLM Prompt Obfuscation",
    "ATLAS-AML.T0077": "LLM Response Rendering",
    "ATLAS-AML.T0080": "AI Agent Context Poisoning",
    "ATLAS-AML.T0081": "Modify AI Agent Configuration",
    "ATLAS-AML.T0086": "Exfiltration via AI Agent Tool Invocation",
}
KNOWN = AGENTIC_SKILLS | set(ATLAS) | {"CWE-798"}


@pytest.mark.parametrize("rule", bundled_rules().rules, ids=lambda rule: rule.id)
def test_references_exist(rule: TextRule):
    assert rule.references
    assert set(rule.references) <= KNOWN
