"""One submission: every step with its duration, where it stands in the line, when it is tried again, and on failure
the rule, the file, the line and what to do. With the forms to cancel it, submit it again, upload a corrected
archive, appeal, answer a reviewer, or report what waits by a rule.

The page is whole without a script; with one, its parts are loaded again whenever the submission changes.
"""

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Asked
from vskill_client.wire.submissions import SubmitSkill, UploadSkill
from vskill_core.errors import InvalidInput
from vskill_core.findings import Finding, FindingKind, ScanStatus, StaticReport
from vskill_core.identity import UPLOAD_HOST
from vskill_core.naming import name_note
from vskill_platform.actions.changes import may_decide
from vskill_platform.actions.principal import Right, may
from vskill_platform.actions.review.appeals import APPEAL, why_no_appeal
from vskill_platform.actions.review.reports import REPORT_KINDS, REPORT_SUBMISSION
from vskill_platform.actions.review.review import ANSWER, APPROVE
from vskill_platform.actions.submissions import submission_lists, submissions
from vskill_platform.actions.submissions.intake import SUBMIT, UPLOAD
from vskill_platform.actions.submissions.submission_views import published_name
from vskill_platform.domain.submissions.attempts import EXHAUSTED
from vskill_platform.domain.submissions.states import State, StateCategory
from vskill_platform.domain.submissions.submission import EntryPoint, Submission
from vskill_platform.domain.submissions.timeline import stays, time_by_state
from vskill_platform.domain.verdicts.verdict_words import VerdictWords, words_for_scan
from vskill_platform.intake.submit import IntakeOutcome
from vskill_platform.web.auth import see_other
from vskill_platform.web.exchange import principal_of, public_address, services_of, viewer_of
from vskill_platform.web.pages.acting import act_by_form, form, page_with_flash
from vskill_platform.web.pages.submissions.queue import recent_activity
from vskill_platform.web.pages.submissions.submit import MOST_UPLOAD, archive_of
from vskill_platform.web.render import render
from vskill_platform.web.routing import page, query_of
from vskill_platform.web.streams.live import Submissions, page_position, sealed_cursor, stream

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
    #: As a reviewer.
    decide: bool = False
    #: A reviewer asked for a change.
    answer: bool = False
    #: Why the others are not offered, where somebody could wonder.
    note: str = ""


async def submission(request: Request) -> Response:
    """One run: the one that is asked for, or the one that is the submission's present."""
    # Changes are followed from before the first read; what one may not read writes no key to seal with.
    reader, read_from = principal_of(request), await page_position(request)
    submission_id = request.path_params["submission_id"]
    current, record = await submissions.read_run(reader, submission_id, query_of(request, RunQuery).run)
    position, offers, now = None, Offers(), services_of(request).kv.now()
    if record is current:
        position = await submissions.find_position(reader, record, lambda: recent_activity(request))
        offers = await _offers(request, record)
    is_current = record.run == current.run
    shown = {
        "record": record,
        "current_run": current.run,
        "is_current": is_current,
        "earlier_runs": [
            run for run in range(current.run, max(current.run - MOST_RUNS, 1) - 1, -1) if run != record.run
        ],
        "name_note": name_note(record.skill_name, record.declared_name),
        "stays": stays(record, now),
        "timings": time_by_state(record, now),
        "position": position,
        "remedies": submissions.remedies_of(record),
        "offers": offers,
        "report_kinds": [(kind, kind.capitalize()) for kind in REPORT_KINDS],
        "viewer": viewer_of(request),
        "skill": published_name(current),
        "cursor": await sealed_cursor(request, read_from),
        "now": now,
        "refresh_ms": MOVING_MS if record.state.moving and is_current else RESTING_MS,
        **_findings(record, await submissions.report_of(record)),
    }
    return page_with_flash(request, "submission.html", shown=shown)


def _findings(record: Submission, report: StaticReport | None) -> dict[str, object]:
    counting = _counting(record, report)
    # Those that wait for a reviewer, or waited when a reviewer refused it.
    noticed = record.evidence.noticed if record.evidence and record.state is not State.PUBLISHED else ()
    return {
        "findings": counting[:MOST_FINDINGS],
        "more_findings": max(len(counting) - MOST_FINDINGS, 0),
        "compared": record.evidence.memory.words if record.evidence and record.evidence.memory else "",
        "signals": [signal for signal in noticed if signal.holds],
        # What its author should correct in SKILL.md.
        "notes": report.notes if report else (),
        "is_scanned": report is not None,
        # None: its report was made before there were cards.
        "card": report.capabilities if report else None,
        "words": _words(record, report),
    }


def _words(record: Submission, report: StaticReport | None) -> VerdictWords | None:
    """What was looked at; None before the scan, and where it is blocked."""
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
    found = submissions.ordered_findings(record, report)
    return tuple(one for one in found if one.kind is not FindingKind.CAPABILITY or one.rule_id in named)


async def _offers(request: Request, record: Submission) -> Offers:
    principal = principal_of(request)
    has_rights = await may(principal, Right.SUBMITTER, submissions.rights_object(record))
    refusal = why_no_appeal(record)
    note = ""
    if not has_rights and (not record.state.terminal or refusal is None):
        note = "Its submitters, owners of its repository and reviewers may cancel it or appeal."
    elif has_rights and record.state.failure and refusal is not None:
        note = f"There is no appeal: {refusal[0].lower()}{refusal[1:]}"
    is_upload = record.identity.is_upload
    is_own = (
        record.identity.host == UPLOAD_HOST
        and UPLOAD.allows(principal)
        and (principal.account or "").lower() == record.identity.owner
    )
    return Offers(
        cancel=has_rights and not record.state.terminal,
        resubmit=record.state.ends_run and (not is_upload or (has_rights and _may_end_otherwise(record))),
        correct=record.state.ends_run and is_upload and is_own,
        review=has_rights and refusal is None,
        decide=record.state.reviewable and APPROVE.allows(principal) and await may_decide(principal, record),
        answer=has_rights and record.change_request is not None,
        note=note,
    )


def _may_end_otherwise(record: Submission) -> bool:
    """Whether the same bytes could end in another way: the last run ended for a reason that is not in them."""
    exhausted = record.decision is not None and EXHAUSTED in record.decision.rule_ids
    return record.state is State.DEQUEUED or exhausted


# What people do.


def _place(request: Request) -> str:
    return f"/submissions/{request.path_params['submission_id']}"


async def resubmit(request: Request) -> Response:
    """Anybody may have a public repository looked at again, as by submitting it; an upload, those who may run it
    again."""
    services, principal = services_of(request), principal_of(request)
    record, _ = await submissions.read_run(principal, request.path_params["submission_id"])
    if record.identity.is_upload:
        await act_by_form(request, submissions.RERUN, reason="submitted again on its page")
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
    record, _ = await submissions.read_run(principal, request.path_params["submission_id"])
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


#: What was refused at the door belongs to no category of the queue.
REFUSED = "refused"
#: How each kind is called in a summary, in the order in which they are shown.
KINDS = {
    StateCategory.PUBLISHED.value: ("published", "good"),
    StateCategory.RUNNING.value: ("being checked", "info"),
    StateCategory.WAITING.value: ("waiting", "info"),
    StateCategory.COOLDOWN.value: ("cooling down", "info"),
    StateCategory.REVIEW.value: ("for a reviewer", "warn"),
    StateCategory.FAILED.value: ("failed", "bad"),
    REFUSED: ("refused", "bad"),
    StateCategory.CANCELLED.value: ("cancelled", ""),
}


async def show_page(request: Request) -> Response:
    read_from = await page_position(request)
    view = await _read_view(request)
    kinds = [REFUSED if one.submission is None else one.submission.category for one in view.skills]
    total = len(view.skills)
    title = f"Checking {total} {'skill' if total == 1 else 'skills'}"
    if view.ended:
        title = f"{kinds.count(StateCategory.PUBLISHED.value)} of {total} published"
    return render(
        request,
        "hand_in.html",
        view=view,
        title=title,
        counts=[(kinds.count(kind), *words) for kind, words in KINDS.items() if kind in kinds],
        address=f"{public_address(request)}{submission_lists.PAGES}/{view.id}",
        cursor=await sealed_cursor(request, read_from),
        refresh_ms=RESTING_MS if view.ended else MOVING_MS,
    )


async def _read_view(request: Request) -> submission_lists.HandInView:
    wanted = submission_lists.HandInRequest(hand_in_id=request.path_params["hand_in_id"])
    return await submission_lists.SHOW_HAND_IN(services_of(request), principal_of(request), wanted)


async def live_hand_in(request: Request) -> Submissions:
    view = await _read_view(request)
    ids = frozenset(one.submission.id for one in view.skills if one.submission is not None)
    # A stream of no ids would be one of everything; of what was refused nothing changes any more.
    return Submissions(viewer_of(request), ids or frozenset({view.id}))


_HAND_IN = f"{submission_lists.PAGES}/{{hand_in_id}}"


ENDPOINTS = (
    page(
        _ONE,
        submission,
        query=RunQuery,
        action=submissions.SHOW,
        shows=("submission.runs", "submission.findings", "submission.sarif"),
    ),
    stream(f"{_ONE}/live", live, documented=False),
    form(
        f"{_ONE}/cancel",
        submissions.CANCEL,
        lambda ended, _: f"{ended.skill_name} was cancelled.",
        at=_ONE,
        confirm=True,
    ),
    form(f"{_ONE}/review", APPEAL, "Your appeal was filed. A reviewer will decide it.", at=_ONE),
    form(f"{_ONE}/report", REPORT_SUBMISSION, "Thank you. A reviewer will look at it.", at=_ONE),
    form(f"{_ONE}/answer", ANSWER, "Your answer was sent. It waits for a reviewer again.", at=_ONE),
    form(f"{_ONE}/resubmit", SUBMIT, at=_ONE, view=resubmit, shows=("submission.rerun",)),
    form(f"{_ONE}/upload", UPLOAD, at=_ONE, view=correct, most_body=MOST_UPLOAD),
    page(_HAND_IN, show_page, action=submission_lists.SHOW_HAND_IN),
    stream(f"{_HAND_IN}/live", live_hand_in, documented=False),
)
