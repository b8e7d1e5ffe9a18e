"""Submissions as clients see them: in lists, alone with history and timings, and as counts. Pure: from records to what
is encoded. A claim's token is nobody's business; names are for those who may know them (E6)."""

import msgspec

from vskill_client.wire import submissions
from vskill_client.wire.base import iso_time
from vskill_core.findings import JudgeStatus, ScanStatus
from vskill_core.naming import name_note
from vskill_platform.actions.principal import Viewer
from vskill_platform.domain.evidence import Evidence
from vskill_platform.domain.submissions.states import State, StateCategory, category_of
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.domain.submissions.timeline import time_by_state
from vskill_platform.ledger.kv.collections import SKILLS
from vskill_platform.queue.outlook import Outlook
from vskill_platform.store.submissions.statistics import Activity, LinePosition
from vskill_platform.submission_store import SubmissionCounts


def stats_view(counts: SubmissionCounts) -> submissions.StatsView:
    by_category = dict.fromkeys((category.value for category in StateCategory), 0)
    for state, count in counts.by_state.items():
        by_category[category_of(state).value] += count
    return submissions.StatsView(
        total=counts.total,
        active=counts.active,
        by_state={state.value: count for state, count in counts.by_state.items()},
        by_category=by_category,
        unreadable=counts.unreadable,
    )


def submission_card(record: Submission) -> submissions.SubmissionCard:
    category = category_of(record.state).value
    return submissions.SubmissionCard.of(
        record,
        category=category,
        reason=record.why,
        published_skill=published_name(record),
    )


def submission_view(
    record: Submission,
    viewer: Viewer,
    now: int | None = None,
    position: submissions.PositionView | None = None,
) -> submissions.SubmissionView:
    """As this viewer may see it; signals that the viewer may not read are hidden before. Timings are taken up to `now`,
    or up to the last change."""
    claim, request = record.claim, record.change_request
    until = record.updated_at if now is None else now
    return submissions.SubmissionView(
        **msgspec.structs.asdict(submission_card(record)),
        submitter=viewer.submitter(record),
        worker=viewer.worker(record),
        claimed_until=iso_time(claim.until) if claim else None,
        rerun_requested=record.rerun_requested is not None,
        attempts=submissions.AttemptsView.of(record.attempts),
        decision=_decision(record),
        scan=_scan(record.evidence, is_blocked=record.state is State.BLOCKED),
        commit=record.commit,
        digest=record.digest,
        timings={state.value: ms for state, ms in time_by_state(record, until).items()},
        position=position,
        history=tuple(
            submissions.HistoryEvent.of(event, actor=viewer.actor(event.actor)) for event in record.history
        ),
        signals=_signals(record.evidence),
        name_note=name_note(record.skill_name, record.declared_name),
        version_note=record.version_note or None,
        approved_by_submitter=record.approval is not None and record.approval.own,
        approved_by_team=record.approval is not None and record.approval.team,
        publisher=record.publisher,
        change_request=submissions.ChangeRequestView.of(request) if request is not None else None,
    )


def position_view(
    position: LinePosition | None, activity: Activity | None, outlook: Outlook | None
) -> submissions.PositionView | None:
    if position is None or outlook is None:
        return None
    estimate_ms = outlook.estimate_ms(position, activity)
    until = None if outlook.pause is None else iso_time(outlook.pause.until)
    return submissions.PositionView(position.place, position.at_least, estimate_ms, until)


def published_name(record: Submission) -> str | None:
    """The canonical name of the skill that it was published as."""
    return None if record.published is None else record.published.removeprefix(SKILLS.prefix)


def _decision(record: Submission) -> submissions.DecisionView | None:
    found = record.decision
    if found is None:
        return None
    ended = record.evidence is None or record.evidence.status is ScanStatus.COMPLETE
    score = found.score if ended and record.state is not State.BLOCKED else None
    return submissions.DecisionView.of(found, score=score)


def _signals(found: Evidence | None) -> tuple[submissions.SignalView, ...]:
    return () if found is None else tuple(submissions.SignalView.of(signal) for signal in found.noticed)


def _scan(found: Evidence | None, *, is_blocked: bool) -> submissions.ScanSummary | None:
    """What is blocked has passed nothing, and a scan that did not end has no result."""
    if found is None:
        return None
    judge = None if is_blocked else found.judge
    has_result = found.status is ScanStatus.COMPLETE and not is_blocked
    return submissions.ScanSummary(
        digest=found.digest,
        ruleset=found.ruleset,
        status=found.status.value,
        verdict=found.verdict.value if has_result else None,
        score=found.score if has_result else None,
        findings={severity.value: count for severity, count in found.findings.items()},
        capabilities=found.capabilities,
        judge_status=found.judge_status.value,
        judge_verdict=judge.verdict.value if judge else None,
        judge_score=judge.score if judge else None,
        judge_model=judge.model if judge else None,
        second_judge=_other_judge(found, is_blocked=is_blocked),
        compared_with=found.memory.words if found.memory else None,
    )


def _other_judge(found: Evidence, *, is_blocked: bool) -> submissions.OtherJudgeView | None:
    if found.second_judge_status is JudgeStatus.NONE:
        return None
    judge = None if is_blocked else found.second_judge
    return submissions.OtherJudgeView(
        status=found.second_judge_status.value,
        verdict=judge.verdict.value if judge else None,
        score=judge.score if judge else None,
        model=judge.model if judge else None,
    )
