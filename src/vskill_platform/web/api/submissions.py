"""Following submissions: lists, counts, runs and places in the line."""

from typing import Annotated, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform import submission_store
from vskill_platform.actions.submission_views import (
    PositionView,
    SubmissionCard,
    position_view,
    submission_card,
)
from vskill_platform.actions.submissions import SUBMISSIONS
from vskill_platform.actions.wire import PLAIN, Asked, Wire
from vskill_platform.domain.errors import InvalidInput, NotSignedIn
from vskill_platform.domain.states import Category, State, states_in
from vskill_platform.store.statistics import estimate_ms, recent_activity, waiting_line
from vskill_platform.store.submission_lists import Order, find_submissions
from vskill_platform.web.principal import principal_of
from vskill_platform.web.responses import json_response
from vskill_platform.web.routing import get, query_of

MOST_IDS = 100

Limit = Annotated[int, msgspec.Meta(ge=1, le=100)]


# Following.


class SubmissionsQuery(Asked, frozen=True):
    """Narrows and orders the list; the next page is asked for with `after`."""

    state: State | None = None
    #: every state of that category
    category: Category | None = None
    #: words of the skill's name or the repository's address
    q: Annotated[str, msgspec.Meta(max_length=400)] = ""
    sort: Order = Order.UPDATED
    direction: Literal["desc", "asc"] = "desc"
    #: 1: only those that the account has submitted
    mine: Literal[0, 1] = 0
    after: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)] | None = None
    limit: Limit = 50


class SubmissionsAnswer(Wire, frozen=True):
    """A page of submissions."""

    submissions: tuple[SubmissionCard, ...]
    has_more: bool
    #: give it back as `after` for the next page
    after: str | None
    #: records that could not be read and are missing here
    unreadable: int


class PositionsQuery(Asked, frozen=True):
    """Ids of submissions, separated by commas."""

    ids: Annotated[str, msgspec.Meta(min_length=1, max_length=6000, pattern=PLAIN)]


class OnePosition(Wire, frozen=True):
    """Where one submission stands."""

    id: str
    state: str
    position: PositionView | None


class PositionsAnswer(Wire, frozen=True):
    """In the order of the ids; those that do not exist are missing."""

    positions: tuple[OnePosition, ...]
    waiting: int
    #: more wait than were counted
    truncated: bool


async def list_view(request: Request) -> Response:
    query = query_of(request, SubmissionsQuery)
    submitter = _own_account(request) if query.mine else None
    found = await find_submissions(
        states=states_asked(query.state, query.category),
        text=query.q,
        submitter=submitter,
        order=query.sort,
        descending=query.direction == "desc",
        after=query.after,
        limit=query.limit,
    )
    shown = tuple(map(submission_card, found.items))
    more = found.after is not None or found.truncated
    return json_response(SubmissionsAnswer(shown, more, found.after, found.skipped))


def states_asked(state: State | None, category: Category | None) -> frozenset[State]:
    """A category stands for all of its states (E3); nothing stands for every state."""
    if state is not None and category is not None:
        raise InvalidInput(
            "Give a state or a category, not both.", field="category", fix="leave one of them out"
        )
    if category is not None:
        return states_in(category)
    return frozenset() if state is None else frozenset({state})


def _own_account(request: Request) -> str:
    account = principal_of(request).account
    if account is None:
        raise NotSignedIn
    return account


async def positions_view(request: Request) -> Response:
    ids = [one for one in query_of(request, PositionsQuery).ids.split(",") if one][: MOST_IDS + 1]
    if len(ids) > MOST_IDS:
        raise InvalidInput(f"More than {MOST_IDS} ids.", field="ids", fix=f"ask for at most {MOST_IDS}")
    records = await submission_store.get_submissions_fresh(ids)
    line, activity = await waiting_line(), await recent_activity()
    positions = [(one, line.position(one)) for one in records]
    found = tuple(
        OnePosition(one.id, one.state.value, position_view(place, estimate_ms(place, activity)))
        for one, place in positions
    )
    return json_response(PositionsAnswer(found, len(line.places), line.truncated))


ENDPOINTS = (
    get(
        SUBMISSIONS,
        list_view,
        query=SubmissionsQuery,
        answer=SubmissionsAnswer,
        problems=(401,),
        tag="submissions",
        summary="List submissions",
    ),
    get(
        f"{SUBMISSIONS}/positions",
        positions_view,
        query=PositionsQuery,
        answer=PositionsAnswer,
        tag="submissions",
        summary="Ask where submissions stand in the line",
    ),
)
