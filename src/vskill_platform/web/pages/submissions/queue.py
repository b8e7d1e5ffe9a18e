"""The queue, for everybody: how many there are of each kind, what waits and for how long, what ended, and whether
anything is stuck. The first paint has the true numbers (C1); a script then keeps them true.

Where the store cannot be read the page says so, with 503 and a dash for every number (C4, C7, E9).
"""

import asyncio
from typing import Annotated
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Asked, NoParameters
from vskill_client.wire.submissions import StatsView
from vskill_core.errors import PlatformError, StoreTimeout, StoreUnavailable
from vskill_platform.actions.operation.queue import (
    HEALTH,
    HealthAnswer,
    QueueActivity,
    QueueLook,
    look_at_queue,
    queue_row,
    read_activity,
)
from vskill_platform.actions.principal import ANYBODY, audiences_of
from vskill_platform.actions.submissions.submission_lists import LIST, ListSubmissions
from vskill_platform.actions.submissions.submission_views import stats_view
from vskill_platform.domain.submissions.states import State, StateCategory, category_of
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.web.charts import latency_chart, queue_chart
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.web.kept import answer_recently
from vskill_platform.web.problems import RETRY_AFTER_S
from vskill_platform.web.render import environment, render
from vskill_platform.web.routing import page, query_of
from vskill_platform.web.streams.live import sealed_cursor, stream
from vskill_platform.web.streams.stream import EventBatch, Update, frame

PAGE = 30
#: How old the health and the charts of a page may be.
HEALTH_AGE_S = 2.0
ACTIVITY_AGE_S = 5.0
#: Quarters of an hour, over six hours.
SLOT_MS = 900_000
SLOTS = 24

#: Of each card, in their order; without a category it is about all.
LABELS: dict[StateCategory | None, tuple[str, str]] = {
    None: ("All", ""),
    StateCategory.WAITING: ("Waiting", ""),
    StateCategory.RUNNING: ("Running", "info"),
    StateCategory.COOLDOWN: ("Cooling down", ""),
    StateCategory.REVIEW: ("Needs review", "warn"),
    StateCategory.PUBLISHED: ("Published", "good"),
    StateCategory.FAILED: ("Failed", "bad"),
    StateCategory.CANCELLED: ("Cancelled", ""),
}


class QueueQuery(Asked, frozen=True):
    """What is shown; it stands in the address, so a view can be shared."""

    category: StateCategory | None = None
    state: State | None = None
    q: Annotated[str, msgspec.Meta(max_length=200)] = ""
    after: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)] | None = None


async def queue(request: Request) -> Response:
    query, services = query_of(request, QueueQuery), services_of(request)
    asked = ListSubmissions(
        state=query.state, category=query.category, q=query.q, after=query.after, limit=PAGE
    )
    look, cursor = None, ""
    error: PlatformError | None = None
    try:
        async with asyncio.timeout(services.pace.page_within_s):
            look = await look_at_queue(
                services,
                principal_of(request),
                asked,
                health=lambda: recent_health(request),
                activity=lambda: recent_activity(request),
            )
            cursor = await sealed_cursor(request, look.cursor)
    except TimeoutError:
        error = StoreTimeout()
    except PlatformError as found:
        if found.status < StoreUnavailable.status:
            raise
        error = found
    return _show(request, query, None if error else look, cursor, error)


def _show(
    request: Request, query: QueueQuery, look: QueueLook | None, cursor: str, error: PlatformError | None
) -> Response:
    """The page; without a look at the store, without numbers and with the reason."""
    counts = None if look is None else look.counts
    slots = () if look is None else look.activity.slots(SLOT_MS, SLOTS)
    following = None if look is None else look.found.after
    shown = render(
        request,
        "queue.html",
        200 if error is None else error.status,
        query=query,
        cards=[_card(category, query, counts) for category in LABELS],
        states=tuple((state, None if counts is None else counts.by_state[state.value]) for state in State),
        first_link=_link(query, after=None) if query.after else "",
        clear_link="/queue" if query != QueueQuery() else "",
        look=look,
        cursor=cursor,
        charts=() if look is None else (queue_chart(slots), latency_chart(slots)),
        next_link=_link(query, after=following) if following else "",
        problem="" if error is None else error.public_message,
    )
    if error is not None:
        shown.headers["retry-after"] = str(RETRY_AFTER_S)
    return shown


async def recent_health(request: Request) -> HealthAnswer:
    """Queue health, computed once for all who may read the same; it names nobody, because these can be several."""
    services = services_of(request)
    nobody = msgspec.structs.replace(ANYBODY, audiences=audiences_of(principal_of(request)))
    return await answer_recently(
        request, "queue health", HEALTH_AGE_S, lambda: HEALTH(services, nobody, NoParameters())
    )


async def recent_activity(request: Request) -> QueueActivity:
    """What ended lately, computed once for all who may read the same."""
    reader = principal_of(request)
    return await answer_recently(request, "activity", ACTIVITY_AGE_S, lambda: read_activity(reader))


def _card(category: StateCategory | None, query: QueueQuery, counts: StatsView | None) -> dict[str, object]:
    """A number that is a filter."""
    label, kind = LABELS[category]
    count = None  # it is unknown
    if counts is not None:
        count = counts.total if category is None else counts.by_category[category.value]
    return {
        "name": "all" if category is None else category.value,
        "label": label,
        "kind": kind,
        "count": count,
        "link": _link(QueueQuery(category=category, q=query.q)),
        "current": query.category is category and (category is not None or query.state is None),
    }


def _link(query: QueueQuery, **changes: str | None) -> str:
    given = {**msgspec.to_builtins(query), **changes}
    parts = {name: value for name, value in given.items() if value}
    return f"/queue?{urlencode(parts)}" if parts else "/queue"


# Live.


class QueueRows(msgspec.Struct, frozen=True):
    """Rows of the table as the page shows them, and the numbers of the cards."""

    shows_counts: bool = True

    def write(self, batch: EventBatch) -> bytes:
        rows = b"".join(self._row(update) for update in batch.updates)
        if batch.counts is None:
            return rows
        counts = stats_view(batch.counts)
        return rows + frame(
            "counts", {"all": counts.total, **counts.by_category, **counts.by_state}, batch.cursor
        )

    def _row(self, update: Update) -> bytes:
        record = update.record
        if not isinstance(record, Submission):
            return b""
        html = environment().get_template("queue_row.html").render(row=queue_row(record))
        data = {"id": record.id, "category": category_of(record.state), "state": record.state, "html": html}
        return frame("row", data, update.cursor)


async def live(_request: Request) -> QueueRows:
    return QueueRows()


_SHOWS = ("queue.health", "queue.stats", "submission.stats", "submission.positions")

ENDPOINTS = (
    page("/queue", queue, query=QueueQuery, action=LIST, shows=_SHOWS),
    stream("/queue/live", live, documented=False),
)
