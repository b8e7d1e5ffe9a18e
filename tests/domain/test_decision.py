"""The decision table: total over every combination of inputs, each row reached, a reason each time."""

import itertools
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from vskill_core.findings import (
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
from vskill_platform.domain.signals import NEEDS_RULE, MatchedRule, RuleEffect, Signal, SignalKind
from vskill_platform.domain.skills.skill import Certification
from vskill_platform.domain.submissions.states import TRANSITIONS, State
from vskill_platform.domain.verdicts.decision import (
    BlockScope,
    Decision,
    DecisionRow,
    decide,
    is_automatic,
    judge_can_change,
)
from vskill_platform.domain.verdicts.facts import Facts, OwnerFacts, SignalFacts
from vskill_platform.domain.verdicts.policy import DEFAULT_POLICY, load_policy, match_rules
from vskill_platform.domain.verdicts.rescan_decision import RescanOutcome, decide_rescan


def found(
    severity: Severity, count: int = 1, kind: FindingKind = FindingKind.MALICE, *, certain: bool = False
) -> tuple[Finding, ...]:
    """Findings of as many rules."""
    rule, category = f"{kind.value}-{severity.value}", FindingCategory.INSTRUCTION
    return tuple(
        Finding(f"{rule}-{n}", severity, category, kind, file="SKILL.md", line=n, certain=certain)
        for n in range(1, count + 1)
    )


CRITICAL = found(Severity.CRITICAL)
MISMATCH = FindingKind.MISMATCH
#: findings by name, with each verdict without and with critical ones
FINDINGS: dict[str, tuple[Finding, ...]] = {
    "clean": (),
    "capability": found(Severity.CRITICAL, 3, FindingKind.CAPABILITY),
    "weak": found(Severity.LOW),
    "strong": found(Severity.HIGH),
    "weak-concerns": found(Severity.MEDIUM, 3),
    "weak-below-50": found(Severity.MEDIUM, 7),
    "concerns": found(Severity.HIGH, 2),
    "fail": found(Severity.HIGH, 4),
    "one-rule-often": found(Severity.HIGH) * 20,
    "mismatch": found(Severity.HIGH, 1, MISMATCH),
    "mismatch-below-50": found(Severity.HIGH, 4, MISMATCH),
    "mismatch-critical": found(Severity.CRITICAL, 1, MISMATCH),
    "critical": CRITICAL,
    "critical-two": found(Severity.CRITICAL, 2),
    "critical-and-concerns": CRITICAL + found(Severity.HIGH, 1, MISMATCH),
    "critical-and-fail": CRITICAL + found(Severity.HIGH, 2),
    "certain": found(Severity.CRITICAL, certain=True),
}
#: weak findings, by the static score that they leave
SCORES: dict[int, tuple[Finding, ...]] = {
    49: found(Severity.MEDIUM, 6) + found(Severity.LOW),
    50: found(Severity.MEDIUM, 4) + found(Severity.LOW, 6),
    79: found(Severity.LOW, 7),
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


@cache
def by_default(signals: tuple[Signal, ...], *, trusted: bool = False) -> tuple[MatchedRule, ...]:
    """What the default policy says about these signals."""
    facts = Facts(owner=OwnerFacts(trusted=trusted), signals=SignalFacts.of(signals))
    return match_rules(load_policy(DEFAULT_POLICY), facts)


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

    def decide(self, *rules: MatchedRule, team: str | None = None) -> Decision:
        return decide(
            StaticReport("r1", self.status, self.findings),
            self.judge,
            blocklist_hit=self.hit,
            approved_by=self.approved,
            approved_by_team=team,
            trusted_vendor=self.vendor,
            matched=(*by_default(self.signals, trusted=self.vendor), *rules),
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
                if rest[:2] == (ScanStatus.COMPLETE, None):
                    yield Case(findings, rest[0], judge, rest[1], rest[2], rest[3], (NEW_SECRET,))


def expected(case: Case) -> tuple[State, BlockScope, DecisionRow]:
    state, block, row = table(case)
    if state is not State.AUTO_APPROVED or case.approved:
        return state, block, row
    review = State.NEEDS_REVIEW
    if any(f.kind is FindingKind.MALICE and f.severity is Severity.HIGH for f in case.counted):
        return review, block, DecisionRow.STRONG_MALICE
    if case.critical:
        return review, block, DecisionRow.CRITICAL_CLEARED
    if case.signals and not case.vendor:
        return review, block, DecisionRow.POLICY
    return state, block, row


def table(case: Case) -> tuple[State, BlockScope, DecisionRow]:  # noqa: C901 - one branch per row
    """The table of the design, written down a second time and plainly, row by row."""
    critical, judge = case.critical, case.judge
    answered = judge.answer is not None
    points, verdict = judge.answer or (-1, None)
    words = {w.finding: w.confirmed for w in judge.confirmations}
    static = score(case.counted)
    strong = any(f.kind is FindingKind.MALICE and f.severity.rank >= 2 for f in case.counted)
    if case.hit:
        return State.BLOCKED, BlockScope.NONE, DecisionRow.BLOCKLISTED
    if any(f.certain for f in case.counted):
        return State.BLOCKED, BlockScope.DIGEST, DecisionRow.CERTAIN
    if case.approved:
        return State.AUTO_APPROVED, BlockScope.NONE, DecisionRow.APPROVED
    if case.status is not ScanStatus.COMPLETE:
        return State.NEEDS_REVIEW, BlockScope.NONE, DecisionRow.NOT_COMPLETE
    confirmed = any(words.get(f.key) is True for f in critical)
    if critical and answered and (confirmed or verdict is Verdict.FAIL or points < 40):
        return State.BLOCKED, BlockScope.PLACE, DecisionRow.CRITICAL_CONFIRMED
    if static < 50 and strong:
        return State.TIER1_FAILED, BlockScope.NONE, DecisionRow.STATIC_FAIL
    if critical and not (answered and points >= 60 and all(words.get(f.key) is False for f in critical)):
        return State.NEEDS_REVIEW, BlockScope.NONE, DecisionRow.CRITICAL_OPEN
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
    """But for the one that needs a second judge: `test_decision_judges` reaches it."""
    assert {case.decide().row for case in CASES} == set(DecisionRow) - {DecisionRow.JUDGES_DISAGREE}


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


def test_a_trusted_vendors_mismatches_and_signals_do_not_count_but_its_malice_does() -> None:
    for name in ("mismatch-below-50", "mismatch-critical"):
        static = StaticReport("r1", findings=FINDINGS[name])
        assert decide(static, NO_JUDGE).next_state is not State.AUTO_APPROVED
        vendor = decide(
            static, NO_JUDGE, trusted_vendor=True, matched=by_default((NEW_SECRET,), trusted=True)
        )
        assert (vendor.next_state, vendor.certification) == (State.AUTO_APPROVED, Certification.CERTIFIED)
    malice = decide(StaticReport("r1", findings=FINDINGS["fail"]), NO_JUDGE, trusted_vendor=True)
    assert malice.next_state is State.TIER1_FAILED
    strong = decide(StaticReport("r1", findings=FINDINGS["strong"]), NO_JUDGE, trusted_vendor=True)
    assert strong.next_state is State.NEEDS_REVIEW


@pytest.mark.parametrize("name", ["clean", "fail", "critical", "certain"])
def test_a_blocklist_hit_or_a_certain_rule_wins_over_a_reviewers_approval(name: str) -> None:
    static = StaticReport("r1", findings=FINDINGS[name])
    assert decide(static, NO_JUDGE, approved_by="ann", blocklist_hit="bad").next_state is State.BLOCKED
    approved = decide(static, NO_JUDGE, approved_by="ann")
    assert approved.next_state is (State.BLOCKED if name == "certain" else State.AUTO_APPROVED)


def test_a_suppressed_rule_does_not_count_for_that_content() -> None:
    static = StaticReport("r1", findings=FINDINGS["fail"])
    decision = decide(static, NO_JUDGE, suppressed={f"malice-high-{n}" for n in range(1, 5)})
    assert (decision.next_state, decision.score) == (State.AUTO_APPROVED, 100)


def test_one_finding_of_strong_malice_is_never_published_without_a_person() -> None:
    """100 less 15 is 85, and still nobody but a person publishes it; the reviewer reads the judge's word."""
    static = StaticReport("r1", findings=FINDINGS["strong"])
    for judge in (NO_JUDGE, JUDGE_DOWN, JudgeReport(JudgeStatus.ANSWERED, Verdict.PASS, 93)):
        decision = decide(static, judge)
        assert (decision.next_state, decision.score) == (State.NEEDS_REVIEW, 85)
        assert (decision.row, decision.rule_ids) == (DecisionRow.STRONG_MALICE, ("malice-high-1",))
    assert "1 finding of malice (malice-high-1) needs a reviewer" in decision.reason
    assert "passed the static scan and the judge (score 93)" in decision.reason
    assert decide(static, NO_JUDGE, approved_by="admin:ann").next_state is State.AUTO_APPROVED


def test_a_rule_counts_once_however_often_it_matches() -> None:
    """Twenty calls of one API fail nobody; four rules of strong malice do."""
    often = decide(StaticReport("r1", findings=FINDINGS["one-rule-often"]), NO_JUDGE)
    assert (often.next_state, often.score) == (State.NEEDS_REVIEW, 85)
    assert "1 finding of malice (malice-high-1)" in often.reason
    assert decide(StaticReport("r1", findings=FINDINGS["fail"]), NO_JUDGE).next_state is State.TIER1_FAILED


def cleared(findings: tuple[Finding, ...], points: int = 90) -> JudgeReport:
    words = tuple(Confirmation(f.key, confirmed=False) for f in findings if f.severity is Severity.CRITICAL)
    return JudgeReport(JudgeStatus.ANSWERED, Verdict.PASS, points, confirmations=words)


def test_a_reviewer_must_agree_with_a_judge_that_clears_a_critical_finding() -> None:
    decision = decide(StaticReport("r1", findings=CRITICAL), cleared(CRITICAL))
    assert (decision.next_state, decision.row) == (State.NEEDS_REVIEW, DecisionRow.CRITICAL_CLEARED)
    assert (decision.score, decision.rule_ids) == (75, ("malice-critical-1",))
    assert (
        "the judge cleared 1 critical finding (malice-critical-1); a reviewer must agree" in decision.reason
    )


def test_every_doubt_is_named_to_the_reviewer_and_the_gravest_names_the_row() -> None:
    findings = FINDINGS["critical-two"][:1] + FINDINGS["strong"] + FINDINGS["weak"]
    decision = decide(
        StaticReport("r1", findings=findings), cleared(findings), matched=by_default((NEW_SECRET,))
    )
    assert decision.row is DecisionRow.STRONG_MALICE
    assert decision.rule_ids == ("malice-critical-1", "malice-high-1")
    for doubt in ("1 finding of malice (malice-high-1)", "the judge cleared 1 critical", NEW_SECRET.reason):
        assert doubt in decision.reason


def test_several_findings_are_counted_in_the_reason() -> None:
    two = decide(StaticReport("r1", findings=FINDINGS["critical-two"]), JUDGE_DOWN)
    assert two.reason == "2 critical findings (malice-critical-1, malice-critical-2) need a reviewer"
    one = decide(StaticReport("r1", findings=CRITICAL), JUDGE_DOWN)
    assert one.reason == "1 critical finding (malice-critical-1) needs a reviewer"


def test_each_boundary_of_the_static_score_is_exact() -> None:
    """50 and 79 are concerns, 80 passes; 49 fails with strong malice only."""
    rows = {points: decide(StaticReport("r1", findings=these), NO_JUDGE) for points, these in SCORES.items()}
    assert {points: (decision.score, decision.row) for points, decision in rows.items()} == {
        49: (49, DecisionRow.UNJUDGED_CONCERNS),
        50: (50, DecisionRow.UNJUDGED_CONCERNS),
        79: (79, DecisionRow.UNJUDGED_CONCERNS),
        80: (80, DecisionRow.UNJUDGED_PASS),
    }
    strong = found(Severity.HIGH)
    below = decide(StaticReport("r1", findings=strong + found(Severity.LOW, 12)), NO_JUDGE)
    assert (below.score, below.row) == (49, DecisionRow.STATIC_FAIL)
    at = decide(
        StaticReport("r1", findings=strong + found(Severity.MEDIUM, 4) + found(Severity.LOW)), NO_JUDGE
    )
    assert (at.score, at.row) == (50, DecisionRow.UNJUDGED_CONCERNS)


def test_what_fails_fails_whatever_the_judge_clears() -> None:
    findings = FINDINGS["critical-and-fail"]
    assert score(findings) == 45
    assert decide(StaticReport("r1", findings=findings), cleared(findings)).row is DecisionRow.STATIC_FAIL
    condemned = JudgeReport(JudgeStatus.ANSWERED, Verdict.FAIL, 10)
    blocked = decide(StaticReport("r1", findings=findings), condemned)
    assert (blocked.row, blocked.next_state) == (DecisionRow.CRITICAL_CONFIRMED, State.BLOCKED)


def test_the_judge_is_asked_only_where_an_answer_leads_to_another_row() -> None:
    """Asked of every case: no answer at all changes what the judge is not asked about."""
    by_rest: dict[Case, set[DecisionRow]] = {}
    for case in CASES:
        if not case.signals:
            by_rest.setdefault(case._replace(judge=NO_JUDGE), set()).add(case.decide().row)
    for case, rows in by_rest.items():
        asked = judge_can_change(
            StaticReport("r1", case.status, case.findings),
            blocklist_hit=case.hit,
            approved_by=case.approved,
            trusted_vendor=case.vendor,
        )
        assert asked == (len(rows) > 1)
    failed = StaticReport("r1", findings=FINDINGS["fail"])
    assert not judge_can_change(failed)
    assert judge_can_change(failed, suppressed={"malice-high-1", "malice-high-2"})
    vendors = StaticReport("r1", findings=found(Severity.HIGH) + found(Severity.HIGH, 3, MISMATCH))
    assert not judge_can_change(vendors) and judge_can_change(vendors, trusted_vendor=True)


CONFIRMS = JudgeReport(
    JudgeStatus.ANSWERED,
    Verdict.CONCERNS,
    70,
    confirmations=(Confirmation(CRITICAL[0].key, confirmed=True),),
)


@pytest.mark.parametrize(
    ("findings", "judge", "row", "rule_ids", "worst"),
    [
        (
            found(Severity.LOW, certain=True) + FINDINGS["fail"],
            NO_JUDGE,
            DecisionRow.CERTAIN,
            ("malice-low-1",),
            "malice-low-1",
        ),
        (
            CRITICAL + SCORES[80],
            NO_JUDGE,
            DecisionRow.CRITICAL_OPEN,
            ("malice-critical-1",),
            "malice-critical-1",
        ),
        (
            CRITICAL + SCORES[80],
            CONFIRMS,
            DecisionRow.CRITICAL_CONFIRMED,
            ("malice-critical-1",),
            "malice-critical-1",
        ),
        (
            SCORES[80][:2],
            NO_JUDGE,
            DecisionRow.UNJUDGED_PASS,
            ("malice-low-1", "malice-medium-1"),
            "malice-medium-1",
        ),
        (
            found(Severity.LOW, 2),
            NO_JUDGE,
            DecisionRow.UNJUDGED_PASS,
            ("malice-low-1", "malice-low-2"),
            "malice-low-2",
        ),
    ],
)
def test_a_decision_names_the_rules_that_led_to_it_and_no_others(
    findings, judge, row, rule_ids, worst
) -> None:
    decision = decide(StaticReport("r1", findings=findings), judge)
    assert (decision.row, decision.rule_ids) == (row, rule_ids)
    assert decision.worst is not None and decision.worst.rule_id == worst
    assert decide(StaticReport("r1"), NO_JUDGE).worst is None


@pytest.mark.parametrize("findings", [SCORES[50], SCORES[80]])
def test_the_reason_tells_a_judge_that_is_down_from_none_at_all(findings) -> None:
    static = StaticReport("r1", findings=findings)
    assert "no judge is configured" in decide(static, NO_JUDGE).reason
    assert "the judge is down" in decide(static, JUDGE_DOWN).reason


def test_the_reason_names_the_rules_and_the_problem() -> None:
    failed = decide(StaticReport("r1", findings=FINDINGS["fail"]), NO_JUDGE)
    assert failed.rule_ids == tuple(f"malice-high-{n}" for n in range(1, 5))
    assert failed.reason == f"failed the static scan with score 40 ({', '.join(failed.rule_ids)})"
    error = decide(StaticReport("r1", ScanStatus.ERROR, problem="the scanner was killed"), NO_JUDGE)
    assert "the scanner was killed" in error.reason
    assert decide(StaticReport("r1"), NO_JUDGE, blocklist_hit="").reason


def test_a_signal_sends_an_approved_skill_to_a_person_and_says_why() -> None:
    decision = decide(StaticReport("r1"), NO_JUDGE, matched=by_default((NEW_SECRET,)))
    assert decision.next_state is State.NEEDS_REVIEW
    assert NEW_SECRET.reason in decision.reason


# More malice is never milder.

MILDNESS = {
    State.AUTO_APPROVED: 0,
    State.COOLDOWN: 1,
    State.NEEDS_REVIEW: 2,
    State.TIER1_FAILED: 3,
    State.REJECTED: 3,
    State.BLOCKED: 4,
}
ANY_FINDING = st.builds(
    Finding,
    st.sampled_from([f"R-{n}" for n in range(8)]),
    st.sampled_from(Severity),
    st.just(FindingCategory.INSTRUCTION),
    st.sampled_from(FindingKind),
    file=st.sampled_from(["SKILL.md", "run.py"]),
    line=st.integers(1, 3),
    certain=st.sampled_from([False] * 9 + [True]),
)
KEYS = st.builds(
    "{}@{}:{}:0".format, st.sampled_from([f"R-{n}" for n in range(8)]), st.just("SKILL.md"), st.integers(1, 3)
)
ANY_JUDGE = st.one_of(
    st.sampled_from([NO_JUDGE, JUDGE_DOWN]),
    st.builds(
        JudgeReport,
        st.just(JudgeStatus.ANSWERED),
        st.sampled_from(Verdict),
        st.integers(-1, 101),
        confirmations=st.lists(st.builds(Confirmation, KEYS, confirmed=st.booleans()), max_size=4).map(tuple),
    ),
)
ANY_RULE = st.builds(MatchedRule, st.just("rule"), st.sampled_from(RuleEffect), st.just("it is odd"))
#: Effects that change nothing, of a wait once it is over.
QUIET = (RuleEffect.NOTE, RuleEffect.WAIT)
#: Some day, in milliseconds.
LATER = 1_800_000_000_000
ANY_REST = st.fixed_dictionaries(
    {
        "blocklist_hit": st.sampled_from([None, None, None, "blocked"]),
        "approved_by": st.sampled_from([None, None, None, "admin:ann"]),
        "trusted_vendor": st.booleans(),
        "suppressed": st.sets(st.sampled_from(["R-0", "R-1"])),
        "matched": st.lists(ANY_RULE, max_size=3),
        "second": ANY_JUDGE,
    }
)


@settings(max_examples=examples(100), deadline=None)
@given(
    findings=st.lists(ANY_FINDING, max_size=10),
    status=st.sampled_from([ScanStatus.COMPLETE] * 3 + list(ScanStatus)),
    judge=ANY_JUDGE,
    rest=ANY_REST,
    worse=st.sampled_from(Severity),
    data=st.data(),
)
def test_the_rows_are_total_and_more_malice_never_gives_a_milder_state(
    findings, status, judge, rest, worse, data
) -> None:
    decision = decide(StaticReport("r1", status, tuple(findings)), judge, **rest)
    assert decision.next_state in MILDNESS and decision.reason.strip()
    added = data.draw(ANY_FINDING.filter(lambda one: one.kind is FindingKind.MALICE))
    changed = [*findings, added]
    raised = [n for n, one in enumerate(findings) if one.severity.rank < worse.rank]
    if raised and data.draw(st.booleans()):
        place = data.draw(st.sampled_from(raised))
        changed = list(findings)
        changed[place] = msgspec.structs.replace(findings[place], severity=worse)
    again = decide(StaticReport("r1", status, tuple(changed)), judge, **rest)
    assert MILDNESS[again.next_state] >= MILDNESS[decision.next_state]


@settings(max_examples=examples(200), deadline=None)
@given(
    findings=st.lists(ANY_FINDING, max_size=10),
    status=st.sampled_from([ScanStatus.COMPLETE] * 3 + list(ScanStatus)),
    judge=ANY_JUDGE,
    rest=ANY_REST,
    over=st.booleans(),
)
def test_a_policy_only_raises_and_what_it_asks_for_happens(findings, status, judge, rest, over) -> None:
    static, matched = StaticReport("r1", status, tuple(findings)), rest.pop("matched")
    waits = not over and any(rule.then is RuleEffect.WAIT for rule in matched)
    floor = decide(static, judge, **rest)
    decision = decide(static, judge, matched=matched, held_until=LATER if waits else None, **rest)
    assert MILDNESS[decision.next_state] >= MILDNESS[floor.next_state]
    assert (decision.block, decision.score) == (floor.block, floor.score)
    effects = {rule.then for rule in matched}
    by_a_person = floor.row is DecisionRow.APPROVED
    if RuleEffect.REFUSE in effects and not by_a_person:
        assert MILDNESS[decision.next_state] >= MILDNESS[State.REJECTED]
    elif RuleEffect.REVIEW in effects and not by_a_person:
        assert decision.next_state is not State.AUTO_APPROVED
    elif waits and is_automatic(floor):
        assert (decision.next_state, decision.until) in ((State.COOLDOWN, LATER), (State.NEEDS_REVIEW, None))
    if by_a_person or effects <= {RuleEffect.NOTE} or (not waits and effects <= {*QUIET}):
        assert decision == floor
    assert (decision.until is None) == (decision.next_state is not State.COOLDOWN)
    if decision.next_state is not floor.next_state:
        assert "it is odd" in decision.reason and decision.certification is None


def test_a_wait_names_its_rules_its_end_and_what_would_happen_otherwise() -> None:
    rules = [
        MatchedRule("young", RuleEffect.WAIT, "nobody knows them", wait_ms=1),
        MatchedRule("hasty", RuleEffect.WAIT, "the third today", wait_ms=2),
        MatchedRule("shown", RuleEffect.NOTE, "it is red"),
    ]
    decision = decide(StaticReport("r1"), NO_JUDGE, matched=rules, held_until=LATER)
    assert (decision.next_state, decision.row) == (State.COOLDOWN, DecisionRow.POLICY)
    assert decision.reason == (
        "waits until Friday 2027-01-15 08:00 UTC by the rules young, hasty: nobody knows them; the third today; "
        "otherwise it passed the static scan; no judge is configured"
    )
    assert decide(StaticReport("r1"), NO_JUDGE, matched=rules).next_state is State.AUTO_APPROVED
    alone = decide(StaticReport("r1"), NO_JUDGE, matched=rules[:1], held_until=LATER)
    assert "UTC by the rule young: nobody knows them; " in alone.reason


def test_refusing_wins_over_reviewing_and_names_every_rule_that_refuses() -> None:
    rules = [
        MatchedRule("a", RuleEffect.REVIEW, "a person should look"),
        MatchedRule("b", RuleEffect.REFUSE, "no licence"),
        MatchedRule("c", RuleEffect.REFUSE, "no description"),
    ]
    decision = decide(StaticReport("r1"), NO_JUDGE, matched=rules)
    assert (decision.next_state, decision.row) == (State.REJECTED, DecisionRow.POLICY)
    assert decision.reason == "refused by the policy: no licence; no description"


ODD = MatchedRule("odd", RuleEffect.REVIEW, "it is odd")


@pytest.mark.parametrize(
    ("rule", "is_theirs"),
    [
        (ODD, True),
        (msgspec.structs.replace(ODD, then=RuleEffect.NOTE), True),
        (msgspec.structs.replace(ODD, then=RuleEffect.REFUSE), False),
        (msgspec.structs.replace(ODD, failed=True), False),
        (msgspec.structs.replace(ODD, name=NEEDS_RULE), False),
    ],
)
def test_maintainers_of_a_namespace_decide_about_concerns_and_rules_and_about_nothing_graver(
    rule, is_theirs
) -> None:
    own_rows = {DecisionRow.JUDGE_UNSURE, DecisionRow.UNJUDGED_CONCERNS, DecisionRow.POLICY}
    seen = set()
    for case in CASES[::13]:
        decision = case.decide(rule)
        grave = (
            any(f.kind is FindingKind.MALICE and f.severity.rank >= 2 for f in case.counted) or case.critical
        )
        doubtful = decision.next_state is State.NEEDS_REVIEW and decision.row in own_rows
        assert decision.own_review == (doubtful and is_theirs and not grave)
        approved = case.decide(rule, team="user:olga")
        if not decision.own_review:
            assert approved == decision
            continue
        assert (approved.next_state, approved.row) == (State.AUTO_APPROVED, DecisionRow.APPROVED)
        assert approved.reason == "a maintainer of its namespace approved these bytes (user:olga)"
        assert approved.certification is not None and not approved.own_review
        seen.add(decision.row)
    assert bool(seen) == is_theirs and seen <= own_rows


# Rescan.


#: A rescan asks for no signals.
RESCANNED = [case for case in CASES if not case.signals]


def rescan(case: Case, certification: Certification):
    return decide_rescan(
        StaticReport("r2", case.status, case.findings),
        case.judge,
        certification=certification,
        blocklist_hit=case.hit,
        approved_by=case.approved,
        trusted_vendor=case.vendor,
    )


@pytest.mark.slow
def test_a_rescan_is_total_and_never_better_than_the_decision() -> None:
    for (case, decision), before in itertools.product(
        ((one, one.decide()) for one in RESCANNED), Certification
    ):
        again = rescan(case, before)
        assert again.reason == decision.reason
        assert (again.block, again.score, again.rule_ids) == (
            decision.block,
            decision.score,
            decision.rule_ids,
        )
        assert again.outcome is RescanOutcome.KEEP or again.worst == decision.worst
        assert (again.outcome is RescanOutcome.KEEP) == (decision.next_state is State.AUTO_APPROVED)
        assert (again.certification is not None) == (again.outcome is RescanOutcome.KEEP)
        if again.outcome is RescanOutcome.TAKE_DOWN:
            blocked = decision.next_state is State.BLOCKED
            assert again.next_state is (State.BLOCKED if blocked else State.NEEDS_REVIEW)
            assert again.next_state in TRANSITIONS[State.PUBLISHED]
        else:
            assert again.next_state is None


def test_a_rescan_takes_down_what_is_known_critical_or_fails_and_leaves_doubts_live() -> None:
    outcomes: dict[DecisionRow, set[RescanOutcome]] = {}
    for case in RESCANNED:
        outcomes.setdefault(case.decide().row, set()).add(rescan(case, Certification.VERIFIED).outcome)
    down, review, keep = {RescanOutcome.TAKE_DOWN}, {RescanOutcome.REVIEW}, {RescanOutcome.KEEP}
    assert outcomes == {
        DecisionRow.BLOCKLISTED: down,
        DecisionRow.CERTAIN: down,
        DecisionRow.APPROVED: keep,
        DecisionRow.NOT_COMPLETE: {RescanOutcome.UNDECIDED, RescanOutcome.REVIEW},
        DecisionRow.CRITICAL_CONFIRMED: down,
        DecisionRow.STATIC_FAIL: down,
        DecisionRow.CRITICAL_OPEN: down,
        DecisionRow.JUDGE_PASS: keep,
        DecisionRow.JUDGE_FAIL: down,
        DecisionRow.JUDGE_UNSURE: review,
        DecisionRow.UNJUDGED_PASS: keep,
        DecisionRow.UNJUDGED_CONCERNS: {RescanOutcome.UNDECIDED, RescanOutcome.REVIEW},
        DecisionRow.STRONG_MALICE: review,
        DecisionRow.CRITICAL_CLEARED: review,
    }


def test_a_rescan_knows_trusted_vendors_and_suppressed_rules() -> None:
    static = StaticReport("r2", findings=FINDINGS["mismatch-critical"])
    verified = Certification.VERIFIED
    assert decide_rescan(static, NO_JUDGE, certification=verified).outcome is RescanOutcome.TAKE_DOWN
    for known in ({"trusted_vendor": True}, {"suppressed": {"mismatch-critical-1"}}):
        assert decide_rescan(static, NO_JUDGE, certification=verified, **known).outcome is RescanOutcome.KEEP


@pytest.mark.parametrize(
    ("static", "judge", "outcome"),
    [
        (StaticReport("r2", ScanStatus.ERROR), NO_JUDGE, RescanOutcome.UNDECIDED),
        (StaticReport("r2", ScanStatus.TIMED_OUT), NO_JUDGE, RescanOutcome.UNDECIDED),
        (StaticReport("r2", ScanStatus.INCOMPLETE), NO_JUDGE, RescanOutcome.REVIEW),
        (StaticReport("r2", findings=SCORES[79]), JUDGE_DOWN, RescanOutcome.UNDECIDED),
        (StaticReport("r2", findings=SCORES[79]), NO_JUDGE, RescanOutcome.REVIEW),
        (StaticReport("r2", findings=CRITICAL), JUDGE_DOWN, RescanOutcome.TAKE_DOWN),
    ],
)
def test_an_outage_changes_nothing_but_an_unreadable_file_is_a_doubt(
    static: StaticReport, judge: JudgeReport, outcome: RescanOutcome
) -> None:
    """A scanner that fails, or a judge that is down, must not take the whole marketplace down. A file that can never
    be read whole would be tried for ever."""
    assert decide_rescan(static, judge, certification=Certification.VERIFIED).outcome is outcome


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


LISTED = Finding("KB-1", Severity.LOW, FindingCategory.KNOWN_BAD, FindingKind.MALICE, certain=True)


@pytest.mark.parametrize(
    ("findings", "known", "at_once"),
    [
        ((LISTED,), {}, True),
        ((msgspec.structs.replace(LISTED, certain=False), *FINDINGS["certain"]), {}, False),
        (FINDINGS["certain"], {}, False),
        (FINDINGS["fail"], {}, False),
        (FINDINGS["clean"], {"blocklist_hit": "on the blocklist"}, True),
    ],
)
def test_only_what_the_operator_listed_is_taken_down_without_the_brake(findings, known, at_once) -> None:
    static = StaticReport("r2", findings=findings)
    again = decide_rescan(static, NO_JUDGE, certification=Certification.VERIFIED, **known)
    assert (again.outcome, again.at_once) == (RescanOutcome.TAKE_DOWN, at_once)


def test_a_signal_that_is_only_shown_holds_nothing() -> None:
    noted = msgspec.structs.replace(NEW_SECRET, holds=False)
    assert (
        decide(StaticReport("r1"), NO_JUDGE, matched=by_default((noted,))).next_state is State.AUTO_APPROVED
    )
    both = decide(StaticReport("r1"), NO_JUDGE, matched=by_default((noted, NEW_SECRET)))
    assert both.row is DecisionRow.POLICY
    assert both.reason.count(NEW_SECRET.reason) == 1
