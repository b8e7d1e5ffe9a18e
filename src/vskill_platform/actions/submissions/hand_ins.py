"""Hand-ins: what one request submitted, and where each skill in it stands now. One skill has its submission's page; of
several, or where one was refused, the hand-in has a page of its own.

A skill is shown to those who may read its submission. What was refused at the door has none: it is shown to its
submitter and to reviewers, and where nobody was signed in to whoever knows the address.
"""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, Wire, iso_time
from vskill_client.wire.submissions import SubmissionCard
from vskill_core.errors import NotFound
from vskill_platform.actions.action import action
from vskill_platform.actions.principal import Principal, Right, audiences_of
from vskill_platform.actions.submissions.findings import remedies_of
from vskill_platform.actions.submissions.submission_views import submission_card
from vskill_platform.domain.submissions.submission import EntryPoint, Submission
from vskill_platform.store.submissions.hand_ins import (
    HandedIn,
    HandIn,
    keep_hand_in,
    read_hand_in,
    read_submissions_of,
)

PAGES = "/hand-ins"


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


async def page_for(actor: Principal, skills: Sequence[HandedIn], source: EntryPoint) -> str:
    """The path of the page that follows what was just submitted. Writes a hand-in unless one submission is all."""
    if len(skills) == 1 and skills[0].submission_id is not None:
        return f"/submissions/{skills[0].submission_id}"
    anonymous = actor.account is None and not actor.operator
    made = await keep_hand_in(tuple(skills), source=source, submitter=actor.account, anonymous=anonymous)
    return f"{PAGES}/{made.id}"


async def show(reader: Principal, request: HandInRequest) -> HandInView:
    found = await read_hand_in(request.hand_in_id)
    skills = () if found is None else await _read_skills(found, reader)
    if found is None or not skills:
        raise NotFound("There is no such hand-in; they are kept for 90 days.", hand_in=request.hand_in_id)
    return HandInView(
        id=found.id,
        created_at=iso_time(found.created_at),
        source=found.source.value,
        ended=not any(record.state.moving for _, record in skills if record is not None),
        skills=tuple(_view(one, record) for one, record in skills),
    )


async def _read_skills(found: HandIn, reader: Principal) -> list[tuple[HandedIn, Submission | None]]:
    """Each skill that the reader may know of, with its submission."""
    records = await read_submissions_of(found, audiences=audiences_of(reader))
    # A token that is bound to a namespace reads nothing of what its account did elsewhere.
    is_own = reader.account is not None and reader.account == found.submitter and reader.namespace is None
    knows_all = found.anonymous or reader.is_reviewer or is_own
    return [
        (one, records.get(one.submission_id or ""))
        for one in found.skills
        if one.submission_id in records or (one.submission_id is None and knows_all)
    ]


def _view(one: HandedIn, record: Submission | None) -> HandInSkill:
    return HandInSkill(
        outcome=one.outcome,
        reason=one.reason,
        repo_url=record.repo_url if record else one.repo_url,
        skill_path=record.skill_path if record else one.skill_path,
        submission=submission_card(record) if record else None,
        remedies=remedies_of(record) if record else (),
    )


SHOW_HAND_IN = action(
    show,
    "hand-in.show",
    "/api/v1/hand-ins/{hand_in_id}",
    method="GET",
    right=Right.ANYONE,
    errors=(NotFound,),
    summary="Read what one request submitted, and where each skill stands now",
    about="Kept for 90 days. Skills that you may not read are left out.",
    command="submission hand-in",
)

ACTIONS = (SHOW_HAND_IN,)
