"""What a registry would do with a skill, foretold on its author's machine: the manifest's reader refuses or admits, the
scanner reports, and a decision is passed in. `vskill-platform scan` passes the registry's own, `vskill-scan` has
`decide_alone`.

Three things only a registry knows, and none of them is guessed: its judge, its indicators, and what it remembers of
the place (blocklist, approvals, suppressions, trusted vendors, the version before).
"""

import enum
from collections.abc import Callable, Iterable

import msgspec

from vskill_core.errors import PlatformError
from vskill_core.findings import (
    Finding,
    ScanStatus,
    StaticReport,
    Verdict,
    counting,
    criticals,
    strong_malice,
)
from vskill_core.identity import SKILL_FILE
from vskill_scan.memory.notices import MemoryNotice

#: What a text about one file may name it by.
PLACES = ("path", "member")


class Outcome(enum.StrEnum):
    """What the registry does with a submission, in the author's words."""

    PUBLISH = "publish"
    REVIEW = "review"
    FAIL = "fail"
    BLOCK = "block"
    #: for its form: there is no skill to decide about
    REFUSE = "refuse"


class Decided(msgspec.Struct, frozen=True):
    """What becomes of files with such a report, and why."""

    outcome: Outcome
    reason: str
    #: of the findings that led here
    rule_ids: tuple[str, ...] = ()


Decide = Callable[[StaticReport], Decided]


class Correction(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that the author can change, with its place."""

    #: the rule, the note or the error that asks for it
    code: str
    problem: str
    fix: str
    #: empty is the whole skill
    file: str = ""
    #: from 1; 0 is the whole file
    line: int = 0


class Forecast(msgspec.Struct, frozen=True):
    """What would become of a submission of these files."""

    #: None where the files could not be read, so that nobody can tell
    outcome: Outcome | None
    #: why, in sentences; never empty
    reasons: tuple[str, ...]
    #: what to change so that it is published
    changes: tuple[Correction, ...] = ()
    #: of the findings that led here
    rule_ids: tuple[str, ...] = ()
    #: what the skill would be called; empty where it would be refused
    name: str = ""
    #: what a comparison with public skills tells
    noticed: tuple[MemoryNotice, ...] = ()


def forecast(
    report: StaticReport, name: str, decided: Decided, noticed: tuple[MemoryNotice, ...] = ()
) -> Forecast:
    """For files that the registry admits under this name."""
    led = () if decided.outcome is Outcome.PUBLISH else decided.rule_ids
    found = [finding for finding in counting(report.findings) if finding.rule_id in led]
    doubts = [one.reason for one in noticed if one.holds]
    outcome, reasons = decided.outcome, (decided.reason, *doubts, *dict.fromkeys(map(_say_why, found)))
    if doubts and outcome is Outcome.PUBLISH:
        outcome, reasons = Outcome.REVIEW, reasons[1:]
    return Forecast(outcome, reasons, tuple(map(_correct, found)), tuple(led), name, noticed)


def decide_alone(report: StaticReport) -> Decided:
    """What a registry decides that has no judge and knows nothing of the place."""
    found = counting(report.findings)
    certain = [finding for finding in found if finding.certain]
    if certain:
        return _decided(Outcome.BLOCK, "known to be malicious", certain)
    if report.status is not ScanStatus.COMPLETE:
        return _decided(Outcome.REVIEW, f"the scan did not finish: {report.problem}", found)
    if report.verdict is Verdict.FAIL:
        return _decided(Outcome.FAIL, f"the scan failed it with score {report.score}", found)
    if critical := criticals(found):
        return _decided(Outcome.REVIEW, "what is critical needs a reviewer", critical)
    if report.verdict is not Verdict.PASS:
        return _decided(Outcome.REVIEW, f"the scan has concerns (score {report.score})", found)
    if strong := strong_malice(found):
        return _decided(Outcome.REVIEW, "what looks like malice needs a reviewer", strong)
    return _decided(Outcome.PUBLISH, "it passed the scan", found)


def _decided(outcome: Outcome, reason: str, led: Iterable[Finding]) -> Decided:
    return Decided(outcome, reason, tuple(sorted({finding.rule_id for finding in led})))


def refused(error: PlatformError) -> Forecast:
    """For files that the registry would not take in."""
    details = error.details
    line = details.get("line")
    file = next((str(details[name]) for name in PLACES if name in details), "")
    change = Correction(
        error.code,
        error.message,
        str(details.get("fix") or error.message),
        file or (SKILL_FILE if line else ""),
        line if isinstance(line, int) else 0,
    )
    return Forecast(Outcome.REFUSE, (error.message,), (change,))


def unreadable(error: PlatformError) -> Forecast:
    """For a path of this machine that cannot be read."""
    return Forecast(None, (error.message,))


def _say_why(finding: Finding) -> str:
    return f"{finding.rule_id}: {finding.why}"


def _correct(finding: Finding) -> Correction:
    return Correction(finding.rule_id, finding.why, finding.remedy, finding.file, finding.line)
