"""The same thing done to many submissions: a filter, what it finds and what would happen, and then, once somebody
confirms it, the doing. The form names each submission as it was shown: what has changed since is left alone."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.bulk import BULK, MOST_AT_ONCE, BulkVerb
from vskill_platform.actions.wire import Asked
from vskill_platform.domain.errors import InvalidInput
from vskill_platform.domain.states import State, may_move
from vskill_platform.domain.submission import Submission
from vskill_platform.submission_store import count_submissions, list_submissions
from vskill_platform.web.auth import values_of
from vskill_platform.web.flash import see_other
from vskill_platform.web.pages.acting import act_by_form, acting, admin_page, require_confirmed
from vskill_platform.web.routing import form, page, query_of
from vskill_platform.worker_context import require_env

PLACE = "/admin/bulk"
#: Looked at for the filter in one go.
MOST_LOOKED_AT = 20_000
MOST_SHOWN = 50
HOUR_MS = 3_600_000


WORDS = {
    BulkVerb.AGAIN: "start a new run, or make a waiting one due now",
    BulkVerb.CANCEL: "take off the queue",
    BulkVerb.APPROVE: "be published with these bytes",
    BulkVerb.REJECT: "end as rejected",
}


class BulkQuery(Asked, frozen=True):
    """The filter and the action; without a state nothing is looked for."""

    state: State | None = None
    #: A part of the repository's address.
    place: str = ""
    #: A part of the last event's reason.
    why: str = ""
    #: Unchanged for so many hours.
    hours: int = 0
    verb: BulkVerb = BulkVerb.AGAIN


class Found(msgspec.Struct, frozen=True):
    """What the filter finds."""

    records: tuple[Submission, ...]
    #: Of those, how many the action would be refused for.
    refused: int
    #: There are more than are done in one go, or than were looked at.
    more: bool


async def bulk(request: Request) -> Response:
    """The dry run: nothing is changed."""
    asked = query_of(request, BulkQuery)
    found = None if asked.state is None else await _find(asked)
    counts = await count_submissions()
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


async def _find(asked: BulkQuery) -> Found:
    if asked.state is None:
        raise InvalidInput("No state was chosen", field="state", fix="choose one")
    matching: list[Submission] = []
    after: str | None = None
    looked_at = 0
    while len(matching) <= MOST_AT_ONCE and looked_at < MOST_LOOKED_AT:
        page = await list_submissions([asked.state], after=after, limit=1000)
        looked_at += len(page.items)
        matching += [record for record in page.items if _fits(asked, record)]
        after = page.after
        if after is None:
            break
    chosen = matching[:MOST_AT_ONCE]
    able = [record for record in chosen if _is_able(asked.verb, record)]
    return Found(
        records=tuple(able),
        refused=len(chosen) - len(able),
        more=after is not None or len(matching) > MOST_AT_ONCE,
    )


def _fits(asked: BulkQuery, record: Submission) -> bool:
    idle_ms = require_env("kv").kv.now() - record.updated_at
    return (
        asked.place.casefold().strip() in record.repo_url.casefold()
        and asked.why.casefold().strip() in record.why.casefold()
        and idle_ms >= asked.hours * HOUR_MS
    )


def _is_able(verb: BulkVerb, record: Submission) -> bool:
    if verb is BulkVerb.CANCEL:
        return not record.state.terminal
    if verb is BulkVerb.APPROVE:
        return record.state is State.NEEDS_REVIEW and record.digest is not None
    if verb is BulkVerb.REJECT:
        return may_move(record.state, State.REJECTED)
    return record.claim is None


@acting(PLACE)
async def do_bulk(request: Request) -> Response:
    """What the dry run showed, and nothing else: each submission as it was shown."""
    await require_confirmed(request)
    items = [_seen(value) for value in await values_of(request, "item") if value]
    if not items:
        raise InvalidInput("No submission was chosen.", field="item", fix="look at the list again")
    done = await act_by_form(request, BULK, items=items)
    text = f"Done to {len(done.done)} submissions."
    if done.refused:
        text += f" {len(done.refused)} were left alone: {done.refused[0].reason}"
    return see_other(request, PLACE, text)


def _seen(value: str) -> dict[str, object]:
    """An item of the form: id, run and digest."""
    submission_id, _, rest = value.partition(" ")
    run, _, digest = rest.partition(" ")
    return {"id": submission_id, "run": run, "digest": digest or None}


ENDPOINTS = (
    page(PLACE, bulk, action=BULK, query=BulkQuery),
    form(PLACE, do_bulk, action=BULK),
)
