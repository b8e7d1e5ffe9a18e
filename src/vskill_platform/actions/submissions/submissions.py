"""Submissions as everybody may follow them, what the rules found in each run, and what their submitters do with
them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from vskill_client.wire import submissions as findings_calls
from vskill_client.wire import submissions as submissions_calls
from vskill_client.wire.base import NoParameters
from vskill_client.wire.submissions import (
    SUBMISSIONS,
    FindingsAnswer,
    FindingView,
    FormNoteView,
    PositionView,
    RunFindings,
    RunsAnswer,
    StatsView,
    SubmissionRequest,
    SubmissionRuns,
    SubmissionView,
)
from vskill_core.errors import Blocked, NotFound, TransitionError
from vskill_core.findings import Finding, ScanStatus, StaticReport
from vskill_platform.actions.action import Allowance, Reason, Services, action, action_for
from vskill_platform.actions.changes import Decide, change_submission
from vskill_platform.actions.principal import ActionObject, Principal, Right, audiences_of, viewer_for
from vskill_platform.actions.skills.skill_views import card_view
from vskill_platform.actions.submissions.submission_views import position_view, stats_view, submission_view
from vskill_platform.domain.submissions import submission
from vskill_platform.domain.submissions.attempts import EXHAUSTED
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Rerun, Step, Submission
from vskill_platform.queue.outlook import look_ahead
from vskill_platform.store.people.audit import was_audited
from vskill_platform.store.recall.blocklist import assert_blocklist, why_blocked
from vskill_platform.store.submissions.statistics import Activity, position_of, recent_activity, waits
from vskill_platform.store.verdicts.registry_signals import hide_signals
from vskill_platform.store.verdicts.scans import get_scan
from vskill_platform.submission_store import (
    RecordChange,
    count_submissions,
    get_run,
    get_submission,
    next_run,
)
from vskill_scan.results.report import Scanned, as_sarif, by_weight
from vskill_scan.rules.ruleset import bundled_rules


class CancelSubmission(SubmissionRequest, frozen=True, kw_only=True):
    """A submission whose run is to end."""

    #: why; shown in the public history
    reason: Reason


class RerunSubmission(SubmissionRequest, frozen=True, kw_only=True):
    """A submission that is to run again."""

    #: why; shown in the public history
    reason: Reason


async def object_of(actor: Principal, request: SubmissionRequest) -> ActionObject:
    """What rights on a submission are evaluated on; NotFound for one that the actor may not read."""
    return rights_object(await get_submission(request.submission_id, audiences=audiences_of(actor)))


def rights_object(record: Submission) -> ActionObject:
    return ActionObject(record.identity, record.submitters)


async def show(services: Services, actor: Principal, request: SubmissionRequest) -> SubmissionView:
    record = await get_submission(request.submission_id, audiences=audiences_of(actor))
    return await view_of(services, actor, record)


async def runs(services: Services, actor: Principal, request: SubmissionRuns) -> RunsAnswer:
    audiences, now = audiences_of(actor), services.kv.now()
    record = await get_submission(request.submission_id, audiences=audiences)
    numbers = range(record.run, max(0, record.run - request.limit), -1)
    found = [
        record if run == record.run else await get_run(record.id, run, audiences=audiences) for run in numbers
    ]
    shown = await hide_signals(found, audiences)
    return RunsAnswer(record.id, tuple(submission_view(one, viewer_for(actor), now) for one in shown))


async def stats(actor: Principal, _request: NoParameters) -> StatsView:
    return stats_view(await count_submissions(audiences=audiences_of(actor)))


async def view_of(services: Services, viewer: Principal, record: Submission) -> SubmissionView:
    now, audiences = services.kv.now(), audiences_of(viewer)
    position = None
    if waits(record, now):
        position = await find_position(viewer, record, lambda: recent_activity(audiences=audiences))
    (shown,) = await hide_signals([record], audiences)
    return submission_view(shown, viewer_for(viewer), now, position)


async def show_changed(
    services: Services, actor: Principal, submission_id: str, verb: str, reason: str, decide: Decide
) -> SubmissionView:
    changed = await change_submission(services, actor, submission_id, verb, reason, decide)
    return await view_of(services, actor, changed)


async def read_run(
    reader: Principal, submission_id: str, run: int | None = None
) -> tuple[Submission, Submission]:
    """A submission as it is now, and one of its runs: the current one where none is named."""
    audiences = audiences_of(reader)
    (current,) = await hide_signals([await get_submission(submission_id, audiences=audiences)], audiences)
    if run is None or run == current.run:
        return current, current
    (earlier,) = await hide_signals([await get_run(current.id, run, audiences=audiences)], audiences)
    return current, earlier


async def find_position(
    reader: Principal, record: Submission, activity: Callable[[], Awaitable[Activity]]
) -> PositionView | None:
    """Where it stands in the line of what the reader may read; `activity` tells how fast that moves, and is asked only
    where it waits."""
    place = await position_of(record, audiences=audiences_of(reader))
    return None if place is None else position_view(place, await activity(), await look_ahead())


async def cancel(services: Services, actor: Principal, request: CancelSubmission) -> SubmissionView:
    """End a run that is not over. A requested rerun is cancelled too."""

    async def decide(record: Submission, step: Step) -> RecordChange:
        if record.state.terminal:
            message = f"There is nothing to cancel. The state of the submission is: {record.state.label}."
            raise TransitionError(message, submission=record.id)
        return RecordChange(submission.move(submission.cancel_rerun(record), State.DEQUEUED, step))

    return await show_changed(services, actor, request.submission_id, "cancel", request.reason, decide)


async def rerun(services: Services, actor: Principal, request: RerunSubmission) -> SubmissionView:
    """Start a new run where the last one is over, and make one that waits for a worker due now. While a worker is at
    it, an approval is being published, or it waits by a rule of the policy, the next run begins after that. The history
    says who wanted it and why."""

    async def decide(record: Submission, step: Step) -> RecordChange | None:
        asserted = await assert_blocklist()
        await _refuse_blocked(record)
        # A request for the next run leaves no event in this run's history, so the audit tells whether it was written.
        if await was_audited(step.event_id):
            return None
        # Who has a repository looked at anew submits what it holds then; reviewers stay free to decide about it.
        is_theirs = record.upload is None and not actor.is_reviewer
        change = _run_again(record, step, actor.account if is_theirs else None)
        return RecordChange(change.record, (*change.operations, asserted))

    return await show_changed(services, actor, request.submission_id, "run again", request.reason, decide)


def _run_again(record: Submission, step: Step, submitter: str | None) -> RecordChange:
    if record.state.ends_run:
        return next_run(record, step, submitter=submitter, upload=record.upload)
    if record.claim is None and record.state is State.RECEIVED:
        return RecordChange(submission.make_due(record, step), (record.message,))
    # Content that was submitted meanwhile is what the next run looks at, whoever asks for that run.
    known = record.rerun_requested or Rerun(step.at, submitter, record.upload)
    wanted = msgspec.structs.replace(known, at=step.at, actor=step.actor, reason=step.reason)
    requested = submission.request_rerun(record, wanted)
    if record.claim is not None or record.state is State.COOLDOWN:
        return RecordChange(requested)
    # An approval waits to be published: that is due now, and the next run follows it.
    due = msgspec.structs.replace(requested, next_attempt_at=step.at)
    return RecordChange(due, (record.message,))


async def _refuse_blocked(record: Submission) -> None:
    """As for submitting it: by the place, its names, and uploaded bytes. What a repository holds now the run will
    see."""
    names = (record.skill_name, record.declared_name)
    reason = await why_blocked(record.identity, names, record.upload)
    if reason is not None:
        message = f"{record.identity.key} is blocked, so it cannot run again: {reason}. Lift the block first."
        raise Blocked(message, submission=record.id)


SHOW = action_for(
    show,
    submissions_calls.SHOW,
    right=Right.READER,
    acts_on=object_of,
    errors=(NotFound,),
    summary="Read one submission with its history",
    for_ci=True,
    command="status",
)
RUNS = action_for(
    runs,
    submissions_calls.RUNS,
    right=Right.READER,
    acts_on=object_of,
    errors=(NotFound,),
    summary="Read the runs of a submission, the latest first",
    for_ci=True,
)
STATS = action_for(
    stats,
    submissions_calls.STATS,
    right=Right.READER,
    summary="Count submissions by state",
    command="status",
)
CANCEL = action(
    cancel,
    "submission.cancel",
    f"{SUBMISSIONS}/{{submission_id}}/cancel",
    right=Right.SUBMITTER,
    acts_on=object_of,
    errors=(NotFound, TransitionError),
    summary="Cancel a submission",
)
RERUN = action(
    rerun,
    "submission.rerun",
    f"{SUBMISSIONS}/{{submission_id}}/rerun",
    right=Right.SUBMITTER,
    acts_on=object_of,
    errors=(NotFound, TransitionError, Blocked),
    summary="Run a submission again",
    about="While a worker is at it, it waits by a rule, or an approval is being published, the next run begins after "
    "that: "
    "`rerunRequested` is true then.",
    allowance=Allowance.SUBMISSIONS,
)


SARIF_TYPE = "application/sarif+json"

#: What to do where no rule of the scan says it, by the code in the decision.
REMEDIES = {
    "no_skill_found": "Put a SKILL.md into the folder that you submit, then submit it again.",
    "invalid_manifest": "Correct SKILL.md as the reason says, then submit it again.",
    "source_gone": "Check that the repository exists and is public, then submit it again.",
    "limit_exceeded": "Make the skill smaller: leave out what an agent does not need.",
    "lower_version": "Raise the version in the front matter above the published one.",
    "invalid_input": "Rename or remove the file that the reason names.",
    EXHAUSTED: "Every attempt failed. Submit it again, or appeal.",
}


async def findings(actor: Principal, request: RunFindings) -> FindingsAnswer:
    record = await _read_asked_run(actor, request)
    report = await report_of(record)
    ended = report is not None and report.status is ScanStatus.COMPLETE
    result = report if ended and record.state is not State.BLOCKED else None
    return FindingsAnswer(
        id=record.id,
        run=record.run,
        state=record.state.value,
        reason=record.why,
        remedies=remedies_of(record),
        digest=record.digest,
        ruleset=report.ruleset if report else None,
        verdict=result.verdict.value if result else None,
        score=result.score if result else None,
        findings=tuple(FindingView.of(one) for one in ordered_findings(record, report)),
        notes=note_views(report),
        capabilities=card_view(report),
    )


async def sarif(actor: Principal, request: RunFindings) -> dict[str, Any]:
    record = await _read_asked_run(actor, request)
    report = await report_of(record)
    if report is None:
        raise NotFound(f"The content of run {record.run} was not scanned.", submission=record.id)
    body = await asyncio.to_thread(lambda: as_sarif([Scanned(record.skill_path, report)], bundled_rules()))
    document: dict[str, Any] = msgspec.json.decode(body)
    return document


async def _read_asked_run(reader: Principal, request: RunFindings) -> Submission:
    audiences = audiences_of(reader)
    if request.run is None:
        return await get_submission(request.submission_id, audiences=audiences)
    return await get_run(request.submission_id, request.run, audiences=audiences)


async def report_of(record: Submission) -> StaticReport | None:
    """The stored report that this run was decided by; None where its content was not scanned."""
    evidence = record.evidence
    return None if evidence is None else await get_scan(evidence.digest, evidence.ruleset)


def ordered_findings(record: Submission, report: StaticReport | None) -> tuple[Finding, ...]:
    """Those that the decision names first, then the worst."""
    named = set(record.decision.rule_ids if record.decision else ())
    found = by_weight(report.findings) if report else []
    return tuple(sorted(found, key=lambda finding: finding.rule_id not in named))


def remedies_of(record: Submission) -> tuple[str, ...]:
    """What to do about a refusal that rests on no rule of the scan."""
    if record.decision is None or not record.state.failure:
        return ()
    remedies = (REMEDIES[code] for code in record.decision.rule_ids if code in REMEDIES)
    if not record.identity.is_upload:
        return tuple(remedies)
    return tuple(one.replace("then submit it again", "then upload it again") for one in remedies)


def note_views(report: StaticReport | None) -> tuple[FormNoteView, ...]:
    return tuple(FormNoteView.of(note) for note in report.notes) if report is not None else ()


FINDINGS = action_for(
    findings,
    findings_calls.FINDINGS,
    right=Right.READER,
    acts_on=object_of,
    errors=(NotFound,),
    summary="Read the findings of a run, with file, line and remedy",
    for_ci=True,
)
SARIF = action(
    sarif,
    "submission.sarif",
    f"{SUBMISSIONS}/{{submission_id}}/sarif",
    method="GET",
    right=Right.READER,
    acts_on=object_of,
    errors=(NotFound,),
    media=SARIF_TYPE,
    summary="Read the findings of a run as SARIF 2.1.0",
)
