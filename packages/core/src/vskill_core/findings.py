"""What the two tiers report: findings with their severity and kind, the static report, and the judge's
answer.

The scanner and the judge produce these, the stores keep them by digest, `decision` reads them. Only malice
and mismatches count for the score, each rule once; a capability tells the reader what a skill can do and never
gates it.
"""

import enum
from collections.abc import Collection, Iterable

import msgspec

from vskill_core.capability import SkillCapability
from vskill_core.form import FormNote

MAX_SCORE = 100
PASS_SCORE = 80
CONCERNS_SCORE = 50


class Severity(enum.StrEnum):
    """How bad a finding is, if it is true."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """Higher is worse."""
        return tuple(Severity).index(self)

    @property
    def penalty(self) -> int:
        """What a rule deducts from the score, by its worst finding."""
        return PENALTY[self]


PENALTY: dict[Severity, int] = {
    Severity.LOW: 3,
    Severity.MEDIUM: 8,
    Severity.HIGH: 15,
    Severity.CRITICAL: 25,
}


class FindingKind(enum.StrEnum):
    """What a finding says about the author's honesty."""

    #: the skill can do this
    CAPABILITY = "capability"
    #: it says one thing and does another
    MISMATCH = "mismatch"
    #: no honest skill does this
    MALICE = "malice"


class FindingCategory(enum.StrEnum):
    """The family of attacks that a rule belongs to."""

    INSTRUCTION = "instruction"
    SOCIAL_ENGINEERING = "social-engineering"
    DOWNLOAD_AND_RUN = "download-and-run"
    EXFILTRATION = "exfiltration"
    PERSISTENCE = "persistence"
    DESTRUCTION = "destruction"
    OBFUSCATION = "obfuscation"
    DYNAMIC_CONTEXT = "dynamic-context"
    DECLARATION = "declaration"
    SECRET = "secret"  # noqa: S105 - the name of a family of rules, no secret
    STRUCTURE = "structure"
    KNOWN_BAD = "known-bad"


class Verdict(enum.StrEnum):
    """The three answers of either tier."""

    PASS = "PASS"  # noqa: S105 - a verdict
    CONCERNS = "CONCERNS"
    FAIL = "FAIL"


class ScanStatus(enum.StrEnum):
    """How the static scan itself went; anything but complete is never clean."""

    COMPLETE = "complete"
    TIMED_OUT = "timed_out"
    ERROR = "error"
    INCOMPLETE = "incomplete"


class JudgeStatus(enum.StrEnum):
    """Whether there is an answer of the judge at all."""

    ANSWERED = "answered"
    #: none is configured
    NONE = "none"
    #: it erred, timed out, or its answer was not valid
    DOWN = "down"


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One place in one file where a rule matched."""

    rule_id: str
    severity: Severity
    category: FindingCategory
    kind: FindingKind
    file: str = ""
    #: from 1; 0 is the whole file
    line: int = 0
    column: int = 0
    excerpt: str = ""
    #: why it matters
    why: str = ""
    #: what the author can do about it
    remedy: str = ""
    #: a known-bad hash or indicator: it blocks without a judge
    certain: bool = False

    @property
    def key(self) -> str:
        """How the judge refers to this finding."""
        return f"{self.rule_id}@{self.file}:{self.line}:{self.column}"


class Coverage(msgspec.Struct, frozen=True, omit_defaults=True):
    """How much of the skill the scan has seen."""

    files_total: int = 0
    files_scanned: int = 0
    bytes_total: int = 0
    bytes_scanned: int = 0


class StaticReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tier 1: what our own rules found in one content."""

    ruleset: str
    status: ScanStatus = ScanStatus.COMPLETE
    findings: tuple[Finding, ...] = ()
    coverage: Coverage = Coverage()
    #: what went wrong, where the status is not complete
    problem: str = ""
    duration_ms: int = 0
    #: what the author should correct in SKILL.md; it counts for nothing
    notes: tuple[FormNote, ...] = ()
    #: the capability card; None in a report that was made before there were cards
    capabilities: tuple[SkillCapability, ...] | None = None

    @property
    def score(self) -> int:
        return score(self.findings)

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.findings)


class Confirmation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The judge's word on one critical finding."""

    #: `Finding.key`
    finding: str
    #: false means: a false positive
    confirmed: bool
    why: str = ""


class JudgeReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tier 2: the judge's answer, or that there is none."""

    status: JudgeStatus
    verdict: Verdict | None = None
    #: 0 to 100
    score: int | None = None
    reason: str = ""
    confirmations: tuple[Confirmation, ...] = ()
    model: str = ""
    rubric: str = ""
    #: the skill was too large to be shown whole
    partial: bool = False

    @property
    def answer(self) -> tuple[int, Verdict] | None:
        """Score and verdict; an answer that lacks one, or whose score is out of range, counts as none."""
        if self.status is not JudgeStatus.ANSWERED or self.verdict is None or self.score is None:
            return None
        return (self.score, self.verdict) if 0 <= self.score <= MAX_SCORE else None

    def confirms_any(self, findings: Iterable[Finding]) -> bool:
        confirmed = {word.finding for word in self.confirmations if word.confirmed}
        return any(finding.key in confirmed for finding in findings)

    def cleared(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """The findings that the judge calls false positives; one that it also confirms is not cleared."""
        confirmed = {word.finding for word in self.confirmations if word.confirmed}
        cleared = {word.finding for word in self.confirmations} - confirmed
        return tuple(finding for finding in findings if finding.key in cleared)


NO_JUDGE = JudgeReport(JudgeStatus.NONE)
JUDGE_DOWN = JudgeReport(JudgeStatus.DOWN)


def counting(
    findings: Iterable[Finding], *, trusted_vendor: bool = False, suppressed: Collection[str] = ()
) -> tuple[Finding, ...]:
    """The findings that gate and score.

    For a trusted vendor mismatches do not count, malice does. `suppressed` are the rules that a reviewer
    judged false for exactly this content.
    """
    kinds = {FindingKind.MALICE} if trusted_vendor else {FindingKind.MALICE, FindingKind.MISMATCH}
    return tuple(f for f in findings if f.rule_id not in suppressed and (f.certain or f.kind in kinds))


def score(findings: Iterable[Finding]) -> int:
    """100 less the penalty of each rule that found malice or a mismatch, and never below 0.

    A rule counts once, by its worst finding: twenty calls of one API are one fact about the skill, not twenty.
    """
    worst_last = sorted(counting(findings), key=lambda finding: finding.severity.penalty)
    penalties = {finding.rule_id: finding.severity.penalty for finding in worst_last}
    return max(0, MAX_SCORE - sum(penalties.values()))


def verdict_of(findings: Collection[Finding]) -> Verdict:
    """PASS from 80; FAIL below 50, but only with strong malice: many weak hints are concerns."""
    points = score(findings)
    if points >= PASS_SCORE:
        return Verdict.PASS
    return Verdict.FAIL if points < CONCERNS_SCORE and strong_malice(findings) else Verdict.CONCERNS


def strong_malice(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings of malice whose severity is high or critical."""
    strong = {Severity.HIGH, Severity.CRITICAL}
    return tuple(f for f in findings if f.kind is FindingKind.MALICE and f.severity in strong)


def criticals(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The critical ones among findings that count."""
    return tuple(finding for finding in findings if finding.severity is Severity.CRITICAL)
