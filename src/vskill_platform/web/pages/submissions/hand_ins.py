"""The page of a hand-in: each skill of it with its present state, and what to do about those that failed or were
refused. Its address can be shared and loaded again; with a script it follows every change by itself.
"""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.submissions.hand_ins import (
    PAGES,
    SHOW_HAND_IN,
    HandInRequest,
    HandInView,
)
from vskill_platform.domain.submissions.states import StateCategory
from vskill_platform.web.exchange import principal_of, public_address, services_of, viewer_of
from vskill_platform.web.pages.submissions.submissions import MOVING_MS, RESTING_MS
from vskill_platform.web.render import render
from vskill_platform.web.routing import page
from vskill_platform.web.streams.live import Submissions, page_position, sealed_cursor, stream

#: What was refused at the door belongs to no category of the queue.
REFUSED = "refused"
#: How each kind is called in a summary, in the order in which they are shown.
KINDS = {
    StateCategory.PUBLISHED.value: ("published", "good"),
    StateCategory.RUNNING.value: ("being checked", "info"),
    StateCategory.WAITING.value: ("waiting", "info"),
    StateCategory.COOLDOWN.value: ("cooling down", "info"),
    StateCategory.REVIEW.value: ("for a reviewer", "warn"),
    StateCategory.FAILED.value: ("failed", "bad"),
    REFUSED: ("refused", "bad"),
    StateCategory.CANCELLED.value: ("cancelled", ""),
}


async def show_page(request: Request) -> Response:
    read_from = await page_position(request)
    view = await _read_view(request)
    kinds = [REFUSED if one.submission is None else one.submission.category for one in view.skills]
    total = len(view.skills)
    title = f"Checking {total} {'skill' if total == 1 else 'skills'}"
    if view.ended:
        title = f"{kinds.count(StateCategory.PUBLISHED.value)} of {total} published"
    return render(
        request,
        "hand_in.html",
        view=view,
        title=title,
        counts=[(kinds.count(kind), *words) for kind, words in KINDS.items() if kind in kinds],
        address=f"{public_address(request)}{PAGES}/{view.id}",
        cursor=await sealed_cursor(request, read_from),
        refresh_ms=RESTING_MS if view.ended else MOVING_MS,
    )


async def _read_view(request: Request) -> HandInView:
    wanted = HandInRequest(hand_in_id=request.path_params["hand_in_id"])
    return await SHOW_HAND_IN(services_of(request), principal_of(request), wanted)


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
