"""One submission: every step with its duration, where it stands in the line, when it is tried again, and on failure
the rule, the file, the line and what to do. With the forms to cancel it, submit it again, upload a corrected
archive, appeal, or answer a reviewer.

The page is whole without a script; with one, its parts are loaded again whenever the submission changes.
"""

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.submissions import PositionView, SubmitSkill, UploadSkill
from vskill_core.capability import SkillCapability
from vskill_core.errors import InvalidInput
from vskill_core.findings import Finding, FindingKind, ScanStatus, StaticReport
from vskill_core.form import FormNote
from vskill_core.naming import name_note
from vskill_platform.actions.review.appeals import APPEAL, why_no_appeal
from vskill_platform.actions.review.change_requests import ANSWER
from vskill_platform.actions.rights import Right, may
from vskill_platform.actions.submissions.findings import ordered_findings, remedies_of, report_of
from vskill_platform.actions.submissions.intake import SUBMIT, UPLOAD
from vskill_platform.actions.submissions.submission_views import published_name
from vskill_platform.actions.submissions.submissions import (
    CANCEL,
    RERUN,
    SHOW,
    find_position,
    read_run,
    rights_object,
)
from vskill_platform.actions.visibility import Viewer
from vskill_platform.actions.wire import Asked
from vskill_platform.domain.signals import Signal
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import EXHAUSTED, EntryPoint, Submission
from vskill_platform.domain.submissions.timeline import Stay, stays, time_by_state
from vskill_platform.domain.verdicts.verdict_words import VerdictWords, words_for_scan
from vskill_platform.intake.submit import IntakeOutcome
from vskill_platform.web.flash import see_other
from vskill_platform.web.pages.acting import act_by_form, form, page_with_flash
from vskill_platform.web.pages.submissions.queue import recent_activity
from vskill_platform.web.pages.submissions.submit import MOST_UPLOAD, archive_of
from vskill_platform.web.principal import principal_of, services_of, viewer_of
from vskill_platform.web.routing import page, query_of
from vskill_platform.web.streams.live import Submissions, page_cursor, stream

#: Findings that a page shows; the security report has all.
MOST_FINDINGS = 30
#: Earlier runs that a page links to.
MOST_RUNS = 20
#: How often the parts of a page are loaded again: while it moves, and at rest.
MOVING_MS, RESTING_MS = 5_000, 60_000


class RunQuery(Asked, frozen=True):
    """Which run; the current one where none is asked for."""

    run: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None


class Offers(msgspec.Struct, frozen=True):
    """What this viewer may do now."""

    cancel: bool = False
    resubmit: bool = False
    #: An upload is corrected by another archive: the same bytes would end as they did.
    correct: bool = False
    review: bool = False
    #: A reviewer asked for a change.
    answer: bool = False
    #: Why the others are not offered, where somebody could wonder.
    note: str = ""


class ShownSubmission(msgspec.Struct, frozen=True):
    """Everything about one run."""

    record: Submission
    #: The run that is the submission's present.
    current_run: int
    stays: tuple[Stay, ...]
    timings: dict[State, int]
    position: PositionView | None
    findings: tuple[Finding, ...]
    more_findings: int
    #: What the registry noticed and a reviewer must look at.
    signals: tuple[Signal, ...]
    #: What its author should correct in SKILL.md.
    notes: tuple[FormNote, ...]
    #: There is a report of this run.
    is_scanned: bool
    #: The capability card; None: its report was made before there were cards.
    card: tuple[SkillCapability, ...] | None
    #: What was looked at; None before the scan, and where it is blocked.
    words: VerdictWords | None
    remedies: tuple[str, ...]
    offers: Offers
    viewer: Viewer
    skill: str | None
    cursor: str
    now: int

    @property
    def name_note(self) -> str | None:
        return name_note(self.record.skill_name, self.record.declared_name)

    @property
    def is_current(self) -> bool:
        return self.record.run == self.current_run

    @property
    def earlier_runs(self) -> tuple[int, ...]:
        least = max(self.current_run - MOST_RUNS, 1)
        return tuple(run for run in range(self.current_run, least - 1, -1) if run != self.record.run)

    @property
    def refresh_ms(self) -> int:
        return MOVING_MS if self.record.state.active and self.is_current else RESTING_MS


async def submission(request: Request) -> Response:
    shown = await _read_page(request, query_of(request, RunQuery).run)
    return page_with_flash(request, "submission.html", shown=shown)


async def _read_page(request: Request, run: int | None) -> ShownSubmission:
    services = services_of(request)
    kv = services.kv
    cursor = await page_cursor(request)
    submission_id = request.path_params["submission_id"]
    current, record = await read_run(principal_of(request), submission_id, run)
    now = kv.now()
    report = await report_of(record)
    counting = _counting(record, report)
    return ShownSubmission(
        record=record,
        current_run=current.run,
        stays=stays(record, now),
        timings=time_by_state(record, now),
        position=await _position(request, record) if record is current else None,
        findings=counting[:MOST_FINDINGS],
        more_findings=max(len(counting) - MOST_FINDINGS, 0),
        signals=_signals(record),
        notes=report.notes if report is not None else (),
        is_scanned=report is not None,
        card=report.capabilities if report else None,
        words=_words(record, report),
        remedies=remedies_of(record),
        offers=await _offers(request, record) if record is current else Offers(),
        viewer=viewer_of(request),
        skill=published_name(current),
        cursor=cursor,
        now=now,
    )


async def _position(request: Request, record: Submission) -> PositionView | None:
    return await find_position(principal_of(request), record, lambda: recent_activity(request))


def _words(record: Submission, report: StaticReport | None) -> VerdictWords | None:
    evidence = record.evidence
    if evidence is None or record.state is State.BLOCKED:
        return None
    if report is None and evidence.status is not ScanStatus.COMPLETE:
        # Such a report is not kept; the reason of the decision tells the problem.
        report = StaticReport(evidence.ruleset, evidence.status)
    return words_for_scan(report, evidence.judge_words)


def _counting(record: Submission, report: StaticReport | None) -> tuple[Finding, ...]:
    """What did not pass: a published run has nothing to correct, and what a skill merely can do is left out."""
    if record.state is State.PUBLISHED:
        return ()
    named = set(record.decision.rule_ids if record.decision else ())
    found = ordered_findings(record, report)
    return tuple(one for one in found if one.kind is not FindingKind.CAPABILITY or one.rule_id in named)


def _signals(record: Submission) -> tuple[Signal, ...]:
    """Those that wait for a reviewer, or waited when a reviewer refused it."""
    noticed = record.evidence.noticed if record.evidence and record.state is not State.PUBLISHED else ()
    return tuple(one for one in noticed if one.holds)


async def _offers(request: Request, record: Submission) -> Offers:
    has_rights = await may(principal_of(request), Right.SUBMITTER, rights_object(record))
    refusal = why_no_appeal(record)
    note = ""
    if not has_rights and (not record.state.terminal or refusal is None):
        note = "Its submitters, owners of its repository and reviewers may cancel it or appeal."
    elif has_rights and record.state.failure and refusal is not None:
        note = f"There is no appeal: {refusal[0].lower()}{refusal[1:]}"
    is_upload = record.identity.is_upload
    return Offers(
        cancel=has_rights and not record.state.terminal,
        resubmit=record.state.ends_run and (not is_upload or (has_rights and _may_end_otherwise(record))),
        correct=record.state.ends_run and is_upload and _is_own_upload(request, record),
        review=has_rights and refusal is None,
        answer=has_rights and record.change_request is not None,
        note=note,
    )


def _may_end_otherwise(record: Submission) -> bool:
    """Whether the same bytes could end in another way: the last run ended for a reason that is not in them."""
    exhausted = record.decision is not None and EXHAUSTED in record.decision.rule_ids
    return record.state is State.DEQUEUED or exhausted


def _is_own_upload(request: Request, record: Submission) -> bool:
    principal = principal_of(request)
    return UPLOAD.allows(principal) and (principal.account or "").lower() == record.identity.owner


# What people do.


def _place(request: Request) -> str:
    return f"/submissions/{request.path_params['submission_id']}"


async def resubmit(request: Request) -> Response:
    """Anybody may have a public repository looked at again, as by submitting it; an upload, those who may run it
    again."""
    services, principal = services_of(request), principal_of(request)
    record, _ = await read_run(principal, request.path_params["submission_id"])
    if record.identity.is_upload:
        await act_by_form(request, RERUN, reason="submitted again on its page")
        return see_other(request, _place(request), "A new run has started.")
    wanted = SubmitSkill(repo_url=record.repo_url, skill_path=record.skill_path, source=EntryPoint.WEB.value)
    done = await SUBMIT(services, principal, wanted)
    kind = "bad" if done.blocked else "good"
    where = _place(request) if done.id is None else f"/submissions/{done.id}"
    return see_other(
        request,
        where,
        _OUTCOMES[IntakeOutcome(done.outcome)] + (f" {done.reason}" if done.reason else ""),
        kind,
    )


async def correct(request: Request) -> Response:
    """Another archive for the same place: the next run looks at it."""
    services, principal = services_of(request), principal_of(request)
    record, _ = await read_run(principal, request.path_params["submission_id"])
    if not record.identity.is_upload:
        raise InvalidInput(
            "This skill was submitted from a repository.", field="archive", fix="correct it there"
        )
    done = await UPLOAD(
        services,
        principal,
        UploadSkill(
            archive=await archive_of(request),
            name=record.identity.path,
            namespace=record.identity.owner,
            source=EntryPoint.WEB.value,
        ),
    )
    if done.already_verified:
        return see_other(request, _place(request), "This content is already published.")
    return see_other(request, str(done.page), "Your archive was uploaded. It is checked now.")


_OUTCOMES = {
    IntakeOutcome.CREATED: "It was submitted.",
    IntakeOutcome.DUPLICATE: "It is already in the queue.",
    IntakeOutcome.ALREADY_VERIFIED: "This content is already published.",
    IntakeOutcome.REQUEUED: "A new run has started.",
    IntakeOutcome.BLOCKED: "It is blocked.",
}


async def live(request: Request) -> Submissions:
    return Submissions(viewer_of(request), frozenset({request.path_params["submission_id"]}))


_ONE = "/submissions/{submission_id}"

ENDPOINTS = (
    page(
        _ONE,
        submission,
        query=RunQuery,
        action=SHOW,
        shows=("submission.runs", "submission.findings", "submission.sarif"),
    ),
    stream(f"{_ONE}/live", live, documented=False),
    form(
        f"{_ONE}/cancel",
        CANCEL,
        lambda ended, _: f"{ended.skill_name} was cancelled.",
        at=_ONE,
        confirm=True,
    ),
    form(f"{_ONE}/review", APPEAL, "Your appeal was filed. A reviewer will decide it.", at=_ONE),
    form(f"{_ONE}/answer", ANSWER, "Your answer was sent. It waits for a reviewer again.", at=_ONE),
    form(f"{_ONE}/resubmit", SUBMIT, at=_ONE, view=resubmit, shows=("submission.rerun",)),
    form(f"{_ONE}/upload", UPLOAD, at=_ONE, view=correct, most_body=MOST_UPLOAD),
)
