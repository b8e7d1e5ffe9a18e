"""Findings, scores and verdicts of both tiers."""

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vskill_core.findings import (
    JUDGE_DOWN,
    NO_JUDGE,
    PENALTY,
    Confirmation,
    Finding,
    FindingCategory,
    FindingKind,
    JudgeReport,
    JudgeStatus,
    ScanStatus,
    Severity,
    StaticReport,
    Verdict,
    counting,
    criticals,
    score,
    strong_malice,
    verdict_of,
)


def finding(severity=Severity.LOW, kind=FindingKind.MALICE, rule_id="R-1", **more) -> Finding:
    return Finding(rule_id, severity, FindingCategory.INSTRUCTION, kind, **more)


def test_every_severity_has_its_penalty_and_its_rank() -> None:
    assert set(PENALTY) == set(Severity)
    assert {s: s.penalty for s in Severity} == {"critical": 25, "high": 15, "medium": 8, "low": 3}
    assert sorted(Severity, key=lambda s: s.rank) == ["low", "medium", "high", "critical"]


@pytest.mark.parametrize(("severity", "kind"), list(itertools.product(Severity, FindingKind)))
def test_capabilities_do_not_score_malice_and_mismatches_do(severity: Severity, kind: FindingKind) -> None:
    expected = 100 if kind is FindingKind.CAPABILITY else 100 - severity.penalty
    assert score([finding(severity, kind)]) == expected


def test_the_score_adds_up_and_never_falls_below_zero() -> None:
    assert score([]) == 100
    assert score([finding(severity, rule_id=severity) for severity in Severity]) == 49
    assert score([finding(Severity.CRITICAL, rule_id=f"R-{n}") for n in range(5)]) == 0


def test_a_rule_counts_once_at_its_worst_place() -> None:
    places = [finding(severity, line=n) for n, severity in enumerate(Severity)]
    assert score(places) == score(places[::-1]) == 75
    assert score(places[:2] + [finding(Severity.LOW, rule_id="R-2")] * 20) == 100 - 8 - 3
    capability = finding(Severity.CRITICAL, FindingKind.CAPABILITY)
    assert score([finding(Severity.LOW), capability]) == 97


@given(st.lists(st.builds(finding, st.sampled_from(Severity), st.sampled_from(FindingKind)), max_size=12))
def test_another_finding_never_raises_the_score(findings: list[Finding]) -> None:
    assert 0 <= score(findings) <= 100
    assert all(score(findings[:n]) >= score(findings) for n in range(len(findings)))


def weak(points: int) -> tuple[Finding, ...]:
    """Findings of low severity that leave the score, rounded up to the next that they can leave."""
    return tuple(finding(rule_id=f"R-{n}") for n in range((100 - points) // 3))


@pytest.mark.parametrize("points", range(1, 101))
def test_the_verdict_is_total_over_the_score(points: int) -> None:
    """Weak hints never fail a skill, however many they are."""
    findings = weak(points)
    assert verdict_of(findings) is (Verdict.PASS if score(findings) >= 80 else Verdict.CONCERNS)
    strong = (finding(Severity.HIGH, rule_id="X"), *findings)
    expected = Verdict.PASS if score(strong) >= 80 else Verdict.CONCERNS
    assert verdict_of(strong) is (expected if score(strong) >= 50 else Verdict.FAIL)


def test_strong_malice_is_malice_of_high_or_critical_severity() -> None:
    every = [finding(severity, kind) for severity, kind in itertools.product(Severity, FindingKind)]
    assert {(f.severity, f.kind) for f in strong_malice(every)} == {
        (Severity.HIGH, FindingKind.MALICE),
        (Severity.CRITICAL, FindingKind.MALICE),
    }


def test_a_report_derives_its_score_and_verdict_from_its_findings() -> None:
    two = (finding(Severity.HIGH), finding(Severity.HIGH, rule_id="R-2"))
    report = StaticReport("r1", findings=two)
    assert (report.score, report.verdict, report.status) == (70, Verdict.CONCERNS, ScanStatus.COMPLETE)


def test_for_a_trusted_vendor_mismatches_do_not_count_and_malice_does() -> None:
    findings = [finding(kind=kind, rule_id=kind.value) for kind in FindingKind]
    assert {f.rule_id for f in counting(findings)} == {"mismatch", "malice"}
    assert {f.rule_id for f in counting(findings, trusted_vendor=True)} == {"malice"}


def test_a_certain_rule_always_counts_and_a_suppressed_one_never() -> None:
    certain = finding(kind=FindingKind.CAPABILITY, certain=True)
    assert counting([certain], trusted_vendor=True) == (certain,)
    assert counting([certain, finding()], suppressed={"R-1"}) == ()


def test_criticals() -> None:
    one = finding(Severity.CRITICAL)
    assert criticals([finding(), one, finding(Severity.HIGH)]) == (one,)


@pytest.mark.parametrize(
    ("report", "answer"),
    [
        (NO_JUDGE, None),
        (JUDGE_DOWN, None),
        (JudgeReport(JudgeStatus.ANSWERED, Verdict.PASS, 90), (90, Verdict.PASS)),
        (JudgeReport(JudgeStatus.ANSWERED, Verdict.FAIL, 0), (0, Verdict.FAIL)),
        (JudgeReport(JudgeStatus.ANSWERED, Verdict.PASS, 100), (100, Verdict.PASS)),
        (JudgeReport(JudgeStatus.ANSWERED, Verdict.PASS, 101), None),
        (JudgeReport(JudgeStatus.ANSWERED, Verdict.PASS, -1), None),
        (JudgeReport(JudgeStatus.ANSWERED, None, 90), None),
        (JudgeReport(JudgeStatus.ANSWERED, Verdict.PASS, None), None),
        (JudgeReport(JudgeStatus.DOWN, Verdict.PASS, 90), None),
    ],
)
def test_b2_a_judge_that_errs_is_never_a_verdict(report: JudgeReport, answer: object) -> None:
    assert report.answer == answer


def test_what_the_judge_confirms_and_clears() -> None:
    one, two, three = (finding(Severity.CRITICAL, file=name, line=4, column=2) for name in "abc")
    assert one.key == "R-1@a:4:2"
    words = (Confirmation(one.key, confirmed=True), Confirmation(two.key, confirmed=False))
    judge = JudgeReport(JudgeStatus.ANSWERED, Verdict.CONCERNS, 60, confirmations=words)
    assert judge.confirms_any([one, two]) and not judge.confirms_any([two, three])
    assert judge.cleared([one, two, three]) == (two,)


@pytest.mark.parametrize("order", [(True, False), (False, True)])
def test_a_finding_both_confirmed_and_cleared_counts_as_confirmed(order: tuple[bool, bool]) -> None:
    one = finding(Severity.CRITICAL)
    words = tuple(Confirmation(one.key, confirmed=word) for word in order)
    judge = JudgeReport(JudgeStatus.ANSWERED, Verdict.PASS, 90, confirmations=words)
    assert judge.confirms_any([one]) and judge.cleared([one]) == ()


def test_reports_survive_storage() -> None:
    static = StaticReport(
        "r1", ScanStatus.TIMED_OUT, (finding(excerpt="x", certain=True),), problem="2 s CPU"
    )
    assert msgspec.json.decode(msgspec.json.encode(static), type=StaticReport) == static
    judge = JudgeReport(JudgeStatus.ANSWERED, Verdict.PASS, 90, "fine", (Confirmation("k", confirmed=True),))
    assert msgspec.json.decode(msgspec.json.encode(judge), type=JudgeReport) == judge
