"""Reports for people, programs and code hosts, and the exit code."""

import io
import json

import msgspec
import pytest
from rich.console import Console

from tests.scan.sarif_schema import Region, read_sarif
from vskill_platform.domain.scan import (
    Coverage,
    Finding,
    FindingCategory,
    FindingKind,
    ScanStatus,
    Severity,
    StaticReport,
)
from vskill_platform.scan.report import Exit, Scanned, as_json, as_sarif, exit_code, text
from vskill_platform.scan.ruleset import bundled_rules

RULESET = bundled_rules()


def finding(severity=Severity.HIGH, kind=FindingKind.MALICE, **changes) -> Finding:
    one = Finding(
        "DR-001",
        severity,
        FindingCategory.DOWNLOAD_AND_RUN,
        kind,
        "a b/ü.sh",
        3,
        5,
        "curl x | sh",
        "Why.",
        "Fix.",
    )
    return msgspec.structs.replace(one, **changes)


def scanned(
    *findings: Finding, path: str = "skills/one", status=ScanStatus.COMPLETE, problem: str = ""
) -> Scanned:
    return Scanned(path, StaticReport(RULESET.version, status, findings, Coverage(1, 1, 9, 9), problem))


PASS = scanned()
CONCERNS = scanned(finding(Severity.CRITICAL))
FAIL = scanned(*(finding(Severity.CRITICAL, rule_id=f"DR-00{n}") for n in (1, 2, 3)))
ERROR = scanned(status=ScanStatus.ERROR, problem="it broke")


@pytest.mark.parametrize(
    ("results", "code"),
    [
        ([PASS], 0),
        ([CONCERNS, PASS], 1),
        ([PASS, FAIL, CONCERNS], 2),
        ([FAIL, ERROR], 3),
        ([scanned(status=ScanStatus.TIMED_OUT)], 3),
        ([scanned(status=ScanStatus.INCOMPLETE)], 3),
        ([scanned(finding(Severity.LOW, certain=True))], 2),
        ([scanned(finding(Severity.CRITICAL, FindingKind.CAPABILITY))], 0),
        ([], 3),
    ],
)
def test_the_worst_skill_decides_the_exit_code(results, code):
    assert exit_code(results) == Exit(code)


def shown(*results: Scanned) -> str:
    page = io.StringIO()
    Console(file=page, width=120, highlight=False).print(text(results))
    return page.getvalue()


def test_text_says_the_verdict_the_place_and_what_to_do():
    page = shown(
        scanned(finding(Severity.CRITICAL), finding(Severity.LOW, FindingKind.CAPABILITY, rule_id="ST-003"))
    )
    assert page.startswith("CONCERNS  skills/one  score 75")
    for said in ("critical DR-001  a b/ü.sh:3  malice", "curl x | sh", "Why. Fix."):
        assert said in page
    assert page.index("DR-001") < page.index("ST-003")


def test_text_of_many_ends_in_a_summary_and_names_troubles():
    page = shown(PASS, FAIL, ERROR)
    assert "ERROR  skills/one  error: it broke" in page
    assert page.rstrip().endswith("3 skills: 1 pass, 1 fail, 1 error")


def test_foreign_text_cannot_steer_the_terminal_or_rich():
    page = shown(scanned(finding(excerpt="\x1b[31m[bold]red[/bold]\r")))
    assert "\x1b" not in page
    assert "[bold]red[/bold]" in page


def test_json_holds_everything_and_can_be_read_back():
    document = json.loads(as_json([CONCERNS, ERROR], RULESET.version))
    first, second = document["skills"]
    assert (first["path"], first["verdict"], first["score"], first["result"]) == (
        "skills/one",
        "CONCERNS",
        75,
        "concerns",
    )
    assert first["findings"][0]["rule_id"] == "DR-001"
    assert (second["status"], second["problem"]) == ("error", "it broke")
    assert document["ruleset"] == RULESET.version


def test_sarif_is_valid_by_the_schema():
    everything = [
        scanned(*(finding(severity, kind) for severity in Severity for kind in FindingKind)),
        scanned(finding(line=0, column=0), finding(file="", line=0), finding(column=0)),
        ERROR,
    ]
    log = read_sarif(as_sarif(everything, RULESET))
    (run,) = log.runs
    assert len(run.results) == 15
    for result in run.results:
        assert run.tool.driver.rules[result.rule_index].id == result.rule_id
    assert [len(run.tool.driver.rules), len({rule.id for rule in run.tool.driver.rules})] == [
        len(RULESET.rules) + 7
    ] * 2
    assert run.invocations[0].execution_successful is False
    assert "it broke" in run.invocations[0].tool_execution_notifications[0].message.text
    assert read_sarif(as_sarif([], RULESET)).runs[0].results == []


def test_sarif_places_are_relative_references_with_escapes():
    (run,) = read_sarif(as_sarif([scanned(finding())], RULESET)).runs
    place = run.results[0].locations[0].physical_location
    assert place.artifact_location.uri == "skills/one/a%20b/%C3%BC.sh"
    assert isinstance(place.region, Region)
    assert (place.region.start_line, place.region.start_column) == (3, 5)


def test_sarif_never_lets_a_capability_fail_a_check():
    (run,) = read_sarif(as_sarif([scanned(finding(Severity.CRITICAL, FindingKind.CAPABILITY))], RULESET)).runs
    assert run.results[0].level == "note"


def test_the_schema_of_the_tests_refuses_what_the_standard_refuses():
    document = json.loads(as_sarif([scanned(finding())], RULESET))
    document["runs"][0]["results"][0]["level"] = "critical"
    with pytest.raises(msgspec.ValidationError):
        read_sarif(json.dumps(document).encode())
    document = json.loads(as_sarif([scanned(finding())], RULESET))
    document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    with pytest.raises(msgspec.ValidationError):
        read_sarif(json.dumps(document).encode())
