"""What the registry would do with a skill, foretold on its author's machine by the code that decides in the registry:
the manifest's reader refuses or admits, the scanner reports, `domain.decision` decides.

Three things only a registry knows, and none of them is guessed: its judge, its indicators, and what it remembers of
the place (blocklist, approvals, suppressions, trusted vendors, the version before).
"""

import msgspec

from vskill_platform.domain.decision import Outcome, decide, outcome_of
from vskill_platform.domain.errors import PlatformError
from vskill_platform.domain.identity import SKILL_FILE
from vskill_platform.domain.scan import NO_JUDGE, Finding, StaticReport, counting

#: What a text about one file may name it by.
PLACES = ("path", "member")


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


def forecast(report: StaticReport, name: str) -> Forecast:
    """For files that the registry admits under this name."""
    decision = decide(report, NO_JUDGE)
    outcome = outcome_of(decision)
    led = () if outcome is Outcome.PUBLISH else decision.rule_ids
    found = [finding for finding in counting(report.findings) if finding.rule_id in led]
    reasons = (decision.reason, *dict.fromkeys(map(_say_why, found)))
    return Forecast(outcome, reasons, tuple(map(_correct, found)), tuple(led), name)


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
