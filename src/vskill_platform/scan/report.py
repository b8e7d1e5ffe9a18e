"""A scan's result for people, for programs and for code hosts: text, JSON and SARIF 2.1.0, and the exit code of the
command. One `Scanned` per skill; a run over many is one document.
"""

import enum
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from vskill_platform import __version__
from vskill_platform.domain.scan import Finding, FindingKind, ScanStatus, Severity, StaticReport, Verdict
from vskill_platform.scan import structure
from vskill_platform.scan.ruleset import Ruleset

TOOL = "vskill-platform"
SARIF_VERSION = "2.1.0"
SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


class Exit(enum.IntEnum):
    """How the command ends; of many skills the worst counts."""

    PASS = 0
    CONCERNS = 1
    FAIL = 2
    ERROR = 3


class Scanned(msgspec.Struct, frozen=True):
    """One skill, by where it was found, and what the scan said."""

    path: str
    report: StaticReport

    @property
    def exit(self) -> Exit:
        if self.report.status is not ScanStatus.COMPLETE:
            return Exit.ERROR
        if any(finding.certain for finding in self.report.findings):
            return Exit.FAIL
        return _EXITS[self.report.verdict]


_EXITS = {Verdict.PASS: Exit.PASS, Verdict.CONCERNS: Exit.CONCERNS, Verdict.FAIL: Exit.FAIL}


def exit_code(scanned: Iterable[Scanned]) -> Exit:
    return max((one.exit for one in scanned), default=Exit.ERROR)


# For people.

_STYLES = {
    Exit.PASS: "bold green",
    Exit.CONCERNS: "bold yellow",
    Exit.FAIL: "bold red",
    Exit.ERROR: "bold magenta",
}
_SEVERITY_STYLES = {
    Severity.LOW: "dim",
    Severity.MEDIUM: "yellow",
    Severity.HIGH: "red",
    Severity.CRITICAL: "bold red",
}


def text(scanned: Sequence[Scanned]) -> RenderableType:
    parts: list[RenderableType] = []
    for one in scanned:
        parts.append(_headline(one))
        parts.extend(_finding_text(finding) for finding in by_weight(one.report.findings))
    if len(scanned) > 1:
        parts.append(_summary(scanned))
    return Group(*parts)


def by_weight(findings: Iterable[Finding]) -> list[Finding]:
    """What counts before what informs, the worst first."""
    return sorted(
        findings, key=lambda one: (one.kind is FindingKind.CAPABILITY, -one.severity.rank, one.file, one.line)
    )


def _headline(one: Scanned) -> Text:
    report = one.report
    line = Text()
    line.append(one.exit.name if one.exit is Exit.ERROR else report.verdict.value, style=_STYLES[one.exit])
    line.append(f"  {printable(one.path)}")
    if report.status is ScanStatus.COMPLETE:
        line.append(f"  score {report.score}")
    if report.problem:
        line.append(f"  {report.status.value}: {printable(report.problem)}", style="magenta")
    return line


def _finding_text(finding: Finding) -> Text:
    line = Text("  ")
    line.append(f"{finding.severity.value:<8} ", style=_SEVERITY_STYLES[finding.severity])
    place = f"{finding.file}:{finding.line}" if finding.line else finding.file
    line.append(f"{finding.rule_id}  {printable(place)}  ")
    line.append(f"{finding.kind.value}\n", style="dim")
    if finding.excerpt:
        line.append(f"           {printable(finding.excerpt)}\n", style="cyan")
    line.append(f"           {printable(finding.why)} {printable(finding.remedy)}", style="dim")
    return line


def _summary(scanned: Sequence[Scanned]) -> Text:
    counts = {result: sum(one.exit is result for one in scanned) for result in Exit}
    said = ", ".join(f"{count} {result.name.lower()}" for result, count in counts.items() if count)
    return Text(f"{len(scanned)} skills: {said}", style="bold")


def printable(foreign: str) -> str:
    """Foreign text must not steer the terminal."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in foreign)


# For programs.


def as_json(scanned: Sequence[Scanned], ruleset: str) -> bytes:
    skills = [
        {"path": one.path, "result": one.exit.name.lower(), **_report_json(one.report)} for one in scanned
    ]
    document = {"tool": TOOL, "version": __version__, "ruleset": ruleset, "skills": skills}
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def _report_json(report: StaticReport) -> dict[str, Any]:
    return {"verdict": report.verdict, "score": report.score, **msgspec.to_builtins(report)}


# For code hosts.

_LEVELS = {
    Severity.LOW: "note",
    Severity.MEDIUM: "warning",
    Severity.HIGH: "error",
    Severity.CRITICAL: "error",
}
_RANKS = {Severity.LOW: "3.0", Severity.MEDIUM: "5.5", Severity.HIGH: "8.0", Severity.CRITICAL: "9.5"}


def as_sarif(scanned: Sequence[Scanned], ruleset: Ruleset) -> bytes:
    rules = list(_descriptors(ruleset))
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    run = {
        "tool": {
            "driver": {"name": TOOL, "version": __version__, "semanticVersion": __version__, "rules": rules}
        },
        "automationDetails": {"id": f"{TOOL}/{ruleset.version}"},
        "invocations": [_invocation(scanned)],
        "columnKind": "unicodeCodePoints",
        "results": [_result(one.path, finding, index) for one in scanned for finding in one.report.findings],
        "properties": {"ruleset": ruleset.version},
    }
    document = {"$schema": SARIF_SCHEMA, "version": SARIF_VERSION, "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def _descriptors(ruleset: Ruleset) -> Iterator[dict[str, Any]]:
    for rule in structure.RULES:
        yield _descriptor(
            rule.id, rule.why, rule.why, rule.remedy, rule.severity, [rule.category.value, rule.kind.value]
        )
    for one in ruleset.rules:
        tags = [one.category.value, one.kind.value, *one.references]
        yield _descriptor(one.id, one.title, one.why, one.remedy, one.severity, tags)


def _descriptor(
    rule_id: str, title: str, why: str, remedy: str, severity: Severity, tags: list[str]
) -> dict[str, Any]:
    return {
        "id": rule_id,
        "shortDescription": {"text": title},
        "fullDescription": {"text": why},
        "help": {"text": remedy},
        "defaultConfiguration": {"level": _LEVELS[severity]},
        "properties": {"tags": ["security", *dict.fromkeys(tags)], "security-severity": _RANKS[severity]},
    }


def _result(skill: str, finding: Finding, index: dict[str, int]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.rule_id,
        # A capability is no defect: it is shown, and fails no check.
        "level": "note" if finding.kind is FindingKind.CAPABILITY else _LEVELS[finding.severity],
        "message": {"text": f"{finding.why} {finding.remedy}".strip()},
        "locations": [{"physicalLocation": _location(skill, finding)}],
        "properties": {"kind": finding.kind, "category": finding.category, "certain": finding.certain},
    }
    if finding.rule_id in index:
        result["ruleIndex"] = index[finding.rule_id]
    return result


def _location(skill: str, finding: Finding) -> dict[str, Any]:
    place = "/".join(part for part in (skill.rstrip("/"), finding.file) if part and part != ".")
    location: dict[str, Any] = {"artifactLocation": {"uri": quote(place or ".", safe="/!()+,;=@~-._")}}
    if finding.line:
        region: dict[str, Any] = {"startLine": finding.line}
        if finding.column:
            region["startColumn"] = finding.column
        if finding.excerpt:
            region["snippet"] = {"text": finding.excerpt}
        location["region"] = region
    return location


def _invocation(scanned: Sequence[Scanned]) -> dict[str, Any]:
    troubles = [one for one in scanned if one.report.status is not ScanStatus.COMPLETE]
    notes = [
        {
            "level": "error",
            "message": {"text": f"{one.path}: {one.report.status.value}: {one.report.problem}"},
            "descriptor": {"id": one.report.status.value},
        }
        for one in troubles
    ]
    return {"executionSuccessful": not troubles, "toolExecutionNotifications": notes}
