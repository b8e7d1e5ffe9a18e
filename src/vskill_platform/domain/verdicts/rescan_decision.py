"""The decision about content that is live already and was judged again: what `decide` says about it now, and what that
means for the version."""

import enum
from collections.abc import Collection
from typing import Unpack

import msgspec

from vskill_core.findings import (
    NO_JUDGE,
    Finding,
    FindingCategory,
    JudgeReport,
    JudgeStatus,
    ScanStatus,
    StaticReport,
)
from vskill_platform.domain.judges import rank_judges
from vskill_platform.domain.signals import MatchedRule
from vskill_platform.domain.skills.skill import Certification
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.verdicts.decision import BlockScope, Decision, DecisionRow, Grounds, decide

#: A rescan takes live content down by these, and by every row that blocks.
_ROWS_THAT_TAKE_DOWN = frozenset({DecisionRow.STATIC_FAIL, DecisionRow.CRITICAL_OPEN, DecisionRow.JUDGE_FAIL})


class RescanOutcome(enum.StrEnum):
    """What a rescan does to the version that it looked at."""

    #: the same or better: certification and score change in place
    KEEP = "keep"
    #: doubtful: it stays live, and a reviewer looks at it
    REVIEW = "review"
    TAKE_DOWN = "take_down"
    #: the scan did not finish, or the judge that it needs is down: nothing is known, so nothing changes yet
    UNDECIDED = "undecided"


class RescanDecision(msgspec.Struct, frozen=True, omit_defaults=True):
    """What happens to a published version after it was judged again."""

    outcome: RescanOutcome
    reason: str
    #: for a submission that is PUBLISHED with that digest; None leaves it alone
    next_state: State | None = None
    rule_ids: tuple[str, ...] = ()
    #: only with KEEP
    certification: Certification | None = None
    block: BlockScope = BlockScope.NONE
    score: int = 0
    #: the operator listed it, as blocked or as known to be bad: no brake holds that
    at_once: bool = False
    #: the worst of the findings that led here; None where none did
    worst: Finding | None = None


def decide_rescan(
    static: StaticReport,
    judge: JudgeReport,
    *,
    certification: Certification,
    second: JudgeReport = NO_JUDGE,
    matched: Collection[MatchedRule] = (),
    **grounds: Unpack[Grounds],
) -> RescanDecision:
    """What becomes of a published version; `certification` is the one that it has now. Rules of the policy that
    `matched`, also those that refuse, ask a reviewer about what is live."""
    decision = decide(static, judge, second=second, matched=matched, **grounds)
    if decision.next_state is State.AUTO_APPROVED:
        return _keep_version(decision, certification)
    found = RescanDecision(
        _rescan_outcome(decision, static, rank_judges(judge, second)[0]),
        decision.reason,
        rule_ids=decision.rule_ids,
        block=decision.block,
        score=decision.score,
        worst=decision.worst,
    )
    if found.outcome is not RescanOutcome.TAKE_DOWN:
        return found
    state = State.BLOCKED if decision.next_state is State.BLOCKED else State.NEEDS_REVIEW
    listed = any(one.certain and one.category is FindingCategory.KNOWN_BAD for one in static.findings)
    at_once = decision.row is DecisionRow.BLOCKLISTED or (decision.row is DecisionRow.CERTAIN and listed)
    return msgspec.structs.replace(found, next_state=state, at_once=at_once)


def _rescan_outcome(decision: Decision, static: StaticReport, judge: JudgeReport) -> RescanOutcome:
    """Take down what is known or critical or fails, and leave live what is only doubtful. An outage is not a verdict;
    but content that the scan can never read whole is doubtful, however often it is tried."""
    if decision.next_state is State.BLOCKED or decision.row in _ROWS_THAT_TAKE_DOWN:
        return RescanOutcome.TAKE_DOWN
    scan_broke = decision.row is DecisionRow.NOT_COMPLETE and static.status is not ScanStatus.INCOMPLETE
    judge_is_down = judge.answer is None and judge.status is not JudgeStatus.NONE
    if scan_broke or (decision.row is DecisionRow.UNJUDGED_CONCERNS and judge_is_down):
        return RescanOutcome.UNDECIDED
    return RescanOutcome.REVIEW


def _keep_version(decision: Decision, before: Certification) -> RescanDecision:
    """Keep the version. VERIFIED stays while the judge is down: the judge has approved this content before."""
    after = decision.certification
    if after is Certification.SCANNED and before is Certification.VERIFIED:
        after = before
    return RescanDecision(
        RescanOutcome.KEEP,
        decision.reason,
        rule_ids=decision.rule_ids,
        certification=after,
        score=decision.score,
    )
