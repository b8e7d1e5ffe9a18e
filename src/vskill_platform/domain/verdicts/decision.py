"""The one decision: from the reports of both tiers to the next state, with its reason.

The pipeline calls `decide` once both tiers have reported, `rescan_decision` about live content, and nothing else
in the project decides about a skill. It is pure and total: every combination of reports has exactly one
answer. The first row that matches gives it; then what would be published and is doubtful is raised to a review, and
the policy's rules raise what they match, or let it wait. Nothing is ever lowered.
"""

import enum
from collections.abc import Collection
from datetime import UTC, datetime
from typing import TypedDict, Unpack

import msgspec

from vskill_core.findings import (
    NO_JUDGE,
    Finding,
    JudgeReport,
    JudgeStatus,
    ScanStatus,
    StaticReport,
    Verdict,
    counting,
    criticals,
    score,
    strong_malice,
    verdict_of,
)
from vskill_platform.domain.judges import JudgeSide, clears, condemns, rank_judges, side_of
from vskill_platform.domain.signals import NEEDS_RULE, MatchedRule, RuleEffect
from vskill_platform.domain.skills.skill import Certification, certification_for
from vskill_platform.domain.submissions.states import State

#: The answer that changes most: a decision that stays the same under it needs no judge.
_WORST_ANSWER = JudgeReport(JudgeStatus.ANSWERED, Verdict.FAIL, 0)


class Grounds(TypedDict, total=False):
    """What counts beside the reports, the policy's rules apart."""

    #: why the skill is blocked, if it is
    blocklist_hit: str | None
    #: the reviewer who approved exactly this digest
    approved_by: str | None
    #: the maintainer of its namespace who approved it: counts for what maintainers may decide, and for nothing else
    approved_by_team: str | None
    trusted_vendor: bool
    #: rules that a reviewer judged false for this digest
    suppressed: Collection[str]


class BlockScope(enum.StrEnum):
    """Which blocklist entry a decision asks for."""

    NONE = "none"
    PLACE = "place"
    DIGEST = "digest"


class DecisionRow(enum.StrEnum):
    """The rows of the table, in the order in which they are tried."""

    BLOCKLISTED = "blocklisted"
    CERTAIN = "certain"
    #: a person's approval of exactly these bytes overrides all rows below
    APPROVED = "approved"
    NOT_COMPLETE = "not-complete"
    CRITICAL_CONFIRMED = "critical-confirmed"
    STATIC_FAIL = "static-fail"
    CRITICAL_OPEN = "critical-open"
    JUDGE_PASS = "judge-pass"  # noqa: S105 - a row's name
    JUDGE_FAIL = "judge-fail"
    JUDGE_UNSURE = "judge-unsure"
    #: of two judges that answered, each stands on another side
    JUDGES_DISAGREE = "judges-disagree"
    UNJUDGED_PASS = "unjudged-pass"  # noqa: S105 - a row's name
    UNJUDGED_CONCERNS = "unjudged-concerns"
    #: not tried in turn: a row above would publish it, and this sends it to a person
    STRONG_MALICE = "strong-malice"
    CRITICAL_CLEARED = "critical-cleared"
    #: a rule of the policy sends it to a person, refuses it or lets it wait
    POLICY = "policy"


class Decision(msgspec.Struct, frozen=True, omit_defaults=True):
    """What happens next, and why."""

    next_state: State
    #: never empty; a sentence for the author
    reason: str
    row: DecisionRow
    #: of the findings that led here
    rule_ids: tuple[str, ...] = ()
    #: only where the next state is AUTO_APPROVED
    certification: Certification | None = None
    block: BlockScope = BlockScope.NONE
    #: of the findings that count
    score: int = 0
    #: the worst of the findings that led here; None where none did
    worst: Finding | None = None
    #: only where the next state is COOLDOWN: when it is decided again
    until: int | None = None
    #: maintainers of a namespace that reviews itself may decide instead of a reviewer
    own_review: bool = False


class _Case(msgspec.Struct, frozen=True):
    """Everything that one decision depends on; `findings` are only those that count."""

    static: StaticReport
    findings: tuple[Finding, ...]
    #: the word that counts first
    judges: tuple[JudgeReport, JudgeReport]
    blocklist_hit: str | None
    approved_by: str | None
    trusted_vendor: bool
    matched: tuple[MatchedRule, ...]
    held_until: int | None

    @property
    def score(self) -> int:
        return score(self.findings)

    @property
    def criticals(self) -> tuple[Finding, ...]:
        return criticals(self.findings)

    @property
    def answered(self) -> tuple[JudgeReport, ...]:
        return tuple(report for report in self.judges if report.answer is not None)


def decide(
    static: StaticReport,
    judge: JudgeReport,
    *,
    second: JudgeReport = NO_JUDGE,
    matched: Collection[MatchedRule] = (),
    held_until: int | None = None,
    **grounds: Unpack[Grounds],
) -> Decision:
    """The next state of a submission. `second` is the report of a second judge, `matched` are the rules of the policy
    that matched it, `held_until` is when the longest wait among them ends, unless it is over."""
    trusted_vendor = grounds.get("trusted_vendor", False)
    suppressed = grounds.get("suppressed", ())
    case = _Case(
        static,
        counting(static.findings, trusted_vendor=trusted_vendor, suppressed=suppressed),
        rank_judges(judge, second),
        grounds.get("blocklist_hit"),
        grounds.get("approved_by"),
        trusted_vendor,
        tuple(matched),
        held_until,
    )
    decision = _before_the_judge(case) or _on_strong_findings(case) or _on_the_rest(case)
    decision = _refuse(case, decision) or _let_wait(case, _raise_to_review(case, decision))
    if not _may_be_own(case, decision):
        return decision
    if (maintainer := grounds.get("approved_by_team")) is not None:
        told = f"a maintainer of its namespace approved these bytes ({maintainer})"
        return _approve(case, DecisionRow.APPROVED, told)
    return msgspec.structs.replace(decision, own_review=True)


def judge_can_change(static: StaticReport, **grounds: Unpack[Grounds]) -> bool:
    """Whether any answer of a judge would lead to another row."""
    return decide(static, NO_JUDGE, **grounds).row is not decide(static, _WORST_ANSWER, **grounds).row


def is_automatic(decision: Decision) -> bool:
    """Whether it publishes without a person's word on these bytes."""
    return decision.next_state is State.AUTO_APPROVED and decision.row is not DecisionRow.APPROVED


def can_be_raised(decision: Decision) -> bool:
    """Whether a rule of the policy could still change it."""
    return is_automatic(decision) or decision.next_state is State.NEEDS_REVIEW


# The rows, in their order.


def _before_the_judge(case: _Case) -> Decision | None:
    certain = tuple(finding for finding in case.findings if finding.certain)
    if case.blocklist_hit is not None:
        reason = case.blocklist_hit or "on the blocklist"
        return _make_decision(case, DecisionRow.BLOCKLISTED, State.BLOCKED, reason)
    if certain:
        reason = f"known to be malicious ({_names(certain)})"
        return _make_decision(
            case, DecisionRow.CERTAIN, State.BLOCKED, reason, block=BlockScope.DIGEST, findings=certain
        )
    if case.approved_by is not None:
        return _approve(case, DecisionRow.APPROVED, f"a reviewer approved these bytes ({case.approved_by})")
    if case.static.status is not ScanStatus.COMPLETE:
        problem = case.static.problem or "no further detail"
        reason = f"the static scan did not finish ({case.static.status.value}): {problem}"
        return _make_decision(case, DecisionRow.NOT_COMPLETE, State.NEEDS_REVIEW, reason)
    return None


def _on_strong_findings(case: _Case) -> Decision | None:
    """None where the scan did not fail, and nothing is critical or the judge cleared every critical finding."""
    found = case.criticals
    if found and _judges_condemn(case):
        who = _judges_name(case)
        reason = f"{who} confirmed a critical finding or failed the skill ({_names(found)})"
        row = DecisionRow.CRITICAL_CONFIRMED
        return _make_decision(case, row, State.BLOCKED, reason, block=BlockScope.PLACE, findings=found)
    # Whatever a judge clears: so much that speaks against a skill needs its author, not a reviewer.
    if verdict_of(case.findings) is Verdict.FAIL:
        reason = f"failed the static scan with score {case.score} ({_names(case.findings)})"
        return _make_decision(case, DecisionRow.STATIC_FAIL, State.TIER1_FAILED, reason)
    if found and not _judges_clear(case):
        reason = _needs_reviewer(found, "critical finding")
        return _make_decision(case, DecisionRow.CRITICAL_OPEN, State.NEEDS_REVIEW, reason, findings=found)
    return None


def _on_the_rest(case: _Case) -> Decision:
    answered = case.answered
    if not answered:
        return _decide_without_judge(case)
    told = " and ".join(_describe_answer(report, named=len(answered) > 1) for report in answered)
    sides = {side_of(report.answer) for report in answered if report.answer is not None}
    if len(sides) > 1:
        reason = f"the judges disagree: {told}"
        return _make_decision(case, DecisionRow.JUDGES_DISAGREE, State.NEEDS_REVIEW, reason)
    judge = _judges_name(case)
    match sides.pop():
        case JudgeSide.APPROVES:
            points = " and ".join(str(report.score) for report in answered)
            reason = f"passed the static scan and {judge} (score {points})"
            return _approve(case, DecisionRow.JUDGE_PASS, reason)
        case JudgeSide.REJECTS:
            return _make_decision(
                case, DecisionRow.JUDGE_FAIL, State.REJECTED, f"rejected by {judge} ({told})"
            )
        case JudgeSide.UNSURE:
            reason = f"{judge} {'is' if len(answered) == 1 else 'are'} not sure ({told})"
            return _make_decision(case, DecisionRow.JUDGE_UNSURE, State.NEEDS_REVIEW, reason)


def _judges_name(case: _Case) -> str:
    return "both judges" if len(case.answered) > 1 else "the judge"


def _describe_answer(report: JudgeReport, *, named: bool) -> str:
    said = f"{report.verdict}, score {report.score}"
    return f"{report.model}: {said}" if named else said


def _decide_without_judge(case: _Case) -> Decision:
    none = case.judges[0].status is JudgeStatus.NONE
    absent = "no judge is configured" if none else "the judge is down"
    if verdict_of(case.findings) is Verdict.PASS:
        return _approve(case, DecisionRow.UNJUDGED_PASS, f"passed the static scan; {absent}")
    reason = f"the static scan has concerns (score {case.score}, {_names(case.findings)}), and {absent}"
    return _make_decision(case, DecisionRow.UNJUDGED_CONCERNS, State.NEEDS_REVIEW, reason)


#: Rows that maintainers of a namespace that reviews itself may decide about.
_OWN_ROWS = frozenset({DecisionRow.JUDGE_UNSURE, DecisionRow.UNJUDGED_CONCERNS, DecisionRow.POLICY})


def _may_be_own(case: _Case, decision: Decision) -> bool:
    """Concerns, signals and rules of the policy: nothing critical, no strong malice, nothing that was not looked at."""
    is_doubtful = decision.next_state is State.NEEDS_REVIEW and decision.row in _OWN_ROWS
    was_looked_at = not any(rule.failed or rule.name == NEEDS_RULE for rule in case.matched)
    return is_doubtful and was_looked_at and not case.criticals and not strong_malice(case.findings)


def _refuse(case: _Case, decision: Decision) -> Decision | None:
    """None where no rule of the policy refuses it, or it ends as badly already."""
    reasons = [rule.reason for rule in case.matched if rule.then is RuleEffect.REFUSE]
    if not reasons or not can_be_raised(decision):
        return None
    reason = f"refused by the policy: {'; '.join(reasons)}"
    return _make_decision(case, DecisionRow.POLICY, State.REJECTED, reason)


def _raise_to_review(case: _Case, decision: Decision) -> Decision:
    """Send to a person what would be published and is doubtful, unless a person approved these very bytes. Nothing is
    ever lowered here, and the judge's word is kept for the reviewer."""
    if not is_automatic(decision):
        return decision
    cleared = case.criticals
    strong = tuple(finding for finding in strong_malice(case.findings) if finding not in cleared)
    doubts: list[tuple[DecisionRow, str]] = []
    if strong:
        doubts.append((DecisionRow.STRONG_MALICE, _needs_reviewer(strong, "finding of malice")))
    if cleared:
        found = _count(cleared, "critical finding")
        reason = f"{_judges_name(case)} cleared {found}; a reviewer must agree"
        doubts.append((DecisionRow.CRITICAL_CLEARED, reason))
    doubts += [(DecisionRow.POLICY, rule.reason) for rule in case.matched if rule.then is RuleEffect.REVIEW]
    if not doubts:
        return decision
    reasons = "; ".join(reason for _, reason in doubts)
    return _make_decision(
        case,
        doubts[0][0],
        State.NEEDS_REVIEW,
        f"{reasons}; otherwise it {decision.reason}",
        findings=(*strong, *cleared),
    )


def _let_wait(case: _Case, decision: Decision) -> Decision:
    """Let what would be published wait, where a rule says so and its time is not over."""
    if case.held_until is None or not is_automatic(decision):
        return decision
    waits = [rule for rule in case.matched if rule.then is RuleEffect.WAIT]
    end = datetime.fromtimestamp(case.held_until / 1000, UTC)
    by = f"rule{'s' if len(waits) > 1 else ''} {', '.join(rule.name for rule in waits)}"
    why = "; ".join([*(rule.reason for rule in waits), f"otherwise it {decision.reason}"])
    reason = f"waits until {end:%A %Y-%m-%d %H:%M} UTC by the {by}: {why}"
    held = _make_decision(case, DecisionRow.POLICY, State.COOLDOWN, reason)
    return msgspec.structs.replace(held, until=case.held_until)


def _judges_condemn(case: _Case) -> bool:
    """All that answered; where they disagree about a critical finding, a reviewer decides."""
    return bool(case.answered) and all(condemns(report, case.criticals) for report in case.answered)


def _judges_clear(case: _Case) -> bool:
    return bool(case.answered) and all(clears(report, case.criticals) for report in case.answered)


def _approve(case: _Case, row: DecisionRow, reason: str) -> Decision:
    certification = certification_for(
        judged=bool(case.answered),
        reviewed=case.approved_by is not None,
        trusted_vendor=case.trusted_vendor,
    )
    return _make_decision(case, row, State.AUTO_APPROVED, reason, certification=certification)


def _make_decision(
    case: _Case,
    row: DecisionRow,
    state: State,
    reason: str,
    *,
    block: BlockScope = BlockScope.NONE,
    certification: Certification | None = None,
    findings: tuple[Finding, ...] | None = None,
) -> Decision:
    led_here = case.findings if findings is None else findings
    return Decision(
        next_state=state,
        reason=reason,
        row=row,
        rule_ids=_rule_ids(led_here),
        certification=certification,
        block=block,
        score=case.score,
        worst=max(led_here, key=lambda one: (one.severity.rank, one.rule_id), default=None),
    )


def _rule_ids(findings: tuple[Finding, ...]) -> tuple[str, ...]:
    return tuple(sorted({finding.rule_id for finding in findings}))


def _needs_reviewer(findings: tuple[Finding, ...], what: str) -> str:
    return f"{_count(findings, what)} {'needs' if len(_rule_ids(findings)) == 1 else 'need'} a reviewer"


def _count(findings: tuple[Finding, ...], what: str) -> str:
    """`2 critical findings (A-1, B-2)`: each rule once, as it counts."""
    count = len(_rule_ids(findings))
    things = what if count == 1 else what.replace("finding", "findings")
    return f"{count} {things} ({_names(findings)})"


def _names(findings: tuple[Finding, ...]) -> str:
    return ", ".join(_rule_ids(findings))
