"""A scan's result for people, for programs and for code hosts: text, JSON and SARIF 2.1.0, and the exit code of the
command. The outcome comes first: what the registry would do. One `Scanned` per skill; a run over many is one document.
"""

import enum
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from vskill_core.capability import CapabilityKind
from vskill_core.findings import (
    Finding,
    FindingCategory,
    FindingKind,
    ScanStatus,
    Severity,
    StaticReport,
)
from vskill_core.form import MEANINGS, FormNote
from vskill_core.identity import SKILL_FILE
from vskill_core.naming import name_note, slugify
from vskill_core.release import __version__
from vskill_scan.memory.memory import packaged_memory
from vskill_scan.results.forecast import Forecast, Outcome
from vskill_scan.rules import structure
from vskill_scan.rules.ruleset import Ruleset

TOOL = "vskill-platform"
SARIF_VERSION = "2.1.0"
SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


class Exit(enum.IntEnum):
    """How the command ends; of many skills the worst counts."""

    PUBLISH = 0
    REVIEW = 1
    #: it fails, is blocked, or is refused
    STOP = 2
    #: not scanned to the end, whatever the registry would do
    ERROR = 3


class Scanned(msgspec.Struct, frozen=True):
    """One skill, by where it was found, and what the scan said."""

    path: str
    report: StaticReport
    #: What the registry would do; None in a report of what it has done.
    forecast: Forecast | None = None

    @property
    def exit(self) -> Exit:
        if self.report.status is not ScanStatus.COMPLETE or self.forecast is None:
            return Exit.ERROR
        match self.forecast.outcome:
            case Outcome.PUBLISH:
                return Exit.PUBLISH
            case Outcome.REVIEW:
                return Exit.REVIEW
            case None:
                return Exit.ERROR
            case _:
                return Exit.STOP

    @property
    def result(self) -> str:
        """The scan by itself: pass, concerns, fail or error."""
        if self.report.status is not ScanStatus.COMPLETE:
            return "error"
        is_refused = self.forecast is not None and self.forecast.outcome is Outcome.REFUSE
        if is_refused or any(finding.certain for finding in self.report.findings):
            return "fail"
        return self.report.verdict.value.lower()


def exit_code(scanned: Iterable[Scanned]) -> Exit:
    return max((one.exit for one in scanned), default=Exit.ERROR)


# For people.

#: How an outcome is shown, and in words.
_OUTCOMES: Mapping[Outcome | None, tuple[str, str]] = {
    Outcome.PUBLISH: ("bold green", "The registry would publish it"),
    Outcome.REVIEW: ("bold yellow", "A reviewer would decide about it"),
    Outcome.FAIL: ("bold red", "The registry would not publish it"),
    Outcome.BLOCK: ("bold red", "The registry would block it"),
    Outcome.REFUSE: ("bold red", "The registry would refuse it for its form"),
    None: ("bold magenta", "It could not be read"),
}
_SEVERITY_STYLES = {
    Severity.LOW: "dim",
    Severity.MEDIUM: "yellow",
    Severity.HIGH: "red",
    Severity.CRITICAL: "bold red",
}
#: What nobody can tell without the registry.
CAVEAT = (
    "No judge was asked. A registry with a judge, with indicators or trusted vendors of its own, or with an earlier "
    "version of the skill may decide otherwise. Compared with {}."
)


def text(scanned: Sequence[Scanned]) -> RenderableType:
    """Per skill the outcome, why, and what to change with its place; what only informs comes last."""
    parts: list[RenderableType] = []
    for one in scanned:
        parts.extend((*_skill_text(one), Text()))
    if len(scanned) > 1:
        parts.append(_summary(scanned))
    parts.append(Text(CAVEAT.format(packaged_memory().words), style="dim"))
    return Group(*parts)


def by_weight(findings: Iterable[Finding]) -> list[Finding]:
    """What counts before what informs, the worst first."""
    return sorted(
        findings, key=lambda one: (one.kind is FindingKind.CAPABILITY, -one.severity.rank, one.file, one.line)
    )


def _skill_text(one: Scanned) -> Iterator[RenderableType]:
    told = one.forecast or Forecast(None, (one.report.problem,))
    style, words = _OUTCOMES[told.outcome]
    label = told.outcome.value.upper() if told.outcome else "ERROR"
    yield Text.assemble((f"{label:<8}", style), (printable(one.path), "bold"))
    yield _indented(f"{words}: {_sentence(told.reasons[0])}")
    if any(note.field in ("name", "front matter") for note in one.report.notes) and told.name:
        yield _indented(f"Its name would be {told.name}.")
    folder = one.path.rstrip("/").rpartition("/")[2]
    note = name_note(slugify(folder), told.name) if folder not in ("", ".", "..") else None
    if note is not None:
        yield _indented(note.replace("It is published", "From a repository it would be published"))
    if one.report.status is not ScanStatus.COMPLETE and told.outcome not in (None, Outcome.REFUSE):
        yield _indented("It was not scanned to the end, so there may be more to find.", "magenta")
    findings = by_weight(one.report.findings)
    led = [finding for finding in findings if finding.rule_id in told.rule_ids]
    is_form = told.outcome is Outcome.REFUSE
    if led or (is_form and told.changes):
        yield _heading("What to change")
        for change in told.changes if is_form else ():
            yield _entry(change.file, change.line, change.code, (_fix(change.fix), "green"))
        yield from map(_finding_text, led)
    yield from _notices_text(told)
    rest = [finding for finding in findings if finding not in led]
    # Of a skill that is refused for its form, the reason has said what its structure lacks.
    counted = [
        finding
        for finding in rest
        if finding.kind is not FindingKind.CAPABILITY
        and not (is_form and finding.category is FindingCategory.STRUCTURE)
    ]
    if counted:
        yield _heading("Also found")
        yield from map(_finding_text, counted)
    if one.report.notes:
        yield _heading("Notes on form, which hold nothing up")
    for form in one.report.notes:
        yield _entry(SKILL_FILE, form.line, form.code.value, (form.sentence, ""), (_fix(form.fix), "green"))
    yield from _able_text(one.report, rest)


def _heading(words: str) -> Text:
    return Text(f"  {words}", style="bold")


def _indented(words: str, style: str = "") -> RenderableType:
    return Padding(Text(printable(words), style=style), (0, 0, 0, 8), expand=False)


def _sentence(words: str) -> str:
    return words if words.endswith((".", "!", "?")) else f"{words}."


def _place(file: str, line: int) -> str:
    return printable(f"{file}:{line}" if line else file or "the whole skill")


def _block(head: Text, lines: Iterable[tuple[str, str]]) -> RenderableType:
    shown = [_indented(words, style) for words, style in lines if words]
    return Group(Padding(head, (0, 0, 0, 4), expand=False), *shown)


def _entry(file: str, line: int, code: str, *lines: tuple[str, str], style: str = "bold") -> RenderableType:
    head = Text.assemble((_place(file, line), style), (f"  {code}", "dim"))
    return _block(head, lines)


def _finding_text(finding: Finding) -> RenderableType:
    severity = (finding.severity.value, _SEVERITY_STYLES[finding.severity])
    place = (_place(finding.file, finding.line), "bold")
    head = Text.assemble(place, f"  {finding.rule_id}  ", severity, (f" {finding.kind.value}", "dim"))
    return _block(head, ((finding.excerpt, "cyan"), (finding.why, ""), (_fix(finding.remedy), "green")))


def _notices_text(told: Forecast) -> Iterator[RenderableType]:
    if told.noticed:
        yield _heading("Compared with public skills")
    for notice in told.noticed:
        head = Text.assemble((notice.kind, "bold"), ("" if notice.holds else "  for information", "dim"))
        # The outcome has said the first reason.
        said = "" if notice.reason == told.reasons[0] else _sentence(notice.reason)
        yield _block(head, ((said, ""), *((place, "cyan") for place in notice.details)))


def _able_text(report: StaticReport, rest: Iterable[Finding]) -> Iterator[RenderableType]:
    """What was not read, and what it can do."""
    unread = [one for one in report.capabilities or () if one.kind is CapabilityKind.UNREAD]
    if unread:
        yield _heading("Not read, or not all of it")
        yield from (_block(Text(_place(one.file, one.line)), ((one.value, "dim"),)) for one in unread)
    able = [finding for finding in rest if finding.kind is FindingKind.CAPABILITY]
    if able:
        yield _heading("What it can do")
    for one in able:
        yield _entry(one.file, one.line, one.rule_id, (one.why, "dim"), style="")


def _fix(words: str) -> str:
    return f"Fix: {_sentence(words)}" if words else ""


def _summary(scanned: Sequence[Scanned]) -> Text:
    counts = Counter(
        one.forecast.outcome.value if one.forecast and one.forecast.outcome else "error" for one in scanned
    )
    said = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
    unread = sum(one.report.status is not ScanStatus.COMPLETE for one in scanned)
    left = f"; {unread} not scanned to the end" if unread else ""
    return Text(f"{len(scanned)} skills: {said}{left}", style="bold")


def printable(foreign: str) -> str:
    """Foreign text must not steer the terminal."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in foreign)


# For programs.


def as_json(scanned: Sequence[Scanned], ruleset: str) -> bytes:
    skills = [
        {
            "path": one.path,
            "result": one.result,
            **msgspec.to_builtins(one.forecast or Forecast(None, (one.report.problem,))),
            **_report_json(one.report),
        }
        for one in scanned
    ]
    memory = packaged_memory()
    compared = {"date": memory.date, "digest": memory.digest, "skills": len(memory)}
    document = {
        "tool": TOOL,
        "version": __version__,
        "ruleset": ruleset,
        "memory": compared,
        "skills": skills,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def _report_json(report: StaticReport) -> dict[str, Any]:
    """A scan that did not end has no verdict and no score."""
    is_whole = report.status is ScanStatus.COMPLETE
    verdict, score = (report.verdict, report.score) if is_whole else (None, None)
    return {
        "verdict": verdict,
        "score": score,
        **msgspec.to_builtins(report),
        "status": report.status,
    }


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
            "driver": {
                "name": TOOL,
                "version": __version__,
                "semanticVersion": __version__.replace(".dev", "-dev."),
                "rules": rules,
            }
        },
        "automationDetails": {"id": f"{TOOL}/{ruleset.version}"},
        "invocations": [_invocation(scanned)],
        "columnKind": "unicodeCodePoints",
        "results": [*_results(scanned, index)],
        "properties": {"ruleset": ruleset.version, **_outcomes(scanned)},
    }
    document = {"$schema": SARIF_SCHEMA, "version": SARIF_VERSION, "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def _results(scanned: Sequence[Scanned], index: dict[str, int]) -> Iterator[dict[str, Any]]:
    for one in scanned:
        yield from (_result(one.path, finding, index) for finding in one.report.findings)
        yield from (_note_result(one.path, note, index) for note in one.report.notes)


def _outcomes(scanned: Sequence[Scanned]) -> dict[str, Any]:
    """What the registry would do with each skill, where that was asked."""
    told = [
        {"path": one.path, "outcome": one.forecast.outcome, "reasons": one.forecast.reasons}
        for one in scanned
        if one.forecast is not None
    ]
    return {"outcomes": told} if told else {}


def _descriptors(ruleset: Ruleset) -> Iterator[dict[str, Any]]:
    for rule in structure.RULES:
        yield _descriptor(
            rule.id, rule.why, rule.why, rule.remedy, rule.severity, [rule.category.value, rule.kind.value]
        )
    for code, meaning in MEANINGS.items():
        fix = "Correct SKILL.md as the note says."
        yield _descriptor(code.value, meaning, meaning, fix, Severity.LOW, ["form"], is_security=False)
    for one in ruleset.rules:
        tags = [one.category.value, one.kind.value, *one.references]
        yield _descriptor(one.id, one.title, one.why, one.remedy, one.severity, tags)


def _descriptor(
    rule_id: str,
    title: str,
    why: str,
    remedy: str,
    severity: Severity,
    tags: list[str],
    *,
    is_security: bool = True,
) -> dict[str, Any]:
    properties: dict[str, Any] = {"tags": list(dict.fromkeys(tags))}
    if is_security:
        properties = {"tags": ["security", *properties["tags"]], "security-severity": _RANKS[severity]}
    return {
        "id": rule_id,
        "shortDescription": {"text": title},
        "fullDescription": {"text": why},
        "help": {"text": remedy},
        "defaultConfiguration": {"level": _LEVELS[severity]},
        "properties": properties,
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


def _note_result(skill: str, note: FormNote, index: dict[str, int]) -> dict[str, Any]:
    place = {"physicalLocation": {**_artifact(skill, SKILL_FILE), "region": {"startLine": note.line}}}
    return {
        "ruleId": note.code.value,
        "ruleIndex": index[note.code.value],
        "level": "note",
        "message": {"text": f"{note.sentence} {note.fix}"},
        "locations": [place],
        "properties": {"field": note.field},
    }


def _artifact(skill: str, file: str) -> dict[str, Any]:
    place = "/".join(part for part in (skill.rstrip("/"), file) if part and part != ".")
    return {"artifactLocation": {"uri": quote(place or ".", safe="/!()+,;=@~-._")}}


def _location(skill: str, finding: Finding) -> dict[str, Any]:
    location = _artifact(skill, finding.file)
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
