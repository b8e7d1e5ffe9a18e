"""Two judges: the whole table of their answers, written a second time and plainly; and what the operator requires."""

import itertools

import msgspec
import pytest

from vskill_core.findings import (
    JUDGE_DOWN,
    NO_JUDGE,
    Confirmation,
    Finding,
    FindingCategory,
    FindingKind,
    JudgeReport,
    JudgeStatus,
    Severity,
    StaticReport,
    Verdict,
)
from vskill_platform.domain.evidence import evidence_of
from vskill_platform.domain.judges import missing_answers, rank_judges
from vskill_platform.domain.signals import MatchedRule, RuleEffect
from vskill_platform.domain.skills.skill import Certification
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.verdicts.decision import BlockScope, DecisionRow, decide, is_automatic
from vskill_platform.domain.verdicts.rescan_decision import RescanOutcome, decide_rescan

CRITICAL = Finding(
    "X-001", Severity.CRITICAL, FindingCategory.EXFILTRATION, FindingKind.MALICE, "SKILL.md", 3
)
CLEAN, SUSPECT = StaticReport("r1"), StaticReport("r1", findings=(CRITICAL,))
UNMET = MatchedRule("needs", RuleEffect.REVIEW, "bandit must pass it, and says FAIL (2 findings)")


def answer(points: int, verdict: Verdict, model: str = "m", *, confirmed: bool | None = None) -> JudgeReport:
    words = () if confirmed is None else (Confirmation(CRITICAL.key, confirmed=confirmed),)
    return JudgeReport(JudgeStatus.ANSWERED, verdict, points, "why", words, model)


#: Answers by the side that they are on: each boundary of the table, and scores that contradict their verdict.
APPROVALS = [answer(80, Verdict.PASS), answer(100, Verdict.PASS)]
DOUBTS = [answer(79, Verdict.PASS), answer(40, Verdict.CONCERNS), answer(90, Verdict.CONCERNS)]
REJECTIONS = [answer(39, Verdict.PASS), answer(0, Verdict.FAIL), answer(95, Verdict.FAIL)]
SIDES = {"approves": APPROVALS, "unsure": DOUBTS, "rejects": REJECTIONS}
BOTH = {
    "approves": (State.AUTO_APPROVED, DecisionRow.JUDGE_PASS),
    "unsure": (State.NEEDS_REVIEW, DecisionRow.JUDGE_UNSURE),
    "rejects": (State.REJECTED, DecisionRow.JUDGE_FAIL),
}


@pytest.mark.parametrize(("one", "other"), list(itertools.product(SIDES, SIDES)))
def test_two_judges_decide_where_they_agree_and_a_reviewer_where_they_do_not(one: str, other: str) -> None:
    disagree = (State.NEEDS_REVIEW, DecisionRow.JUDGES_DISAGREE)
    for first, second in itertools.product(SIDES[one], SIDES[other]):
        decision = decide(CLEAN, first, second=second)
        assert (decision.next_state, decision.row) == (BOTH[one] if one == other else disagree)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("absent", [JUDGE_DOWN, NO_JUDGE, JudgeReport(JudgeStatus.ANSWERED, None, 90)])
def test_one_that_did_not_answer_leaves_the_decision_to_the_other(side: str, absent: JudgeReport) -> None:
    for only in SIDES[side]:
        for pair in ((only, absent), (absent, only)):
            decision = decide(CLEAN, pair[0], second=pair[1])
            assert (decision.next_state, decision.row) == BOTH[side]


def test_a_disagreement_names_both_models_and_what_each_said() -> None:
    decision = decide(CLEAN, answer(92, Verdict.PASS, "large"), second=answer(10, Verdict.FAIL, "small"))
    assert decision.reason == "the judges disagree: small: FAIL, score 10 and large: PASS, score 92"
    agreed = decide(CLEAN, answer(92, Verdict.PASS, "large"), second=answer(85, Verdict.PASS, "small"))
    assert agreed.reason == "passed the static scan and both judges (score 85 and 92)"
    assert agreed.certification is Certification.VERIFIED


def test_a_reason_says_how_many_judges_it_comes_from() -> None:
    unsure, condemns = answer(60, Verdict.CONCERNS, "large"), answer(10, Verdict.FAIL, confirmed=True)
    assert decide(CLEAN, unsure).reason == "the judge is not sure (CONCERNS, score 60)"
    both = decide(CLEAN, unsure, second=answer(50, Verdict.CONCERNS, "small"))
    told = "small: CONCERNS, score 50 and large: CONCERNS, score 60"
    assert both.reason == f"both judges are not sure ({told})"
    confirmed = "confirmed a critical finding or failed the skill (X-001)"
    assert decide(SUSPECT, condemns).reason == f"the judge {confirmed}"
    assert decide(SUSPECT, condemns, second=condemns).reason == f"both judges {confirmed}"


@pytest.mark.parametrize(
    ("first", "second", "row"),
    [
        # Both condemn it, each for a reason of its own: confirming the finding, or rejecting the skill.
        (answer(90, Verdict.PASS, confirmed=True), answer(10, Verdict.FAIL), DecisionRow.CRITICAL_CONFIRMED),
        (answer(70, Verdict.CONCERNS, confirmed=True), JUDGE_DOWN, DecisionRow.CRITICAL_CONFIRMED),
        # One confirms and one clears it: nobody is blocked on half a word.
        (
            answer(20, Verdict.FAIL, confirmed=True),
            answer(90, Verdict.PASS, confirmed=False),
            DecisionRow.CRITICAL_OPEN,
        ),
        (
            answer(90, Verdict.PASS, confirmed=False),
            answer(59, Verdict.CONCERNS, confirmed=False),
            DecisionRow.CRITICAL_OPEN,
        ),
        (
            answer(90, Verdict.PASS, confirmed=False),
            answer(85, Verdict.PASS, confirmed=False),
            DecisionRow.CRITICAL_CLEARED,
        ),
        (
            answer(90, Verdict.PASS, confirmed=False),
            answer(60, Verdict.CONCERNS, confirmed=False),
            DecisionRow.JUDGES_DISAGREE,
        ),
        (JUDGE_DOWN, JUDGE_DOWN, DecisionRow.CRITICAL_OPEN),
    ],
)
def test_a_critical_finding_is_confirmed_or_cleared_by_all_who_answered(first, second, row) -> None:
    for pair in ((first, second), (second, first)):
        decision = decide(SUSPECT, pair[0], second=pair[1])
        assert decision.row is row
        blocked = row is DecisionRow.CRITICAL_CONFIRMED
        assert decision.next_state is (State.BLOCKED if blocked else State.NEEDS_REVIEW)
        assert decision.block is (BlockScope.PLACE if blocked else BlockScope.NONE)


def test_a_harsher_answer_never_gives_a_milder_state() -> None:
    order = [State.AUTO_APPROVED, State.NEEDS_REVIEW, State.REJECTED, State.BLOCKED]
    for report, (milder, harsher) in itertools.product((CLEAN, SUSPECT), itertools.combinations(SIDES, 2)):
        for one, worse, other in itertools.product(
            SIDES[milder], SIDES[harsher], itertools.chain(*SIDES.values())
        ):
            before, after = decide(report, one, second=other), decide(report, worse, second=other)
            assert order.index(after.next_state) >= order.index(before.next_state)


def test_the_lower_score_is_the_one_that_the_record_shows_first() -> None:
    low, high = answer(81, Verdict.PASS, "low"), answer(99, Verdict.PASS, "high")
    for pair in ((low, high), (high, low)):
        evidence = evidence_of("d" * 64, CLEAN, pair[0], second=pair[1])
        assert evidence.judge is not None and evidence.second_judge is not None
        assert (evidence.judge.model, evidence.second_judge.model) == ("low", "high")
    one = evidence_of("d" * 64, CLEAN, JUDGE_DOWN, second=high)
    assert one.judge is not None and one.judge.model == "high"
    assert (one.judge_status, one.second_judge_status) == (JudgeStatus.ANSWERED, JudgeStatus.DOWN)
    assert rank_judges(NO_JUDGE, JUDGE_DOWN) == (JUDGE_DOWN, NO_JUDGE)


# Rescans.


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        (APPROVALS[0], REJECTIONS[0], RescanOutcome.REVIEW),
        (REJECTIONS[0], REJECTIONS[1], RescanOutcome.TAKE_DOWN),
        (APPROVALS[0], JUDGE_DOWN, RescanOutcome.KEEP),
        (JUDGE_DOWN, JUDGE_DOWN, RescanOutcome.KEEP),
    ],
)
def test_a_rescan_takes_nothing_down_on_the_word_of_one_of_two(first, second, outcome) -> None:
    again = decide_rescan(CLEAN, first, second=second, certification=Certification.VERIFIED)
    assert again.outcome is outcome


def test_a_rescan_waits_where_no_judge_answered_and_one_is_down() -> None:
    weak = tuple(
        Finding(f"W-{n}", Severity.MEDIUM, FindingCategory.STRUCTURE, FindingKind.MISMATCH) for n in range(3)
    )
    again = decide_rescan(
        StaticReport("r1", findings=weak),
        NO_JUDGE,
        second=JUDGE_DOWN,
        certification=Certification.VERIFIED,
    )
    assert again.outcome is RescanOutcome.UNDECIDED


# What the operator requires.


def test_what_is_required_and_missing_sends_an_approved_skill_to_a_reviewer_and_changes_no_other_row() -> (
    None
):
    held = decide(CLEAN, APPROVALS[0], matched=[UNMET])
    assert (held.next_state, held.row) == (State.NEEDS_REVIEW, DecisionRow.POLICY)
    assert held.reason.startswith(UNMET.reason)
    vendor = decide(CLEAN, NO_JUDGE, trusted_vendor=True, matched=[UNMET])
    assert vendor.next_state is State.NEEDS_REVIEW
    for judge in (*DOUBTS, *REJECTIONS):
        other = decide(CLEAN, judge)
        # Maintainers decide about no verdict that is missing.
        assert decide(CLEAN, judge, matched=[UNMET]) == msgspec.structs.replace(other, own_review=False)
    assert decide(CLEAN, NO_JUDGE, approved_by="admin:ann", matched=[UNMET]).next_state is State.AUTO_APPROVED


def test_only_what_no_person_approved_is_automatic() -> None:
    assert is_automatic(decide(CLEAN, APPROVALS[0]))
    assert not is_automatic(decide(CLEAN, NO_JUDGE, approved_by="admin:ann"))
    assert not is_automatic(decide(CLEAN, REJECTIONS[0]))


@pytest.mark.parametrize(
    ("reports", "required", "told"),
    [
        ((NO_JUDGE, NO_JUDGE), 0, ()),
        ((APPROVALS[0], NO_JUDGE), 1, ()),
        ((APPROVALS[0], APPROVALS[1]), 2, ()),
        ((JUDGE_DOWN, NO_JUDGE), 1, ("1 judge must have read it, and none did",)),
        ((APPROVALS[0], JUDGE_DOWN), 2, ("2 judges must have read it, and 1 did",)),
        ((JUDGE_DOWN, JUDGE_DOWN), 2, ("2 judges must have read it, and none did",)),
    ],
)
def test_answers_that_are_required_are_counted(reports, required: int, told: tuple[str, ...]) -> None:
    assert missing_answers(reports, required) == told
