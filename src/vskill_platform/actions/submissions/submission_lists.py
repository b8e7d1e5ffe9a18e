"""Lists of submissions, where submissions stand in the line of those that wait for a worker, and hand-ins: what one
request submitted."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from vskill_client.wire.base import PLAIN, ActionRequest, Wire, iso_time
from vskill_client.wire.submissions import SUBMISSIONS, PositionView, SubmissionCard
from vskill_core.errors import InvalidInput, NotFound, NotSignedIn
from vskill_platform.actions.action import action
from vskill_platform.actions.principal import Principal, Right, audiences_of
from vskill_platform.actions.submissions.submission_views import position_view, submission_card
from vskill_platform.actions.submissions.submissions import remedies_of
from vskill_platform.domain.people.namespace import may_read
from vskill_platform.domain.submissions.states import State, StateCategory, states_in
from vskill_platform.domain.submissions.submission import EntryPoint, Submission
from vskill_platform.queue.outlook import look_ahead
from vskill_platform.store.people.namespaces import belonging_of
from vskill_platform.store.submissions import submission_lists
from vskill_platform.store.submissions.statistics import recent_activity, waiting_line
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
    sort: submission_lists.Order = submission_lists.Order.UPDATED
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
    found = await submission_lists.find_submissions(
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


async def own_submissions(reader: Principal, after: str | None) -> submission_lists.FoundSubmissions:
    """What the reader's account has submitted and may still read, the latest first."""
    return await submission_lists.find_submissions(
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


PAGES = "/hand-ins"


# Hand-ins. One skill has its submission's page; of several, or where one was refused, the hand-in has a page of its
# own. A skill is shown to those who may read its submission. What was refused at the door has none: it is shown to its
# submitter and to reviewers; of a CI job, to those who may read its repository's namespace; and where nobody was
# signed in, to whoever knows the address.


class HandInRequest(ActionRequest, frozen=True, kw_only=True):
    """One hand-in."""

    #: the last part of `page` in the answer to submitting
    hand_in_id: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class HandInSkill(Wire, frozen=True):
    """One skill of a hand-in."""

    #: what became of it at the door: `created`, `duplicate`, `already verified`, `requeued`, `blocked` or `refused`
    outcome: str
    #: why it was refused or blocked, and what to do; empty otherwise
    reason: str
    repo_url: str
    skill_path: str
    #: where it stands now; null where nothing was written
    submission: SubmissionCard | None
    #: what to do where it failed and no finding says it
    remedies: tuple[str, ...]


class HandInView(Wire, frozen=True):
    """What one request submitted."""

    id: str
    created_at: str
    #: which door it came through
    source: str
    #: whether nothing in it waits for a worker any more
    ended: bool
    #: those that you may read, in the order in which they were submitted
    skills: tuple[HandInSkill, ...]


async def page_for(actor: Principal, skills: Sequence[submission_lists.HandedIn], source: EntryPoint) -> str:
    """The path of the page that follows what was just submitted. Writes a hand-in unless one submission is all."""
    if len(skills) == 1 and skills[0].submission_id is not None:
        return f"/submissions/{skills[0].submission_id}"
    anonymous = actor.account is None and actor.ci is None and not actor.operator
    made = await submission_lists.keep_hand_in(
        tuple(skills),
        source=source,
        submitter=actor.account,
        anonymous=anonymous,
        repository=None if actor.ci is None else actor.ci.repository,
    )
    return f"{PAGES}/{made.id}"


async def show_hand_in(reader: Principal, request: HandInRequest) -> HandInView:
    found = await submission_lists.read_hand_in(request.hand_in_id)
    skills = () if found is None else await _read_skills(found, reader)
    if found is None or not skills:
        raise NotFound("There is no such hand-in; they are kept for 90 days.", hand_in=request.hand_in_id)
    return HandInView(
        id=found.id,
        created_at=iso_time(found.created_at),
        source=found.source.value,
        ended=not any(record.state.moving for _, record in skills if record is not None),
        skills=tuple(_hand_in_skill(one, record) for one, record in skills),
    )


async def _read_skills(
    found: submission_lists.HandIn, reader: Principal
) -> list[tuple[submission_lists.HandedIn, Submission | None]]:
    """Each skill that the reader may know of, with its submission."""
    audiences = audiences_of(reader)
    records = await submission_lists.read_submissions_of(found, audiences=audiences)
    # A token that is bound to a namespace reads nothing of what its account did elsewhere.
    is_own = reader.account is not None and reader.account == found.submitter and reader.namespace is None
    place = found.repository
    is_of_job = place is not None and may_read((await belonging_of(place)).audience, audiences)
    knows_all = found.anonymous or reader.is_reviewer or is_own or is_of_job
    return [
        (one, records.get(one.submission_id or ""))
        for one in found.skills
        if one.submission_id in records or (one.submission_id is None and knows_all)
    ]


def _hand_in_skill(one: submission_lists.HandedIn, record: Submission | None) -> HandInSkill:
    return HandInSkill(
        outcome=one.outcome,
        reason=one.reason,
        repo_url=record.repo_url if record else one.repo_url,
        skill_path=record.skill_path if record else one.skill_path,
        submission=submission_card(record) if record else None,
        remedies=remedies_of(record) if record else (),
    )


SHOW_HAND_IN = action(
    show_hand_in,
    "hand-in.show",
    "/api/v1/hand-ins/{hand_in_id}",
    right=Right.ANYONE,
    errors=(NotFound,),
    summary="Read what one request submitted, and where each skill stands now",
    about="Kept for 90 days. Skills that you may not read are left out.",
    command="submission hand-in",
)
