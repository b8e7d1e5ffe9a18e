"""What a decision rested on, short enough to stand in the submission's record: which rules looked, what they
counted, and what the judge said.

The pipeline writes it together with the decision, because whoever publishes may be another worker, or act days
later on a reviewer's word; the attestation repeats it.
"""

from collections.abc import Collection, Iterable

import msgspec

from vskill_core.findings import (
    NO_JUDGE,
    Finding,
    FindingKind,
    JudgeReport,
    JudgeStatus,
    ScanStatus,
    Severity,
    StaticReport,
    Verdict,
)
from vskill_platform.domain.judges import rank_judges
from vskill_platform.domain.signals import Signal
from vskill_scan.memory.memory import describe_memory


class JudgeWord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The judge's answer without its prose."""

    model: str
    rubric: str
    verdict: Verdict
    score: int
    #: it was not shown every byte
    partial: bool = False


class JudgeWords(msgspec.Struct, frozen=True):
    """What one or two judges said, the word that counts first."""

    word: JudgeWord | None = None
    status: JudgeStatus = JudgeStatus.NONE
    second: JudgeWord | None = None
    second_status: JudgeStatus = JudgeStatus.NONE


class ComparedMemory(msgspec.Struct, frozen=True):
    """The memory that it was compared with."""

    #: the day of which it tells
    date: str
    #: SHA-256 of the file
    digest: str
    #: how many public skills it holds
    skills: int

    @property
    def words(self) -> str:
        return describe_memory(self.skills, self.date)


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
    #: of those the malice, by severity
    malice: dict[Severity, int] = {}
    #: known-bad hashes and indicators
    certain: int = 0
    #: the rules of those findings, each once
    rules: tuple[str, ...] = ()
    #: what the registry noticed that no scan can see
    noticed: tuple[Signal, ...] = ()
    #: None where nothing was compared
    memory: ComparedMemory | None = None
    capabilities: int = 0
    judge_status: JudgeStatus = JudgeStatus.NONE
    #: of two judges the one with the lower score
    judge: JudgeWord | None = None
    #: of the other judge, where two are configured
    second_judge_status: JudgeStatus = JudgeStatus.NONE
    second_judge: JudgeWord | None = None
    #: rules that a reviewer judged false for this content
    suppressed: tuple[str, ...] = ()
    trusted_vendor: bool = False

    @property
    def judge_words(self) -> JudgeWords:
        return JudgeWords(self.judge, self.judge_status, self.second_judge, self.second_judge_status)

    @property
    def doubts(self) -> tuple[str, ...]:
        return tuple(one.reason for one in self.noticed if one.holds)


def evidence_of(
    digest: str,
    static: StaticReport,
    judge: JudgeReport,
    *,
    second: JudgeReport = NO_JUDGE,
    suppressed: Collection[str] = (),
    trusted_vendor: bool = False,
) -> Evidence:
    """The facts of the reports about one content."""
    words = words_of(judge, second)
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
        judge_status=words.status,
        judge=words.word,
        second_judge_status=words.second_status,
        second_judge=words.second,
        suppressed=tuple(sorted(suppressed)),
        trusted_vendor=trusted_vendor,
    )


def _by_severity(findings: Iterable[Finding]) -> dict[Severity, int]:
    found = [finding.severity for finding in findings]
    return {level: found.count(level) for level in Severity}


def words_of(first: JudgeReport, second: JudgeReport = NO_JUDGE) -> JudgeWords:
    one, other = rank_judges(first, second)
    return JudgeWords(_shorten(one), one.status, _shorten(other), other.status)


def _shorten(judge: JudgeReport) -> JudgeWord | None:
    answer = judge.answer
    if answer is None:
        return None
    points, verdict = answer
    return JudgeWord(judge.model, judge.rubric, verdict, points, judge.partial)
