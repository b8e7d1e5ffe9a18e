"""Submissions as clients see them: in lists, alone with history and timings, and as counts. Pure: from records to what
is encoded. A claim's token is nobody's business; names are for those who may know them (E6)."""

import msgspec

from vskill_client.wire.base import iso_time
from vskill_client.wire.submissions import (
    AttemptsView,
    ChangeRequestView,
    DecisionView,
    HistoryEvent,
    OtherJudgeView,
    PositionView,
    ScanSummary,
    SignalView,
    StatsView,
    SubmissionCard,
    SubmissionView,
)
from vskill_core.findings import JudgeStatus, ScanStatus
from vskill_core.naming import name_note
from vskill_platform.actions.visibility import Viewer
from vskill_platform.actions.wire import maybe_time
from vskill_platform.domain.evidence import Evidence
from vskill_platform.domain.submissions.states import State, StateCategory, category_of
from vskill_platform.domain.submissions.submission import Attempts, ChangeRequest, Event, Submission
from vskill_platform.domain.submissions.timeline import time_by_state
from vskill_platform.ledger.kv.collections import SKILLS
from vskill_platform.queue.outlook import Outlook
from vskill_platform.store.submissions.statistics import Activity, LinePosition
from vskill_platform.submission_store import SubmissionCounts


def stats_view(counts: SubmissionCounts) -> StatsView:
    by_category = dict.fromkeys((category.value for category in StateCategory), 0)
    for state, count in counts.by_state.items():
        by_category[category_of(state).value] += count
    return StatsView(
        total=counts.total,
        active=counts.active,
        by_state={state.value: count for state, count in counts.by_state.items()},
        by_category=by_category,
        unreadable=counts.unreadable,
    )


def submission_card(record: Submission) -> SubmissionCard:
    return SubmissionCard(
        id=record.id,
        repo_url=record.repo_url,
        skill_name=record.skill_name,
        skill_path=record.skill_path,
        state=record.state.value,
        category=category_of(record.state).value,
        meaning=record.meaning,
        reason=record.why,
        run=record.run,
        source=record.source.value,
        created_at=iso_time(record.created_at),
        updated_at=iso_time(record.updated_at),
        next_attempt_at=maybe_time(record.next_attempt_at),
        published_skill=published_name(record),
        published_version=record.published_version,
    )


def submission_view(
    record: Submission, viewer: Viewer, now: int | None = None, position: PositionView | None = None
) -> SubmissionView:
    """As this viewer may see it; signals that the viewer may not read are hidden before. Timings are taken up to `now`,
    or up to the last change."""
    claim = record.claim
    until = record.updated_at if now is None else now
    return SubmissionView(
        **msgspec.structs.asdict(submission_card(record)),
        submitter=viewer.submitter(record),
        worker=viewer.worker(record),
        claimed_until=iso_time(claim.until) if claim else None,
        rerun_requested=record.rerun_requested is not None,
        attempts=_attempts(record.attempts),
        decision=_decision(record),
        scan=_scan(record.evidence, is_blocked=record.state is State.BLOCKED),
        commit=record.commit,
        digest=record.digest,
        timings={state.value: ms for state, ms in time_by_state(record, until).items()},
        position=position,
        history=tuple(_event(event, viewer) for event in record.history),
        signals=_signals(record.evidence),
        name_note=name_note(record.skill_name, record.declared_name),
        version_note=record.version_note or None,
        approved_by_submitter=record.approval is not None and record.approval.own,
        change_request=_change_request(record.change_request),
    )


def position_view(
    position: LinePosition | None, activity: Activity | None, outlook: Outlook | None
) -> PositionView | None:
    if position is None or outlook is None:
        return None
    estimate_ms = outlook.estimate_ms(position, activity)
    until = None if outlook.pause is None else iso_time(outlook.pause.until)
    return PositionView(position.place, position.at_least, estimate_ms, until)


def published_name(record: Submission) -> str | None:
    """The canonical name of the skill that it was published as."""
    return None if record.published is None else record.published.removeprefix(SKILLS.prefix)


def _change_request(found: ChangeRequest | None) -> ChangeRequestView | None:
    if found is None:
        return None
    return ChangeRequestView(found.text, iso_time(found.at), iso_time(found.until))


def _attempts(found: Attempts) -> AttemptsView:
    return AttemptsView(
        started=found.started,
        failed=found.failed,
        interrupted=found.interrupted,
        unavailable=found.unavailable,
        unavailable_since=maybe_time(found.unavailable_since),
        waiting_for=found.waiting_for,
        last_error=found.last_error,
    )


def _decision(record: Submission) -> DecisionView | None:
    found = record.decision
    if found is None:
        return None
    ended = record.evidence is None or record.evidence.status is ScanStatus.COMPLETE
    score = found.score if ended and record.state is not State.BLOCKED else None
    return DecisionView(found.reason, found.rule_ids, found.certification, score)


def _signals(found: Evidence | None) -> tuple[SignalView, ...]:
    noticed = found.noticed if found is not None else ()
    return tuple(
        SignalView(one.kind.value, one.reason, one.details, one.skills, one.holds) for one in noticed
    )


def _scan(found: Evidence | None, *, is_blocked: bool) -> ScanSummary | None:
    """What is blocked has passed nothing, and a scan that did not end has no result."""
    if found is None:
        return None
    judge = None if is_blocked else found.judge
    has_result = found.status is ScanStatus.COMPLETE and not is_blocked
    return ScanSummary(
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
    )


def _other_judge(found: Evidence, *, is_blocked: bool) -> OtherJudgeView | None:
    if found.second_judge_status is JudgeStatus.NONE:
        return None
    judge = None if is_blocked else found.second_judge
    return OtherJudgeView(
        status=found.second_judge_status.value,
        verdict=judge.verdict.value if judge else None,
        score=judge.score if judge else None,
        model=judge.model if judge else None,
    )


def _event(event: Event, viewer: Viewer) -> HistoryEvent:
    return HistoryEvent(
        seq=event.seq,
        at=iso_time(event.at),
        source=event.source.value if event.source else None,
        to=event.to.value,
        actor=viewer.actor(event.actor),
        reason=event.reason,
    )
