"""The page of a hand-in: each skill of it with its present state, and what to do about those that failed or were
refused. Its address can be shared and loaded again; with a script it follows every change by itself.
"""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.submissions.hand_ins import (
    PAGES,
    SHOW_HAND_IN,
    HandInRequest,
    HandInSkill,
    HandInView,
)
from vskill_platform.domain.submissions.states import StateCategory
from vskill_platform.web.addresses import public_address
from vskill_platform.web.pages.submissions.submissions import MOVING_MS, RESTING_MS
from vskill_platform.web.principal import principal_of, services_of, viewer_of
from vskill_platform.web.render import render
from vskill_platform.web.routing import page
from vskill_platform.web.streams.live import Submissions, page_cursor, stream

#: What was refused at the door belongs to no category of the queue.
REFUSED = "refused"
#: How each kind is called in a summary, in the order in which they are shown.
KINDS = {
    StateCategory.PUBLISHED.value: ("published", "good"),
    StateCategory.RUNNING.value: ("being checked", "info"),
    StateCategory.WAITING.value: ("waiting", "info"),
    StateCategory.REVIEW.value: ("for a reviewer", "warn"),
    StateCategory.FAILED.value: ("failed", "bad"),
    REFUSED: ("refused", "bad"),
    StateCategory.CANCELLED.value: ("cancelled", ""),
}


class SkillCount(msgspec.Struct, frozen=True):
    """How many skills of a hand-in are of one kind."""

    kind: str
    number: int
    label: str
    tone: str


class ShownHandIn(msgspec.Struct, frozen=True):
    """Everything about one hand-in."""

    view: HandInView
    #: Of the kinds that there are.
    counts: tuple[SkillCount, ...]
    address: str
    cursor: str

    @property
    def title(self) -> str:
        """What can be said truly now: how many are published of how many, once nothing goes on any more."""
        total = len(self.view.skills)
        if not self.view.ended:
            return f"Checking {total} {'skill' if total == 1 else 'skills'}"
        published = next((one.number for one in self.counts if one.kind == StateCategory.PUBLISHED), 0)
        return f"{published} of {total} published"

    @property
    def refresh_ms(self) -> int:
        return RESTING_MS if self.view.ended else MOVING_MS


async def show_page(request: Request) -> Response:
    cursor = await page_cursor(request)
    view = await _read_view(request)
    shown = ShownHandIn(
        view=view,
        counts=count_kinds(view.skills),
        address=f"{public_address(request)}{PAGES}/{view.id}",
        cursor=cursor,
    )
    return render(request, "hand_in.html", shown=shown)


async def _read_view(request: Request) -> HandInView:
    wanted = HandInRequest(hand_in_id=request.path_params["hand_in_id"])
    return await SHOW_HAND_IN(services_of(request), principal_of(request), wanted)


def count_kinds(skills: tuple[HandInSkill, ...]) -> tuple[SkillCount, ...]:
    kinds = [REFUSED if one.submission is None else one.submission.category for one in skills]
    return tuple(
        SkillCount(kind, kinds.count(kind), label, tone)
        for kind, (label, tone) in KINDS.items()
        if kind in kinds
    )


async def live(request: Request) -> Submissions:
    view = await _read_view(request)
    ids = frozenset(one.submission.id for one in view.skills if one.submission is not None)
    # A stream of no ids would be one of everything; of what was refused nothing changes any more.
    return Submissions(viewer_of(request), ids or frozenset({view.id}))


_ONE = f"{PAGES}/{{hand_in_id}}"

ENDPOINTS = (
    page(_ONE, show_page, action=SHOW_HAND_IN),
    stream(f"{_ONE}/live", live, documented=False),
)
