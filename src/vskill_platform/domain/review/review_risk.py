"""How urgent it is that a reviewer looks at a submission: what the queue of reviews is ordered by, and why it stands
where it does, in words."""

import enum

import msgspec

from vskill_core.findings import ScanStatus, Severity
from vskill_platform.domain.evidence import Evidence
from vskill_platform.domain.submissions.submission import Submission


class RiskLevel(enum.IntEnum):
    """The more urgent, the higher."""

    #: an outage, an appeal, a version that was taken down
    NOTHING_FOUND = 0
    #: findings that are weak, or a judge that is not sure
    DOUBT = 1
    #: the scan did not end: anything may be in it
    NOT_READ = 2
    #: the registry noticed something that no scan can see
    SIGNAL = 3
    STRONG_MALICE = 4
    CRITICAL = 5
    #: known to be bad
    CERTAIN = 6

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS = {
    RiskLevel.NOTHING_FOUND: "Nothing found",
    RiskLevel.DOUBT: "Doubtful",
    RiskLevel.NOT_READ: "Not read whole",
    RiskLevel.SIGNAL: "Signal",
    RiskLevel.STRONG_MALICE: "Strong malice",
    RiskLevel.CRITICAL: "Critical",
    RiskLevel.CERTAIN: "Known bad",
}


class ReviewRisk(msgspec.Struct, frozen=True):
    """How urgent it is, and why."""

    level: RiskLevel
    #: what was found, counted
    reasons: tuple[str, ...]


def risk_of(record: Submission) -> ReviewRisk:
    """From what the record says about its content; nothing else is read."""
    evidence = record.evidence
    if evidence is None or evidence.digest != record.digest:
        return ReviewRisk(RiskLevel.NOTHING_FOUND, _why_appealed(record))
    return ReviewRisk(_level_of(evidence), (*_count_findings(evidence), *_why_appealed(record)))


def _level_of(evidence: Evidence) -> RiskLevel:
    strong = evidence.malice.get(Severity.HIGH, 0)
    doubtful = any(evidence.findings.values()) or evidence.judge is not None
    levels = {
        RiskLevel.CERTAIN: evidence.certain > 0,
        RiskLevel.CRITICAL: evidence.findings.get(Severity.CRITICAL, 0) > 0,
        RiskLevel.STRONG_MALICE: strong > 0,
        RiskLevel.SIGNAL: bool(evidence.doubts),
        RiskLevel.NOT_READ: evidence.status is not ScanStatus.COMPLETE,
        RiskLevel.DOUBT: doubtful,
    }
    return max((level for level, holds in levels.items() if holds), default=RiskLevel.NOTHING_FOUND)


def _count_findings(evidence: Evidence) -> tuple[str, ...]:
    worst = sorted(evidence.findings.items(), key=lambda pair: -pair[0].rank)
    found = [f"{count} {level.value}" for level, count in worst if count]
    if doubts := len(evidence.doubts):
        found.append("1 signal" if doubts == 1 else f"{doubts} signals")
    if evidence.status is not ScanStatus.COMPLETE:
        found.append(f"scan {evidence.status.value.replace('_', ' ')}")
    words = (("judge", evidence.judge), ("second judge", evidence.second_judge))
    found += [f"{who}: {one.verdict.value.lower()}, {one.score}" for who, one in words if one is not None]
    return tuple(found)


def _why_appealed(record: Submission) -> tuple[str, ...]:
    return ("appeal",) if record.appeal is not None else ()
