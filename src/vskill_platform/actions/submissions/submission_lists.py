"""Lists of submissions, and where submissions stand in the line of those that wait for a worker."""

from typing import Annotated, Literal

import msgspec

from vskill_client.wire.base import PLAIN, ActionRequest, Wire
from vskill_client.wire.submissions import SUBMISSIONS, PositionView, SubmissionCard
from vskill_core.errors import InvalidInput, NotSignedIn
from vskill_platform.actions.action import action
from vskill_platform.actions.principal import Principal, Right, audiences_of
from vskill_platform.actions.submissions.submission_views import position_view, submission_card
from vskill_platform.domain.submissions.states import State, StateCategory, states_in
from vskill_platform.queue.outlook import look_ahead
from vskill_platform.store.submissions.statistics import recent_activity, waiting_line
from vskill_platform.store.submissions.submission_lists import FoundSubmissions, Order, find_submissions
from vskill_platform.submission_store import get_submissions

MOST_IDS = 100
#: Of one's own submissions, how many a page shows.
OWN_AT_ONCE = 25


class ListSubmissions(ActionRequest, frozen=True, kw_only=True):
    """Narrows and orders the list; the next page is asked for with `after`."""

    #: only those in this state
    state: State | None = None
    #: every state of that category
    category: StateCategory | None = None
    #: words of the skill's name or the repository's address
    q: Annotated[str, msgspec.Meta(max_length=400)] = ""
    #: by the last change, or by when they were submitted
    sort: Order = Order.UPDATED
    #: the latest first, or the oldest first
    direction: Literal["desc", "asc"] = "desc"
    #: only those that the account has submitted
    mine: bool = False
    #: the `after` of the page before
    after: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)] | None = None
    #: how many to show on a page
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 50


class SubmissionsAnswer(Wire, frozen=True):
    """A page of submissions."""

    submissions: tuple[SubmissionCard, ...]
    has_more: bool
    #: give it back as `after` for the next page
    after: str | None
    #: records that could not be read and are missing here
    unreadable: int


class FindPositions(ActionRequest, frozen=True, kw_only=True):
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
    #: how many wait of those that you may read
    waiting: int
    #: more wait than were counted
    truncated: bool


async def list_submissions(actor: Principal, request: ListSubmissions) -> SubmissionsAnswer:
    if request.mine and actor.account is None:
        raise NotSignedIn
    found = await find_submissions(
        audiences=audiences_of(actor),
        states=states_asked(request.state, request.category),
        text=request.q,
        submitter=actor.account if request.mine else None,
        order=request.sort,
        descending=request.direction == "desc",
        after=request.after,
        limit=request.limit,
    )
    more = found.after is not None or found.truncated
    return SubmissionsAnswer(tuple(map(submission_card, found.items)), more, found.after, found.skipped)


async def own_submissions(reader: Principal, after: str | None) -> FoundSubmissions:
    """What the reader's account has submitted and may still read, the latest first."""
    return await find_submissions(
        audiences=audiences_of(reader), submitter=reader.name, after=after, limit=OWN_AT_ONCE
    )


def states_asked(state: State | None, category: StateCategory | None) -> frozenset[State]:
    """A category stands for all of its states (E3); nothing stands for every state."""
    if state is not None and category is not None:
        raise InvalidInput(
            "Give a state or a category, not both.", field="category", fix="leave one of them out"
        )
    if category is not None:
        return states_in(category)
    return frozenset() if state is None else frozenset({state})


async def find_positions(actor: Principal, request: FindPositions) -> PositionsAnswer:
    ids = [part for part in request.ids.split(",") if part][: MOST_IDS + 1]
    if len(ids) > MOST_IDS:
        raise InvalidInput(f"More than {MOST_IDS} ids.", field="ids", fix=f"ask for at most {MOST_IDS}")
    audiences = audiences_of(actor)
    records = await get_submissions(ids, audiences=audiences)
    line = await waiting_line(audiences=audiences)
    activity, outlook = await recent_activity(audiences=audiences), await look_ahead()
    positions = [(record, line.position(record)) for record in records]
    found = tuple(
        OnePosition(record.id, record.state.value, position_view(place, activity, outlook))
        for record, place in positions
    )
    return PositionsAnswer(found, len(line.places), line.truncated)


LIST = action(
    list_submissions,
    "submission.list",
    SUBMISSIONS,
    method="GET",
    right=Right.ANYONE,
    errors=(NotSignedIn,),
    summary="List submissions",
)
POSITIONS = action(
    find_positions,
    "submission.positions",
    f"{SUBMISSIONS}/positions",
    method="GET",
    right=Right.ANYONE,
    summary="Read the queue positions of submissions",
    command="",
)

ACTIONS = (LIST, POSITIONS)
