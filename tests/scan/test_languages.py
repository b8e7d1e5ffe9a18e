"""The worst instructions in ten languages, each beside an honest sentence about the same things."""

from pathlib import Path

import pytest
import yaml

from tests.support.compiled_rules import bundled_engine
from vskill_core.findings import FindingKind
from vskill_scan.examples import skill_of

TEXTS = yaml.safe_load((Path(__file__).parent / "data" / "languages.yaml").read_text())
CASES = [
    (language, kind, text) for language, texts in TEXTS.items() for kind in texts for text in texts[kind]
]


@pytest.fixture(scope="module")
def engine():
    return bundled_engine()


def test_there_are_ten_languages_with_five_of_each():
    assert len(TEXTS) == 10
    assert all(len(texts["attacks"]) == len(texts["honest"]) == 5 for texts in TEXTS.values())


@pytest.mark.parametrize(("language", "kind", "text"), CASES)
def test_an_attack_is_found_and_an_honest_sentence_is_not(engine, language, kind, text):
    findings = engine.scan(skill_of(f"# Skill\n\n{text}\n")).findings
    found = {one.rule_id for one in findings if one.kind is FindingKind.MALICE}
    assert bool(found) is (kind == "attacks"), found
