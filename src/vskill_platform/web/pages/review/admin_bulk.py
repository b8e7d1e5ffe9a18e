"""The same thing done to many submissions: a filter, what it finds and what would happen, and then, once somebody
confirms it, the doing. The form names each submission as it was shown: what has changed since is left alone."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.submissions import AllSubmissions
from vskill_core.errors import InvalidInput
from vskill_core.plural import counted
from vskill_platform.actions.review.bulk import BULK, BulkFilter, BulkVerb, find_candidates
from vskill_platform.actions.submissions.submissions import STATS
from vskill_platform.actions.wire import Asked
from vskill_platform.domain.submissions.states import State
from vskill_platform.web.auth import values_of
from vskill_platform.web.flash import see_other
from vskill_platform.web.pages.acting import act_by_form, admin_page, back_of, form, require_confirmed
from vskill_platform.web.principal import principal_of, services_of
from vskill_platform.web.routing import page, query_of

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
    counts = await STATS(services, principal, AllSubmissions())
    return admin_page(
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
    await require_confirmed(request)
    items = [_parse_item(value) for value in await values_of(request, "item") if value]
    if not items:
        raise InvalidInput("No submission was chosen.", field="item", fix="choose at least one in the list")
    done = await act_by_form(request, BULK, items=items)
    text = f"Applied to {counted(len(done.done), 'submission')}."
    if done.refused:
        text += f" {len(done.refused)} were skipped: {done.refused[0].reason}"
    return see_other(request, await back_of(request, PLACE), text)


def _parse_item(value: str) -> dict[str, object]:
    """An item of the form: id, run and digest."""
    submission_id, _, rest = value.partition(" ")
    run, _, digest = rest.partition(" ")
    return {"id": submission_id, "run": run, "digest": digest or None}


ENDPOINTS = (
    page(PLACE, bulk, action=BULK, shows=("review.bulk",), query=BulkQuery),
    form(PLACE, BULK, at=PLACE, view=do_bulk),
)
