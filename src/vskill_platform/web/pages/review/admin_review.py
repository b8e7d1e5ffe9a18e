"""What waits for a person: the list in the order of risk, the evidence beside what each decision will do, and the
decision, alone or about those that are ticked; reports of users; how each rule did, and suppressed rules. Approving
names the bytes that were looked at, so nothing else is ever approved by it. After each decision comes the next item."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Asked, NoParameters
from vskill_client.wire.submissions import SubmissionView
from vskill_core.errors import InvalidInput
from vskill_core.plural import counted
from vskill_platform.actions.action import Action
from vskill_platform.actions.principal import viewer_for
from vskill_platform.actions.recall.blocklist import BlockReach
from vskill_platform.actions.review import review
from vskill_platform.actions.review.appeals import OTHERS_ONLY_MS
from vskill_platform.actions.review.bulk import BULK, BulkFilter, BulkVerb, find_candidates
from vskill_platform.actions.review.evidence import gather_evidence, preview_decision, preview_many, read_run
from vskill_platform.actions.review.reports import DISMISS, FILED, UPHOLD, WhichReports
from vskill_platform.actions.review.review_queue import WAITING, order_queue
from vskill_platform.actions.submissions.submissions import STATS
from vskill_platform.actions.verdicts.rule_figures import RULE_FIGURES
from vskill_platform.actions.verdicts.suppressions import SUPPRESS, SUPPRESSED, UNSUPPRESS, SuppressionChange
from vskill_platform.domain.review.review_risk import risk_of
from vskill_platform.domain.submissions.states import State
from vskill_platform.web.auth import see_other, text_of, values_of
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.web.kept import kept_of
from vskill_platform.web.pages import acting
from vskill_platform.web.pages.review.evidence import (
    choose,
    colour_files,
    compare,
    place_findings,
    read_live_files,
    show_file,
)
from vskill_platform.web.routing import View, page, query_of

LIST = "/admin/review"
#: Of the boxes in a list.
MOST_TICKED = 100


class EvidenceQuery(Asked, frozen=True):
    """Which file is shown, and of which run."""

    file: str | None = None
    run: int | None = None


async def evidence(request: Request) -> Response:
    asked = query_of(request, EvidenceQuery)
    submission_id: str = request.path_params["submission_id"]
    services, reader = services_of(request), principal_of(request)
    record, current = await read_run(reader, submission_id, asked.run)
    found = await gather_evidence(services, reader, record)
    live = await read_live_files(found)
    chosen = choose(found, asked.file)
    coloured = await colour_files(kept_of(request).highlighter, found, live, chosen)
    findings = (*found.findings, *found.capabilities)
    decidable = record.run == current.run and record.state.reviewable
    return acting.admin_page(
        request,
        "evidence.html",
        record=record,
        current=current,
        decidable=decidable,
        risk=risk_of(record),
        queue=await order_queue(reader),
        preview=await preview_decision(reader, record) if decidable else None,
        found=found,
        places=place_findings(found, live, coloured),
        shown=None if chosen is None else show_file(chosen, findings, coloured.submitted[chosen.path]),
        differences=await compare(found, live, coloured),
        here=f"{LIST}/{submission_id}",
        others_only_ms=OTHERS_ONLY_MS,
        named=viewer_for(reader).actor,
    )


def _decide(action: Action[Any, SubmissionView], told: str) -> View:
    """Decide, then lead on to the next submission that waits, or to the list if nothing else does."""

    async def decide(request: Request) -> Response:
        queue = await order_queue(principal_of(request))
        submission_id = request.path_params["submission_id"]
        others = sum(record.id != submission_id for record in queue.records)
        following = queue.following(submission_id)
        decided = await acting.act_by_form(request, action)
        done = f"{decided.skill_name} {told}."
        if following is None or following == decided.id:
            return see_other(request, LIST, f"{done} Nothing else waits.")
        return see_other(request, f"{LIST}/{following}", f"{done} This is the next one of {others}.")

    return decide


async def preview_ticked(request: Request) -> Response:
    """What a decision about those that are ticked would do, where they are as the list showed them; nothing is
    changed."""
    verb = await text_of(request, "verb", 20)
    if verb not in (BulkVerb.APPROVE, BulkVerb.REJECT):
        raise InvalidInput("Nothing was chosen to be done.", field="verb", fix="choose approve or reject")
    ticked = [value for value in await values_of(request, "tick") if value][:MOST_TICKED]
    if not ticked:
        raise InvalidInput("Nothing is ticked.", field="tick", fix="tick at least one submission")
    reader = principal_of(request)
    BULK.admit(reader)
    found = await preview_many(reader, [value.partition(" ")[0] for value in ticked])
    previews = [
        (record, risk_of(record), preview)
        for record, preview in found
        if " ".join(filter(None, (record.id, str(record.run), record.digest))) in ticked
    ]
    gone = len(ticked) - len(previews)
    return acting.admin_page(request, "ticked.html", verb=BulkVerb(verb), previews=previews, gone=gone)


def told_rerun(record: SubmissionView, _: object) -> str:
    """A sentence that says when the next run starts."""
    if record.rerun_requested:
        return f"{record.skill_name}: the next run begins when run {record.run} is over."
    return f"{record.skill_name}: run {record.run} is due now."


_ONE = LIST + "/{submission_id}"

# The same thing done to many submissions: a filter, what it finds and what would happen, and then, once somebody
# confirms it, the doing. The form names each submission as it was shown: what has changed since is left alone.

PLACE = "/admin/bulk"
MOST_SHOWN = 50


WORDS = {
    BulkVerb.AGAIN: "Run again",
    BulkVerb.CANCEL: "Cancel",
    BulkVerb.APPROVE: "Approve and publish",
    BulkVerb.REJECT: "Reject",
}


class BulkQuery(Asked, frozen=True):
    """The filter and the action; without a state nothing is looked for."""

    state: State | None = None
    #: A part of the repository's address.
    place: str = ""
    #: A part of the last event's reason.
    why: str = ""
    #: Unchanged for at least this many hours.
    hours: int = 0
    verb: BulkVerb = BulkVerb.AGAIN


async def bulk(request: Request) -> Response:
    """The dry run: nothing is changed."""
    asked = query_of(request, BulkQuery)
    services, principal = services_of(request), principal_of(request)
    found = None
    if asked.state is not None:
        wanted = BulkFilter(asked.state, asked.place, asked.why, asked.hours)
        found = await find_candidates(services, principal, asked.verb, wanted)
    counts = await STATS(services, principal, NoParameters())
    return acting.admin_page(
        request,
        "bulk.html",
        asked=asked,
        found=found,
        most_shown=MOST_SHOWN,
        counts=counts.by_state,
        states=tuple(State),
        verbs=tuple((verb.value, WORDS[verb]) for verb in BulkVerb),
        words=WORDS[asked.verb],
        query=request.url.query,
    )


async def do_bulk(request: Request) -> Response:
    """What the dry run showed, and nothing else: each submission as it was shown."""
    await acting.require_confirmed(request)
    items = [_parse_item(value) for value in await values_of(request, "item") if value]
    if not items:
        raise InvalidInput("No submission was chosen.", field="item", fix="choose at least one in the list")
    done = await acting.act_by_form(request, BULK, items=items)
    text = f"Applied to {counted(len(done.done), 'submission')}."
    if done.refused:
        text += f" {len(done.refused)} were skipped: {done.refused[0].reason}"
    return see_other(request, await acting.back_of(request, PLACE), text)


def _parse_item(value: str) -> dict[str, object]:
    """An item of the form: id, run and digest."""
    submission_id, _, rest = value.partition(" ")
    run, _, digest = rest.partition(" ")
    return {"id": submission_id, "run": run, "digest": digest or None}


REPORTS = "/admin/reports"


async def uphold(request: Request) -> Response:
    if await text_of(request, "block") not in ("", BlockReach.NOTHING.value):
        await acting.require_confirmed(request)
    decided = await acting.act_by_form(request, UPHOLD)
    blocked = decided.decision.blocked if decided.decision else ""
    told = f"The report about {decided.skill} is upheld{f', and {blocked} is blocked' if blocked else ''}."
    return see_other(request, REPORTS, told)


SUPPRESSIONS = "/admin/suppressions"


def told_suppressed(done: SuppressionChange, _: object) -> str:
    told = f"{done.suppression.rule} no longer counts for this content."
    return f"{told} It is being judged again." if done.new_runs else told


def told_unsuppressed(done: SuppressionChange, _: object) -> str:
    told = f"{done.suppression.rule} counts again."
    return f"{told} {', '.join(done.rescans)} is being judged again." if done.rescans else told


ENDPOINTS = (
    acting.answer_page(LIST, "review.html", ("after",), found=WAITING),
    acting.form(f"{LIST}/ticked", BULK, at=LIST, view=preview_ticked),
    page(_ONE, evidence, action=WAITING, query=EvidenceQuery),
    acting.form(
        f"{_ONE}/approve",
        review.APPROVE,
        at=LIST,
        view=_decide(review.APPROVE, "is approved and will be published"),
    ),
    acting.form(f"{_ONE}/reject", review.REJECT, at=LIST, view=_decide(review.REJECT, "is rejected")),
    acting.form(
        f"{_ONE}/request-change",
        review.REQUEST_CHANGE,
        at=LIST,
        view=_decide(review.REQUEST_CHANGE, "waits for its author"),
    ),
    acting.form(
        f"{_ONE}/withdraw-request",
        review.WITHDRAW_REQUEST,
        lambda done, _: f"{done.skill_name} waits for a reviewer again.",
        at=LIST,
    ),
    acting.form(f"{_ONE}/again", review.LOOK_AGAIN, told_rerun, at=LIST),
    page(PLACE, bulk, action=BULK, shows=("review.bulk",), query=BulkQuery),
    acting.form(PLACE, BULK, at=PLACE, view=do_bulk),
    acting.answer_page(
        REPORTS, "reports.html", ("status", "skill", "after"), found=FILED, choices=list(WhichReports)
    ),
    acting.form(f"{REPORTS}/{{report_id}}/uphold", UPHOLD, at=REPORTS, view=uphold),
    acting.form(
        f"{REPORTS}/{{report_id}}/dismiss",
        DISMISS,
        lambda decided, _: f"The report about {decided.skill} is dismissed.",
        at=REPORTS,
    ),
    acting.answer_page("/admin/rules", "rules.html", found=RULE_FIGURES),
    acting.answer_page(SUPPRESSIONS, "suppressions.html", ("after",), found=SUPPRESSED),
    acting.form(f"{SUPPRESSIONS}/add", SUPPRESS, told_suppressed, at=SUPPRESSIONS),
    acting.form(f"{SUPPRESSIONS}/remove", UNSUPPRESS, told_unsuppressed, at=SUPPRESSIONS),
)
