"""The decision table: total over every combination of inputs, each row reached, a reason each time."""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from vskill_platform.domain.decision import (
    BlockScope,
    Decision,
    DecisionRow,
    Outcome,
    RescanOutcome,
    Signal,
    SignalKind,
    decide,
    decide_rescan,
    outcome_of,
)
from vskill_platform.domain.scan import (
    JUDGE_DOWN,
    NO_JUDGE,
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
    score,
)
from vskill_platform.domain.skill import Certification
from vskill_platform.domain.states import TRANSITIONS, State


def found(
    severity: Severity, count: int = 1, kind: FindingKind = FindingKind.MALICE, *, certain: bool = False
) -> tuple[Finding, ...]:
    rule = f"{kind.value}-{severity.value}"
    return tuple(
        Finding(rule, severity, FindingCategory.INSTRUCTION, kind, file="SKILL.md", line=n, certain=certain)
        for n in range(1, count + 1)
    )


CRITICAL = found(Severity.CRITICAL)
#: findings by name, with each verdict without and with critical ones
FINDINGS: dict[str, tuple[Finding, ...]] = {
    "clean": (),
    "capability": found(Severity.CRITICAL, 3, FindingKind.CAPABILITY),
    "pass": found(Severity.HIGH),
    "concerns": found(Severity.HIGH, 2),
    "fail": found(Severity.HIGH, 4),
    "mismatch-fail": found(Severity.HIGH, 4, FindingKind.MISMATCH),
    "mismatch-critical": found(Severity.CRITICAL, 1, FindingKind.MISMATCH),
    "critical": CRITICAL,
    "critical-two": found(Severity.CRITICAL, 2),
    "critical-and-concerns": CRITICAL + found(Severity.HIGH, 2),
    "critical-and-fail": CRITICAL + found(Severity.HIGH, 4),
    "certain": found(Severity.CRITICAL, certain=True),
}
#: findings that are not critical, by the static score that they leave
SCORES: dict[int, tuple[Finding, ...]] = {
    49: found(Severity.HIGH, 3) + found(Severity.LOW, 2),
    50: found(Severity.HIGH) + found(Severity.MEDIUM, 4) + found(Severity.LOW),
    79: found(Severity.HIGH) + found(Severity.LOW, 2),
    80: found(Severity.MEDIUM) + found(Severity.LOW, 4),
}
ANSWERS = [
    JudgeReport(JudgeStatus.ANSWERED, verdict, points)
    for verdict, points in itertools.product(Verdict, (0, 39, 40, 59, 60, 79, 80, 100))
]
#: the judge's words on the critical findings, from their keys
WORDS = {
    "silent": (),
    "confirms": (True, True),
    "clears": (False, False),
    "clears-one": (False,),
    "mixed": (False, True),
}
NEW_SECRET = Signal(
    SignalKind.NEW_CAPABILITY, "it reads a secret that version 1.0.0 did not read", ("run.py:3",)
)


class Case(NamedTuple):
    findings: tuple[Finding, ...]
    status: ScanStatus
    judge: JudgeReport
    hit: str | None
    approved: str | None
    vendor: bool
    signals: tuple[Signal, ...] = ()

    @property
    def counted(self) -> tuple[Finding, ...]:
        return counting(self.findings, trusted_vendor=self.vendor)

    @property
    def critical(self) -> list[Finding]:
        return [f for f in self.counted if f.severity is Severity.CRITICAL]

    def decide(self) -> Decision:
        return decide(
            StaticReport("r1", self.status, self.findings),
            self.judge,
            blocklist_hit=self.hit,
            approved_by=self.approved,
            trusted_vendor=self.vendor,
            signals=self.signals,
        )


def judges(findings: tuple[Finding, ...]) -> Iterator[JudgeReport]:
    yield from (NO_JUDGE, JUDGE_DOWN, JudgeReport(JudgeStatus.ANSWERED, Verdict.PASS, None))
    keys = [f.key for f in findings if f.severity is Severity.CRITICAL]
    for answer, words in itertools.product(ANSWERS, WORDS.values() if keys else [()]):
        confirmations = tuple(
            Confirmation(key, confirmed=word) for key, word in zip(keys, words, strict=False)
        )
        yield JudgeReport(answer.status, answer.verdict, answer.score, confirmations=confirmations)


def all_cases() -> Iterator[Case]:
    for findings in FINDINGS.values():
        for judge in judges(findings):
            for rest in itertools.product(ScanStatus, (None, "blocked"), (None, "admin:ann"), (False, True)):
                yield Case(findings, rest[0], judge, rest[1], rest[2], rest[3])
                yield Case(findings, rest[0], judge, rest[1], rest[2], rest[3], (NEW_SECRET,))


def expected(case: Case) -> tuple[State, BlockScope, DecisionRow]:
    state, block, row = table(case)
    if state is State.AUTO_APPROVED and case.signals and not (case.vendor or case.approved):
        return State.NEEDS_REVIEW, block, DecisionRow.SIGNALLED
    return state, block, row


def table(case: Case) -> tuple[State, BlockScope, DecisionRow]:  # noqa: C901, PLR0911, PLR0912 - one branch per row
    """The table of the design, written down a second time and plainly, row by row."""
    critical, judge = case.critical, case.judge
    answered = judge.answer is not None
    points, verdict = judge.answer or (-1, None)
    words = {w.finding: w.confirmed for w in judge.confirmations}
    static = score(case.counted)
    if case.hit:
        return State.BLOCKED, BlockScope.NONE, DecisionRow.BLOCKLISTED
    if any(f.certain for f in case.counted):
        return State.BLOCKED, BlockScope.DIGEST, DecisionRow.CERTAIN
    if case.approved:
        return State.AUTO_APPROVED, BlockScope.NONE, DecisionRow.APPROVED
    if case.status is not ScanStatus.COMPLETE:
        return State.NEEDS_REVIEW, BlockScope.NONE, DecisionRow.NOT_COMPLETE
    if static < 50 and not critical:
        return State.TIER1_FAILED, BlockScope.NONE, DecisionRow.STATIC_FAIL
    if critical:
        confirmed = any(words.get(f.key) is True for f in critical)
        if answered and (confirmed or verdict is Verdict.FAIL or points < 40):
            return State.BLOCKED, BlockScope.PLACE, DecisionRow.CRITICAL_CONFIRMED
        if not (answered and points >= 60 and all(words.get(f.key) is False for f in critical)):
            return State.NEEDS_REVIEW, BlockScope.NONE, DecisionRow.CRITICAL_OPEN
        if score([f for f in case.counted if f not in critical]) < 50:
            return State.REJECTED, BlockScope.NONE, DecisionRow.CLEARED_STILL_FAILS
    if answered and points >= 80 and verdict is Verdict.PASS:
        return State.AUTO_APPROVED, BlockScope.NONE, DecisionRow.JUDGE_PASS
    if answered and (points < 40 or verdict is Verdict.FAIL):
        return State.REJECTED, BlockScope.NONE, DecisionRow.JUDGE_FAIL
    if answered:
        return State.NEEDS_REVIEW, BlockScope.NONE, DecisionRow.JUDGE_UNSURE
    if static >= 80:
        return State.AUTO_APPROVED, BlockScope.NONE, DecisionRow.UNJUDGED_PASS
    return State.NEEDS_REVIEW, BlockScope.NONE, DecisionRow.UNJUDGED_CONCERNS


CASES = list(all_cases())


def test_the_decision_is_total_and_follows_the_table_in_every_combination() -> None:
    assert len(CASES) > 5000
    for case in CASES:
        decision = case.decide()
        assert (decision.next_state, decision.block, decision.row) == expected(case), case


def test_every_row_of_the_table_is_reached() -> None:
    assert {case.decide().row for case in CASES} == set(DecisionRow)


def test_e7_every_decision_has_a_reason_and_only_approval_has_a_certification() -> None:
    for case in CASES:
        decision = case.decide()
        assert decision.reason.strip() and not decision.reason.endswith("()")
        assert (decision.certification is not None) == (decision.next_state is State.AUTO_APPROVED)
        assert 0 <= decision.score <= 100


def test_every_decision_is_a_transition_that_a_scanning_submission_may_make() -> None:
    for case in CASES:
        source = State.TIER1_SCANNING
        assert case.decide().next_state in TRANSITIONS[source]


def test_certification_follows_who_looked_at_it() -> None:
    for case in CASES:
        decision = case.decide()
        if decision.next_state is not State.AUTO_APPROVED:
            continue
        if case.vendor or case.approved:
            assert decision.certification is Certification.CERTIFIED
        elif case.judge.answer:
            assert decision.certification is Certification.VERIFIED
        else:
            assert decision.certification is Certification.SCANNED


def test_capabilities_alone_never_gate() -> None:
    static = StaticReport("r1", findings=FINDINGS["capability"])
    decision = decide(static, NO_JUDGE)
    assert (decision.next_state, decision.score, decision.rule_ids) == (State.AUTO_APPROVED, 100, ())


def test_a_trusted_vendors_mismatches_do_not_count_but_its_malice_does() -> None:
    for name in ("mismatch-fail", "mismatch-critical"):
        static = StaticReport("r1", findings=FINDINGS[name])
        assert decide(static, NO_JUDGE).next_state is not State.AUTO_APPROVED
        vendor = decide(static, NO_JUDGE, trusted_vendor=True)
        assert (vendor.next_state, vendor.certification) == (State.AUTO_APPROVED, Certification.CERTIFIED)
    malice = decide(StaticReport("r1", findings=FINDINGS["fail"]), NO_JUDGE, trusted_vendor=True)
    assert malice.next_state is State.TIER1_FAILED


@pytest.mark.parametrize("name", ["clean", "fail", "critical", "certain"])
def test_a_blocklist_hit_or_a_certain_rule_wins_over_a_reviewers_approval(name: str) -> None:
    static = StaticReport("r1", findings=FINDINGS[name])
    assert decide(static, NO_JUDGE, approved_by="ann", blocklist_hit="bad").next_state is State.BLOCKED
    approved = decide(static, NO_JUDGE, approved_by="ann")
    assert approved.next_state is (State.BLOCKED if name == "certain" else State.AUTO_APPROVED)


def test_a_suppressed_rule_does_not_count_for_that_content() -> None:
    static = StaticReport("r1", findings=FINDINGS["fail"])
    decision = decide(static, NO_JUDGE, suppressed={"malice-high"})
    assert (decision.next_state, decision.score) == (State.AUTO_APPROVED, 100)


def test_what_the_judge_cleared_no_longer_scores_and_is_not_named() -> None:
    judge = JudgeReport(
        JudgeStatus.ANSWERED,
        Verdict.PASS,
        90,
        confirmations=(Confirmation(CRITICAL[0].key, confirmed=False),),
    )
    decision = decide(StaticReport("r1", findings=FINDINGS["critical-and-concerns"]), judge)
    assert (decision.next_state, decision.score, decision.rule_ids) == (
        State.AUTO_APPROVED,
        70,
        ("malice-high",),
    )


def test_each_boundary_of_the_static_score_is_exact() -> None:
    """49 fails, 50 and 79 are concerns, 80 passes."""
    rows = {points: decide(StaticReport("r1", findings=these), NO_JUDGE) for points, these in SCORES.items()}
    assert {points: (decision.score, decision.row) for points, decision in rows.items()} == {
        49: (49, DecisionRow.STATIC_FAIL),
        50: (50, DecisionRow.UNJUDGED_CONCERNS),
        79: (79, DecisionRow.UNJUDGED_CONCERNS),
        80: (80, DecisionRow.UNJUDGED_PASS),
    }


@pytest.mark.parametrize(
    ("left", "row"), [(49, DecisionRow.CLEARED_STILL_FAILS), (50, DecisionRow.JUDGE_PASS)]
)
def test_what_is_left_without_the_cleared_findings_fails_below_50_exactly(
    left: int, row: DecisionRow
) -> None:
    cleared = (Confirmation(CRITICAL[0].key, confirmed=False),)
    judge = JudgeReport(JudgeStatus.ANSWERED, Verdict.PASS, 90, confirmations=cleared)
    decision = decide(StaticReport("r1", findings=CRITICAL + SCORES[left]), judge)
    assert (decision.row, decision.score) == (row, left)
    assert "malice-critical" not in decision.rule_ids


CONFIRMS = JudgeReport(
    JudgeStatus.ANSWERED,
    Verdict.CONCERNS,
    70,
    confirmations=(Confirmation(CRITICAL[0].key, confirmed=True),),
)


@pytest.mark.parametrize(
    ("findings", "judge", "row", "rule_ids"),
    [
        (found(Severity.LOW, certain=True) + SCORES[80], NO_JUDGE, DecisionRow.CERTAIN, ("malice-low",)),
        (CRITICAL + SCORES[80], NO_JUDGE, DecisionRow.CRITICAL_OPEN, ("malice-critical",)),
        (CRITICAL + SCORES[80], CONFIRMS, DecisionRow.CRITICAL_CONFIRMED, ("malice-critical",)),
        (SCORES[50], NO_JUDGE, DecisionRow.UNJUDGED_CONCERNS, ("malice-high", "malice-low", "malice-medium")),
    ],
)
def test_a_decision_names_the_rules_that_led_to_it_and_no_others(findings, judge, row, rule_ids) -> None:
    decision = decide(StaticReport("r1", findings=findings), judge)
    assert (decision.row, decision.rule_ids) == (row, rule_ids)


@pytest.mark.parametrize("findings", [SCORES[50], SCORES[80]])
def test_the_reason_tells_a_judge_that_is_down_from_none_at_all(findings) -> None:
    static = StaticReport("r1", findings=findings)
    assert "no judge is configured" in decide(static, NO_JUDGE).reason
    assert "the judge is down" in decide(static, JUDGE_DOWN).reason


def test_the_reason_names_the_rules_and_the_problem() -> None:
    failed = decide(StaticReport("r1", findings=FINDINGS["fail"]), NO_JUDGE)
    assert "malice-high" in failed.reason and failed.rule_ids == ("malice-high",)
    error = decide(StaticReport("r1", ScanStatus.ERROR, problem="the scanner was killed"), NO_JUDGE)
    assert "the scanner was killed" in error.reason
    assert decide(StaticReport("r1"), NO_JUDGE, blocklist_hit="").reason


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        (State.AUTO_APPROVED, Outcome.PUBLISH),
        (State.NEEDS_REVIEW, Outcome.REVIEW),
        (State.TIER1_FAILED, Outcome.FAIL),
        (State.REJECTED, Outcome.FAIL),
        (State.BLOCKED, Outcome.BLOCK),
    ],
)
def test_the_author_is_told_the_outcome_of_each_state(state: State, outcome: Outcome) -> None:
    assert outcome_of(Decision(state, "why", DecisionRow.JUDGE_FAIL)) is outcome


def test_a_signal_sends_an_approved_skill_to_a_person_and_says_why() -> None:
    decision = decide(StaticReport("r1"), NO_JUDGE, signals=[NEW_SECRET])
    assert decision.next_state is State.NEEDS_REVIEW
    assert NEW_SECRET.reason in decision.reason


# Rescan.


def rescan(case: Case, certification: Certification):
    return decide_rescan(
        StaticReport("r2", case.status, case.findings),
        case.judge,
        certification=certification,
        blocklist_hit=case.hit,
        approved_by=case.approved,
        trusted_vendor=case.vendor,
        signals=case.signals,
    )


def test_a_rescan_is_total_and_never_better_than_the_decision() -> None:
    for case, before in itertools.product(CASES, Certification):
        decision, again = case.decide(), rescan(case, before)
        assert again.reason == decision.reason
        assert (again.block, again.score, again.rule_ids) == (
            decision.block,
            decision.score,
            decision.rule_ids,
        )
        assert (again.outcome is RescanOutcome.KEEP) == (decision.next_state is State.AUTO_APPROVED)
        assert (again.certification is not None) == (again.outcome is RescanOutcome.KEEP)
        if again.outcome is RescanOutcome.TAKE_DOWN:
            blocked = decision.next_state is State.BLOCKED
            assert again.next_state is (State.BLOCKED if blocked else State.NEEDS_REVIEW)
            assert again.next_state in TRANSITIONS[State.PUBLISHED]
        else:
            assert again.next_state is None


def test_a_rescan_knows_trusted_vendors_and_suppressed_rules() -> None:
    static = StaticReport("r2", findings=FINDINGS["mismatch-fail"])
    verified = Certification.VERIFIED
    assert decide_rescan(static, NO_JUDGE, certification=verified).outcome is RescanOutcome.TAKE_DOWN
    for known in ({"trusted_vendor": True}, {"suppressed": {"mismatch-high"}}):
        assert decide_rescan(static, NO_JUDGE, certification=verified, **known).outcome is RescanOutcome.KEEP


def test_a_rescan_that_learned_nothing_changes_nothing() -> None:
    """A scanner that fails, or a judge that is down, must not take the whole marketplace down."""
    undecided = {
        (case.decide().row, case.judge.status is JudgeStatus.NONE)
        for case in CASES
        if rescan(case, Certification.VERIFIED).outcome is RescanOutcome.UNDECIDED
    }
    assert undecided == {
        (DecisionRow.NOT_COMPLETE, True),
        (DecisionRow.NOT_COMPLETE, False),
        (DecisionRow.UNJUDGED_CONCERNS, False),
    }


def test_a_new_critical_finding_takes_down_even_while_the_judge_is_down() -> None:
    again = decide_rescan(
        StaticReport("r2", findings=CRITICAL), JUDGE_DOWN, certification=Certification.VERIFIED
    )
    assert (again.outcome, again.next_state) == (RescanOutcome.TAKE_DOWN, State.NEEDS_REVIEW)


@pytest.mark.parametrize(
    ("judge", "before", "after"),
    [
        (NO_JUDGE, "SCANNED", "SCANNED"),
        (NO_JUDGE, "VERIFIED", "VERIFIED"),
        (JUDGE_DOWN, "VERIFIED", "VERIFIED"),
        (JUDGE_DOWN, "CERTIFIED", "SCANNED"),
        (JudgeReport(JudgeStatus.ANSWERED, Verdict.PASS, 90), "SCANNED", "VERIFIED"),
    ],
)
def test_certification_is_updated_in_place(judge: JudgeReport, before: str, after: str) -> None:
    again = decide_rescan(StaticReport("r2"), judge, certification=Certification(before))
    assert (again.outcome, again.certification) == (RescanOutcome.KEEP, after)
