"""What the queue's page shows: one look at the store."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from vskill_client.wire.submissions import PositionView, StatsView
from vskill_platform.actions.action import Services
from vskill_platform.actions.operation.queue import HealthAnswer
from vskill_platform.actions.principal import Principal, audiences_of
from vskill_platform.actions.submissions.submission_lists import ListSubmissions, states_asked
from vskill_platform.actions.submissions.submission_views import position_view, stats_view
from vskill_platform.domain.submissions.states import StateCategory, category_of
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.queue.outlook import Outlook, look_ahead
from vskill_platform.store.submissions.statistics import (
    Activity,
    WaitingLine,
    recent_hours,
    waiting_line,
    waits,
)
from vskill_platform.store.submissions.submission_lists import FoundSubmissions, find_submissions
from vskill_platform.submission_store import count_submissions

#: What ended lately.
QueueActivity: TypeAlias = Activity


class QueueRow(msgspec.Struct, frozen=True):
    """A submission in the table."""

    record: Submission
    category: StateCategory
    position: PositionView | None = None


class QueueLook(msgspec.Struct, frozen=True):
    """What one look at the store found."""

    counts: StatsView
    found: FoundSubmissions
    health: HealthAnswer
    activity: Activity
    rows: tuple[QueueRow, ...]
    #: Where a stream of changes goes on from this look.
    cursor: str
    now: int


async def read_activity(reader: Principal) -> Activity:
    """What ended within the last hours and what waited meanwhile, of what the reader may read."""
    return await recent_hours(audiences=audiences_of(reader))


async def look_at_queue(
    services: Services,
    reader: Principal,
    asked: ListSubmissions,
    *,
    health: Callable[[], Awaitable[HealthAnswer]],
    activity: Callable[[], Awaitable[Activity]],
) -> QueueLook:
    """`health` and `activity` may be a few seconds old: whoever asks keeps them for all who may read the same."""
    audiences = audiences_of(reader)
    # Before everything else: what changes from here on is told by the stream that begins at this cursor.
    cursor = await services.kv.change_cursor()
    counts = stats_view(await count_submissions(audiences=audiences))
    found = await find_submissions(
        audiences=audiences,
        states=states_asked(asked.state, asked.category),
        text=asked.q,
        after=asked.after,
        limit=asked.limit,
    )
    seen_health, seen_activity = await health(), await activity()
    now = services.kv.now()
    some_wait = any(waits(record, now) for record in found.items)
    line = await waiting_line(audiences=audiences) if some_wait else None
    outlook = await look_ahead() if some_wait else None
    rows = tuple(queue_row(record, line, seen_activity, outlook) for record in found.items)
    return QueueLook(counts, found, seen_health, seen_activity, rows, cursor, now)


def queue_row(
    record: Submission,
    line: WaitingLine | None = None,
    activity: Activity | None = None,
    outlook: Outlook | None = None,
) -> QueueRow:
    place = None if line is None else line.position(record)
    return QueueRow(record, category_of(record.state), position_view(place, activity, outlook))
