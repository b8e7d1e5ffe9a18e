"""One or two judges: on which side of the table each stands, and which of two words counts.

`decision` asks it before it publishes, rejects or blocks by what judges said; `evidence` asks it which word to show
first. Two judges must agree: a decision that only one of them supports is a reviewer's.
"""

import enum
from collections.abc import Collection

from vskill_core.findings import Finding, JudgeReport, JudgeStatus, Verdict

#: A judge rejects below the first score, clears findings from the second, approves from the third.
JUDGE_REJECTS, JUDGE_CLEARS, JUDGE_APPROVES = 40, 60, 80
#: How many judges can be configured.
MOST_JUDGES = 2


class JudgeSide(enum.StrEnum):
    """What a judge's answer speaks for."""

    APPROVES = "approves"
    UNSURE = "unsure"
    REJECTS = "rejects"


def side_of(answer: tuple[int, Verdict]) -> JudgeSide:
    """By score and verdict; where the two contradict each other, the harsher one counts."""
    points, verdict = answer
    if points < JUDGE_REJECTS or verdict is Verdict.FAIL:
        return JudgeSide.REJECTS
    is_approval = points >= JUDGE_APPROVES and verdict is Verdict.PASS
    return JudgeSide.APPROVES if is_approval else JudgeSide.UNSURE


def rank_judges(first: JudgeReport, second: JudgeReport) -> tuple[JudgeReport, JudgeReport]:
    """The word that counts before the other: an answer before none, the harsher side, then the lower score."""
    ranked = sorted((first, second), key=_rank)
    return ranked[0], ranked[1]


def _rank(report: JudgeReport) -> tuple[int, int, bool]:
    """Answers by their side, those that reject first; then whoever was asked and is down."""
    harshest_first = (JudgeSide.REJECTS, JudgeSide.UNSURE, JudgeSide.APPROVES)
    if report.answer is None:
        return len(harshest_first), 0, report.status is JudgeStatus.NONE
    return harshest_first.index(side_of(report.answer)), report.answer[0], False


def condemns(report: JudgeReport, findings: Collection[Finding]) -> bool:
    """Whether this judge confirms a critical finding or rejects the skill that has it."""
    answer = report.answer
    return answer is not None and (report.confirms_any(findings) or side_of(answer) is JudgeSide.REJECTS)


def clears(report: JudgeReport, findings: tuple[Finding, ...]) -> bool:
    """Whether this judge calls every critical finding a false positive, with a score that fits."""
    answer = report.answer
    return answer is not None and answer[0] >= JUDGE_CLEARS and report.cleared(findings) == findings


def missing_answers(reports: Collection[JudgeReport], required: int) -> tuple[str, ...]:
    """Why the operator's requirement is not met, as a sentence for the author; nothing where it is."""
    answered = sum(report.answer is not None for report in reports)
    if answered >= required:
        return ()
    judges = "1 judge" if required == 1 else f"{required} judges"
    return (f"{judges} must have read it, and {answered or 'none'} did",)
