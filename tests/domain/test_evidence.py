"""Evidence: what a decision rested on is told in full, and nothing is told that was not there."""

import itertools

import pytest

from vskill_core.findings import (
    JUDGE_DOWN,
    NO_JUDGE,
    Finding,
    FindingCategory,
    FindingKind,
    JudgeReport,
    JudgeStatus,
    ScanStatus,
    Severity,
    StaticReport,
    Verdict,
)
from vskill_platform.domain.evidence import Evidence, JudgeWord, JudgeWords, evidence_of

DIGEST = "d" * 64
FINDINGS = tuple(
    Finding(f"XX-00{line}", severity, FindingCategory.SECRET, kind, line=line, certain=line == 2)
    for line, (severity, kind) in enumerate(
        [
            (Severity.HIGH, FindingKind.MALICE),
            (Severity.LOW, FindingKind.MISMATCH),
            (Severity.LOW, FindingKind.MALICE),
            (Severity.CRITICAL, FindingKind.CAPABILITY),
        ]
    )
)
STATIC = StaticReport("r1", ScanStatus.INCOMPLETE, FINDINGS)
ANSWER = JudgeReport(
    JudgeStatus.ANSWERED, Verdict.CONCERNS, 66, model="m", rubric="r", partial=True, reason="prose"
)


def test_the_evidence_tells_what_both_tiers_said_and_what_a_reviewer_set_aside():
    told = evidence_of(DIGEST, STATIC, ANSWER, suppressed={"YY-002", "XX-001"}, trusted_vendor=True)
    assert told == Evidence(
        digest=DIGEST,
        ruleset="r1",
        status=ScanStatus.INCOMPLETE,
        verdict=Verdict.CONCERNS,
        score=79,
        findings={Severity.LOW: 2, Severity.MEDIUM: 0, Severity.HIGH: 1, Severity.CRITICAL: 0},
        malice={Severity.LOW: 1, Severity.MEDIUM: 0, Severity.HIGH: 1, Severity.CRITICAL: 0},
        certain=1,
        rules=("XX-000", "XX-001", "XX-002"),
        capabilities=1,
        judge_status=JudgeStatus.ANSWERED,
        judge=JudgeWord("m", "r", Verdict.CONCERNS, 66, partial=True),
        suppressed=("XX-001", "YY-002"),
        trusted_vendor=True,
    )


@pytest.mark.parametrize(
    "judge", [NO_JUDGE, JUDGE_DOWN, JudgeReport(JudgeStatus.ANSWERED, Verdict.PASS, None)]
)
def test_a_judge_without_an_answer_has_a_status_and_no_word(judge):
    told = evidence_of(DIGEST, StaticReport("r1"), judge)
    assert (told.judge_status, told.judge) == (judge.status, None)
    assert (told.suppressed, told.trusted_vendor) == ((), False)


def test_every_severity_is_counted_and_capabilities_apart():
    for severity, kind in itertools.product(Severity, FindingKind):
        finding = Finding("XX-001", severity, FindingCategory.SECRET, kind)
        told = evidence_of(DIGEST, StaticReport("r1", findings=(finding,)), NO_JUDGE)
        counts = kind is not FindingKind.CAPABILITY
        assert told.findings == {level: int(counts and level is severity) for level in Severity}
        assert told.capabilities == int(not counts)


def test_what_the_judges_said_is_told_in_the_order_that_counts():
    other = JudgeReport(JudgeStatus.ANSWERED, Verdict.PASS, 90, model="n", rubric="r")
    told = evidence_of(DIGEST, STATIC, ANSWER, second=other)
    assert told.judge_words == JudgeWords(
        told.judge, told.judge_status, told.second_judge, told.second_judge_status
    )
    assert [told.judge_words.word, told.judge_words.second] == [
        JudgeWord("m", "r", Verdict.CONCERNS, 66, partial=True),
        JudgeWord("n", "r", Verdict.PASS, 90),
    ]
    down = evidence_of(DIGEST, STATIC, ANSWER, second=JUDGE_DOWN).judge_words
    assert (down.status, down.second, down.second_status) == (JudgeStatus.ANSWERED, None, JUDGE_DOWN.status)
