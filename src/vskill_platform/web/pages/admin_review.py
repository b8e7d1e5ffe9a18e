"""What waits for a person: the list, the evidence side by side, and the decision. Approving names the bytes that were
looked at, so nothing else is ever approved by it."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.appeals import OTHERS_ONLY_MS
from vskill_platform.actions.evidence import gather_evidence, read_run
from vskill_platform.actions.review import APPROVE, LOOK_AGAIN, REJECT, WAITING, ListWaiting
from vskill_platform.actions.submission_views import SubmissionView
from vskill_platform.actions.wire import Asked
from vskill_platform.domain.states import State
from vskill_platform.web.flash import see_other
from vskill_platform.web.pages.acting import act_by_form, acting, admin_page, back_of
from vskill_platform.web.pages.evidence import choose, compare
from vskill_platform.web.principal import principal_of, services_of
from vskill_platform.web.routing import form, page, query_of

LIST = "/admin/review"
#: Among how many that wait the next one is looked for.
NEXT_OF = 200


class ReviewQuery(Asked, frozen=True):
    """Which page of the list."""

    after: str | None = None


class EvidenceQuery(Asked, frozen=True):
    """Which file is shown, and of which run."""

    file: str | None = None
    run: int | None = None


async def waiting(request: Request) -> Response:
    after = query_of(request, ReviewQuery).after
    found = await WAITING(services_of(request), principal_of(request), ListWaiting(after=after))
    return admin_page(request, "review.html", found=found, is_first=after is None)


async def evidence(request: Request) -> Response:
    asked = query_of(request, EvidenceQuery)
    submission_id: str = request.path_params["submission_id"]
    services, reader = services_of(request), principal_of(request)
    record, current = await read_run(services, reader, submission_id, asked.run)
    found = await gather_evidence(services, reader, record)
    return admin_page(
        request,
        "evidence.html",
        record=record,
        current=current,
        decidable=record.run == current.run and record.state is State.NEEDS_REVIEW,
        found=found,
        shown=choose(found, asked.file),
        differences=await compare(services, found),
        here=f"{LIST}/{submission_id}",
        others_only_ms=OTHERS_ONLY_MS,
    )


@acting(LIST)
async def approve(request: Request) -> Response:
    approved = await act_by_form(request, APPROVE)
    told = f"{approved.skill_name} is approved and will be published."
    return await _lead_on(request, approved, told)


@acting(LIST)
async def reject(request: Request) -> Response:
    rejected = await act_by_form(request, REJECT)
    return await _lead_on(request, rejected, f"{rejected.skill_name} is rejected.")


async def _lead_on(request: Request, decided: SubmissionView, told: str) -> Response:
    """Redirect to the next waiting submission, from here down and then from the top; to the list if there is none."""
    waits = await WAITING(services_of(request), principal_of(request), ListWaiting(limit=NEXT_OF))
    began = decided.history[-2].at if len(decided.history) > 1 else ""
    rest = [one for one in waits.items if one.since <= began] or list(waits.items)
    if not rest:
        return see_other(request, LIST, f"{told} Nothing else waits.")
    return see_other(request, f"{LIST}/{rest[0].id}", f"{told} This is the next one of {waits.total}.")


@acting(LIST)
async def run_again(request: Request) -> Response:
    record = await act_by_form(request, LOOK_AGAIN)
    return see_other(request, await back_of(request, LIST), rerun_words(record))


def rerun_words(record: SubmissionView) -> str:
    """A sentence that says when the next run starts."""
    if record.rerun_requested:
        return f"{record.skill_name}: the next run begins when run {record.run} is over."
    return f"{record.skill_name}: run {record.run} is due now."


_ONE = LIST + "/{submission_id}"

ENDPOINTS = (
    page(LIST, waiting, action=WAITING, query=ReviewQuery),
    page(_ONE, evidence, action=WAITING, query=EvidenceQuery),
    form(f"{_ONE}/approve", approve, action=APPROVE),
    form(f"{_ONE}/reject", reject, action=REJECT),
    form(f"{_ONE}/again", run_again, action=LOOK_AGAIN),
)
