"""What a decision rested on, short enough to stand in the submission's record: which rules looked, what they
counted, and what the judge said.

The pipeline writes it together with the decision, because whoever publishes may be another worker, or act days
later on a reviewer's word; the attestation repeats it.
"""

from collections.abc import Collection, Iterable

import msgspec

from vskill_platform.domain.scan import (
    Finding,
    FindingKind,
    JudgeReport,
    JudgeStatus,
    ScanStatus,
    Severity,
    StaticReport,
    Verdict,
)


class JudgeWord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The judge's answer without its prose."""

    model: str
    rubric: str
    verdict: Verdict
    score: int
    #: it was not shown every byte
    partial: bool = False


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """The facts behind a decision about one content."""

    #: of the content that was looked at; it says nothing about any other
    digest: str
    ruleset: str
    status: ScanStatus
    #: of the static scan, before anything was cleared or suppressed
    verdict: Verdict
    score: int
    #: malice and mismatches, by severity
    findings: dict[Severity, int] = {}
    #: of those the malice, by severity; empty in records of earlier releases
    malice: dict[Severity, int] = {}
    #: known-bad hashes and indicators
    certain: int = 0
    #: the rules of those findings, each once
    rules: tuple[str, ...] = ()
    #: what the registry noticed that no scan can see: sentences, and the places that they speak of
    signals: tuple[str, ...] = ()
    signal_places: tuple[str, ...] = ()
    capabilities: int = 0
    judge_status: JudgeStatus = JudgeStatus.NONE
    judge: JudgeWord | None = None
    #: rules that a reviewer judged false for this content
    suppressed: tuple[str, ...] = ()
    trusted_vendor: bool = False


def evidence_of(
    digest: str,
    static: StaticReport,
    judge: JudgeReport,
    *,
    suppressed: Collection[str] = (),
    trusted_vendor: bool = False,
) -> Evidence:
    """The facts of two reports about one content."""
    counted = [finding for finding in static.findings if finding.kind is not FindingKind.CAPABILITY]
    return Evidence(
        digest=digest,
        ruleset=static.ruleset,
        status=static.status,
        verdict=static.verdict,
        score=static.score,
        findings=_by_severity(counted),
        malice=_by_severity(one for one in counted if one.kind is FindingKind.MALICE),
        certain=sum(finding.certain for finding in counted),
        rules=tuple(sorted({finding.rule_id for finding in counted})),
        capabilities=len(static.findings) - len(counted),
        judge_status=judge.status,
        judge=word_of(judge),
        suppressed=tuple(sorted(suppressed)),
        trusted_vendor=trusted_vendor,
    )


def _by_severity(findings: Iterable[Finding]) -> dict[Severity, int]:
    found = [finding.severity for finding in findings]
    return {level: found.count(level) for level in Severity}


def word_of(judge: JudgeReport) -> JudgeWord | None:
    """The answer in short; None where there is none."""
    answer = judge.answer
    if answer is None:
        return None
    points, verdict = answer
    return JudgeWord(judge.model, judge.rubric, verdict, points, judge.partial)
