"""SARIF reports against the schema of the standard itself: whatever is found, and whatever went wrong."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from vskill_core.findings import (
    Coverage,
    Finding,
    FindingCategory,
    FindingKind,
    ScanStatus,
    Severity,
    StaticReport,
)
from vskill_core.form import FormNote, NoteCode
from vskill_scan.engine import Engine
from vskill_scan.examples import cases, skill_of
from vskill_scan.results.forecast import decide_alone, forecast
from vskill_scan.results.report import Scanned, as_sarif
from vskill_scan.rules.ruleset import bundled_rules

SCHEMA = Path(__file__).parent / "data" / "sarif-2.1.0.json"
RULESET = bundled_rules()


@cache
def validator() -> Any:
    return jsonschema_rs.validator_for(json.loads(SCHEMA.read_bytes()), validate_formats=True)


def problems(document: object) -> list[str]:
    return [f"{error.instance_path}: {error.message}" for error in validator().iter_errors(document)]


def scanned(*findings: Finding, status: ScanStatus = ScanStatus.COMPLETE, problem: str = "") -> Scanned:
    notes = tuple(FormNote(code, "name", "It is odd.", "Mend it.", 2) for code in NoteCode)
    report = StaticReport(RULESET.version, status, findings, Coverage(1, 1, 9, 9), problem, notes=notes)
    return Scanned("skills/a b", report, forecast(report, "a-b", decide_alone(report)))


def finding(severity: Severity, kind: FindingKind, line: int, column: int, file: str) -> Finding:
    return Finding(
        "DR-021",
        severity,
        FindingCategory.DOWNLOAD_AND_RUN,
        kind,
        file,
        line,
        column,
        "x | sh",
        "Why.",
        "Fix.",
    )


def test_every_kind_of_finding_and_every_status_is_valid():
    found = [
        finding(severity, kind, line, column, file)
        for severity in Severity
        for kind in FindingKind
        for line, column in ((0, 0), (3, 0), (3, 5))
        for file in ("", "a b/ü%.sh", "x.zip!in/a.md", "a\nb")
    ]
    results = [scanned(*found), *(scanned(status=one, problem="it broke") for one in ScanStatus)]
    assert problems(json.loads(as_sarif(results, RULESET))) == []
    assert problems(json.loads(as_sarif([], RULESET))) == []


def test_what_the_scanner_really_finds_is_valid():
    engine = Engine(RULESET)
    attacks = [case.example for case in cases(RULESET) if case.must_match][::5]
    results = [Scanned(f"s/{n}", engine.scan(skill_of(example))) for n, example in enumerate(attacks)]
    assert problems(json.loads(as_sarif(results, RULESET))) == []


@pytest.mark.parametrize(("field", "value"), [("level", "critical"), ("ruleIndex", -2), ("nonsense", 1)])
def test_the_schema_refuses_what_the_standard_refuses(field, value):
    document = json.loads(as_sarif([scanned(finding(Severity.HIGH, FindingKind.MALICE, 1, 1, "a"))], RULESET))
    document["runs"][0]["results"][0][field] = value
    assert problems(document)
