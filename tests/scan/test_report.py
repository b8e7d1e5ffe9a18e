"""Reports for people, programs and code hosts, and the exit code."""

import io
import itertools
import json

import msgspec
import pytest
from rich.console import Console

from tests.scan.sarif_schema import Region, read_sarif
from vskill_core.capability import CapabilityContext, CapabilityKind, SkillCapability
from vskill_core.errors import InvalidManifest
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
from vskill_platform.cli.submissions.scan import decide_unjudged
from vskill_scan.results.forecast import Forecast, Outcome, decide_alone, forecast, refused
from vskill_scan.results.report import Exit, Scanned, as_json, as_sarif, exit_code, text
from vskill_scan.rules.ruleset import bundled_rules
from vskill_scan.rules.structure import RULES

RULESET = bundled_rules()


def finding(severity=Severity.HIGH, kind=FindingKind.MALICE, **changes) -> Finding:
    one = Finding(
        "DR-021",
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


NOTE = FormNote(NoteCode.NAME_INVALID, "name", "The name is odd.", "Write another.", 2)


def scanned(
    *findings: Finding,
    path: str = "skills/one",
    status=ScanStatus.COMPLETE,
    problem: str = "",
    notes: tuple[FormNote, ...] = (),
    told: Forecast | None = None,
) -> Scanned:
    report = StaticReport(RULESET.version, status, findings, Coverage(1, 1, 9, 9), problem, notes=notes)
    return Scanned(path, report, told or forecast(report, "one", decide_unjudged(report)))


PUBLISH = scanned()
REVIEW = scanned(finding(Severity.CRITICAL))
FAIL = scanned(*(finding(Severity.CRITICAL, rule_id=rule_id) for rule_id in ("DR-021", "EX-030", "EX-033")))
BLOCK = scanned(finding(Severity.LOW, certain=True))
REFUSE = scanned(told=refused(InvalidManifest("SKILL.md line 3: it is bad; mend it.", line=3, fix="mend it")))
ERROR = scanned(status=ScanStatus.ERROR, problem="it broke", told=Forecast(None, ("it broke",)))


@pytest.mark.parametrize(
    ("results", "code"),
    [
        ([PUBLISH], 0),
        ([REVIEW, PUBLISH], 1),
        ([PUBLISH, FAIL, REVIEW], 2),
        ([BLOCK], 2),
        ([REFUSE], 2),
        ([FAIL, ERROR], 3),
        ([scanned(status=ScanStatus.TIMED_OUT)], 3),
        ([scanned(status=ScanStatus.INCOMPLETE)], 3),
        ([scanned(finding(Severity.CRITICAL, FindingKind.CAPABILITY))], 0),
        ([], 3),
    ],
)
def test_the_worst_outcome_decides_the_exit_code(results, code):
    assert exit_code(results) == Exit(code)


@pytest.mark.parametrize(
    ("one", "result", "outcome"),
    [
        (PUBLISH, "pass", "publish"),
        (REVIEW, "pass", "review"),
        (FAIL, "fail", "fail"),
        (BLOCK, "fail", "block"),
        (REFUSE, "fail", "refuse"),
        (ERROR, "error", None),
        (scanned(status=ScanStatus.INCOMPLETE), "error", "review"),
    ],
)
def test_json_has_the_result_of_the_scan_and_the_outcome_with_its_reasons(one, result, outcome):
    (skill,) = json.loads(as_json([one], RULESET.version))["skills"]
    assert (skill["outcome"], skill["reasons"]) == (outcome, list(one.forecast.reasons))
    assert skill["result"] == result or (one is REVIEW and skill["result"] == "concerns")
    assert skill["reasons"]
    if result == "error":
        assert (skill["score"], skill["verdict"]) == (None, None)


#: Each may be in a report or not; of the mismatches three rules, so that together with others they fail a skill.
SOME = (
    (finding(Severity.LOW, certain=True, rule_id="A"),),
    (finding(Severity.CRITICAL, FindingKind.CAPABILITY, rule_id="B"),),
    tuple(finding(Severity.HIGH, FindingKind.MISMATCH, rule_id=rule_id) for rule_id in "CDE"),
    (finding(Severity.CRITICAL, FindingKind.MISMATCH, rule_id="F"),),
    (finding(Severity.MEDIUM, rule_id="G"),),
    (finding(Severity.HIGH, rule_id="H"),),
    (finding(Severity.CRITICAL, rule_id="I"),),
)


def test_the_text_names_what_was_not_read():
    said = "Go: read by patterns, the data flow is not followed"
    entry = SkillCapability(CapabilityKind.UNREAD, said, "a.go", context=CapabilityContext.PATTERNS)
    report = msgspec.structs.replace(PUBLISH.report, capabilities=(entry,))
    shown = io.StringIO()
    Console(file=shown, width=120).print(text([msgspec.structs.replace(PUBLISH, report=report)]))
    assert f"Not read, or not all of it\n    a.go\n        {said}\n" in shown.getvalue()


@pytest.mark.parametrize("status", ScanStatus)
def test_the_scanner_alone_decides_as_a_registry_that_has_no_judge(status):
    seen = set()
    for chosen in itertools.product((False, True), repeat=len(SOME)):
        findings = tuple(itertools.chain(*itertools.compress(SOME, chosen)))
        report = StaticReport("r", status, findings)
        alone, registry = decide_alone(report), decide_unjudged(report)
        assert (alone.outcome, alone.rule_ids) == (registry.outcome, registry.rule_ids)
        seen.add(alone.outcome)
    assert seen >= {Outcome.BLOCK, Outcome.REVIEW}
    assert status is not ScanStatus.COMPLETE or seen == set(Outcome) - {Outcome.REFUSE}


def shown(*results: Scanned) -> str:
    page = io.StringIO()
    Console(file=page, width=120, highlight=False).print(text(results))
    return page.getvalue()


def test_text_says_the_outcome_first_then_why_and_what_to_change_with_its_place():
    page = shown(
        scanned(
            finding(Severity.CRITICAL),
            finding(Severity.LOW, FindingKind.CAPABILITY, rule_id="ST-003"),
            notes=(NOTE,),
        )
    )
    said = ["REVIEW  skills/one", "A reviewer would decide about it: ", "What to change"]
    said += ["a b/ü.sh:3  DR-021  critical malice", "curl x | sh", "Why.", "Fix: Fix."]
    said += ["Notes on form", "SKILL.md:2  name-invalid", "Write another.", "What it can do", "ST-003"]
    places = [page.index(one) for one in said]
    assert places == sorted(places) and places[0] == 0
    assert "No judge was asked" in page


def test_what_is_refused_is_told_with_its_line_and_fix():
    page = shown(REFUSE)
    assert page.startswith("REFUSE  skills/one")
    assert "SKILL.md:3  invalid_manifest" in page and "Fix: mend it." in page


def test_text_of_many_ends_in_a_summary_and_names_troubles():
    page = shown(PUBLISH, FAIL, ERROR)
    assert "ERROR   skills/one\n        It could not be read: it broke." in page
    assert "3 skills: 1 publish, 1 fail, 1 error; 1 not scanned to the end" in page


def test_no_score_is_shown_where_the_scan_did_not_end():
    page = shown(scanned(finding(), status=ScanStatus.TIMED_OUT, problem="too slow"))
    assert "score" not in page and "not scanned to the end" in page


def test_foreign_text_cannot_steer_the_terminal_or_rich():
    page = shown(scanned(finding(excerpt="\x1b[31m[bold]red[/bold]\r")))
    assert "\x1b" not in page
    assert "[bold]red[/bold]" in page


def test_json_holds_everything_and_can_be_read_back():
    noted = scanned(finding(Severity.CRITICAL), notes=(NOTE,))
    document = json.loads(as_json([noted, ERROR], RULESET.version))
    first, second = document["skills"]
    assert (first["path"], first["score"], first["name"]) == ("skills/one", 75, "one")
    assert first["findings"][0]["rule_id"] == "DR-021"
    (change,) = first["changes"]
    assert (change["code"], change["file"], change["line"], change["fix"]) == (
        "DR-021",
        "a b/ü.sh",
        3,
        "Fix.",
    )
    assert first["notes"] == [
        {"code": "name-invalid", "field": "name", "sentence": NOTE.sentence, "fix": NOTE.fix, "line": 2}
    ]
    assert (second["status"], second["problem"]) == ("error", "it broke")
    assert document["ruleset"] == RULESET.version


def test_sarif_is_valid_by_the_schema():
    everything = [
        scanned(*(finding(severity, kind) for severity in Severity for kind in FindingKind)),
        scanned(finding(line=0, column=0), finding(file="", line=0), finding(column=0), notes=(NOTE,)),
        ERROR,
    ]
    log = read_sarif(as_sarif(everything, RULESET))
    (run,) = log.runs
    assert len(run.results) == 16
    for result in run.results:
        assert run.tool.driver.rules[result.rule_index].id == result.rule_id
    assert [len(run.tool.driver.rules), len({rule.id for rule in run.tool.driver.rules})] == [
        len(RULESET.rules) + len(RULES) + len(NoteCode)
    ] * 2
    assert [one["outcome"] for one in run.properties["outcomes"]] == ["review", "review", None]
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
