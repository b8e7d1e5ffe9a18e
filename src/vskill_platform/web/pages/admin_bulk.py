"""The same thing done to many submissions: a filter, what it finds and what would happen, and then, once somebody
confirms it, the doing. Each one goes through the store's own function: what moved meanwhile is left alone."""

import enum
from collections import Counter

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.principal import Principal
from vskill_platform.actions.review import REJECT, DecideSubmission
from vskill_platform.actions.submissions import CANCEL, RERUN, CancelSubmission, RerunSubmission
from vskill_platform.actions.wire import Asked
from vskill_platform.domain.errors import InvalidInput, PlatformError
from vskill_platform.domain.states import State, may_move
from vskill_platform.domain.submission import Submission
from vskill_platform.store.audit import note
from vskill_platform.submission_store import count_submissions, list_submissions
from vskill_platform.web.auth import text_of
from vskill_platform.web.flash import see_other
from vskill_platform.web.pages.acting import (
    acting,
    admin_page,
    choice_of,
    number_of,
    reason_of,
    require_confirmed,
)
from vskill_platform.web.principal import Guard, principal_of
from vskill_platform.web.routing import form, page, query_of
from vskill_platform.worker_context import require_env

PLACE = "/admin/bulk"
#: Done in one go; the page says when there are more.
MOST_AT_ONCE = 500
#: Looked at for the filter in one go.
MOST_LOOKED_AT = 20_000
MOST_SHOWN = 50
HOUR_MS = 3_600_000


class Action(enum.StrEnum):
    """What can be done to many."""

    AGAIN = "again"
    CANCEL = "cancel"
    REJECT = "reject"


STATES = tuple(state.value for state in State)
ACTIONS = tuple(action.value for action in Action)

WORDS = {
    Action.AGAIN: "start a new run, or make a waiting one due now",
    Action.CANCEL: "take off the queue",
    Action.REJECT: "end as rejected",
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
    action: Action = Action.AGAIN


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
        acts=tuple((action.value, WORDS[action]) for action in Action),
        words=WORDS[asked.action],
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
    able = [record for record in chosen if _is_able(asked.action, record)]
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


def _is_able(action: Action, record: Submission) -> bool:
    if action is Action.CANCEL:
        return not record.state.terminal
    if action is Action.REJECT:
        return may_move(record.state, State.REJECTED)
    return record.claim is None


@acting(PLACE)
async def do_bulk(request: Request) -> Response:
    """What the dry run showed: the filter is asked again, and nothing is done if it finds a different number."""
    asked = BulkQuery(
        state=State(await choice_of(request, "state", STATES)),
        place=await text_of(request, "place"),
        why=await text_of(request, "why"),
        hours=await number_of(request, "hours"),
        action=Action(await choice_of(request, "action", ACTIONS)),
    )
    reason = await reason_of(request)
    await require_confirmed(request)
    found = await _find(asked)
    expected = await number_of(request, "expected")
    if len(found.records) != expected:
        message = (
            f"Nothing was done: it would be {len(found.records)} now, and was {expected} when you looked"
        )
        raise InvalidInput(message, field="expected", fix="look at the list again")
    principal = principal_of(request)
    await note(
        f"bulk {asked.action.value}",
        asked.state.value if asked.state else "",
        by=principal.actor,
        reason=reason,
        details={"place": asked.place, "why": asked.why, "count": str(expected)},
    )
    outcomes = Counter([await _act(asked.action, record, principal, reason) for record in found.records])
    text = f"Done to {outcomes['done']} submissions."
    if outcomes["refused"]:
        text += f" {outcomes['refused']} had moved on meanwhile and were left alone."
    if found.more:
        text += " There are more: look again."
    return see_other(request, PLACE, text)


async def _act(action: Action, record: Submission, principal: Principal, reason: str) -> str:
    try:
        if action is Action.REJECT:
            decision = DecideSubmission(
                submission_id=record.id, run=record.run, digest=record.digest, reason=reason
            )
            await REJECT(require_env(), principal, decision)
        elif action is Action.CANCEL:
            await CANCEL(require_env(), principal, CancelSubmission(submission_id=record.id, reason=reason))
        else:
            await RERUN(require_env(), principal, RerunSubmission(submission_id=record.id, reason=reason))
    except PlatformError as error:
        if error.status >= 500:
            raise
        return "refused"
    return "done"


ENDPOINTS = (
    page(PLACE, bulk, guard=Guard.ADMIN, query=BulkQuery),
    form(PLACE, do_bulk, guard=Guard.ADMIN, scope="admin"),
)
