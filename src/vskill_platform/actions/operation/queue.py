"""The queue: whether anything is stuck and how fast it moves, and what its page shows, for everybody; and what admins
do with it: pause it, resume it, and send missing messages."""

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeAlias

import msgspec

from vskill_client.wire.base import ActionRequest, NoParameters, Wire, iso_time, maybe_time
from vskill_client.wire.submissions import PositionView, StatsView
from vskill_core.errors import QueueUnavailable
from vskill_platform.actions.action import Reason, Services, action
from vskill_platform.actions.principal import Principal, Right, Viewer, audiences_of, viewer_for
from vskill_platform.actions.submissions.submission_lists import ListSubmissions, states_asked
from vskill_platform.actions.submissions.submission_views import position_view, stats_view
from vskill_platform.domain.people.namespace import may_read
from vskill_platform.domain.submissions.states import StateCategory, category_of
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.queue.control import Pause, current_pause, pause_queue, resume_queue
from vskill_platform.queue.health import QueueHealth, queue_health_for
from vskill_platform.queue.outlook import Outlook, look_ahead
from vskill_platform.queue.recovery import recover_everything
from vskill_platform.store.people.audit import note
from vskill_platform.store.submissions import statistics
from vskill_platform.store.submissions.submission_lists import FoundSubmissions, find_submissions
from vskill_platform.submission_store import count_submissions, get_stuck_submissions

QUEUE = "/api/v1/queue"
ADMIN_QUEUE = "/api/v1/admin/queue"
#: What ended lately.
QueueActivity: TypeAlias = statistics.Activity


class ViolationView(Wire, frozen=True):
    """What breaks the invariant, and how."""

    #: the record's key, or `workers` (none is alive, or none can work) or `store` (its file was taken away)
    key: str
    problem: str


class PauseView(Wire, frozen=True):
    """Nobody takes up new work until then."""

    until: str
    reason: str
    #: whose name only reviewers see
    by: str
    at: str


class JobView(Wire, frozen=True):
    """A scheduled job."""

    name: str
    purpose: str
    #: it has not succeeded for three intervals
    stale: bool
    last_start: str | None
    last_success: str | None
    last_duration_ms: int | None
    #: shown to reviewers and admins only
    last_error: str | None
    last_error_at: str | None


class CooldownView(Wire, frozen=True):
    """What waits by a rule of the policy."""

    count: int
    #: when the next of them is decided again
    next_at: str | None


class AlertView(Wire, frozen=True):
    """One thing that is wrong now."""

    code: str
    text: str
    subject: str
    #: the section of this registry's documents that says what to do
    remedy: str


class HealthAnswer(Wire, frozen=True):
    """The invariant: every submission is at rest, or held until a deadline, or has a next attempt."""

    #: nothing breaks the invariant, and the queue moves; of the whole queue, everything else of what you may read
    healthy: bool
    violations: tuple[ViolationView, ...]
    #: there are more violations than are listed
    truncated: bool
    counts: StatsView
    #: since the submission that waits longest was due; null where none waits
    oldest_waiting_ms: int | None
    #: when a run last ended; null where none has
    last_ended_at: str | None
    #: something has waited for too long and nothing has ended meanwhile
    stalled: bool
    pause: PauseView | None
    jobs: tuple[JobView, ...]
    #: workers that gave a sign of life in the last 25 s
    workers_alive: int
    #: when a worker last gave one; null where none has for a day
    last_worker_sign_at: str | None
    #: what an operator must look at, the gravest first
    alerts: tuple[AlertView, ...]
    #: what waits by a rule of the policy, as is meant; null where nothing does
    cooldown: CooldownView | None
    #: messages that were set aside for a person; null where nobody counted
    dead_letters: int | None
    at: str


class QueueStats(Wire, frozen=True):
    """How many there are, and how fast the line moves."""

    counts: StatsView
    #: runs that ended within the last hour; null where there were more than are looked at
    ended_last_hour: int | None
    #: ends a minute in the last ten; null where none ended
    per_minute: float | None
    #: from submitting to the first decision: half took at most this long
    p50_ms: int | None
    p95_ms: int | None
    at: str


class DepthView(Wire, frozen=True):
    """How many messages there are, by what they wait for."""

    #: for a worker
    ready: int
    #: for their time
    delayed: int
    #: a worker has them
    leased: int
    #: for a person: dead letters
    dead: int


class QueueStatus(Wire, frozen=True):
    """The messages, and whether the queue is paused."""

    depth: DepthView
    #: null where it is not paused
    pause: PauseView | None


class ListStuck(ActionRequest, frozen=True, kw_only=True):
    """How much of what is stuck."""

    #: how many, the longest first
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 200


class StuckView(Wire, frozen=True):
    """A submission that has been in one state for too long."""

    id: str
    state: str
    repo_url: str
    skill_name: str
    skill_path: str
    updated_at: str
    stuck_for_ms: int


class StuckList(Wire, frozen=True):
    """What is stuck, the longest first."""

    submissions: tuple[StuckView, ...]
    #: how many there are in all
    total: int
    #: how long is too long
    threshold_ms: int


class PauseQueue(ActionRequest, frozen=True, kw_only=True):
    """A pause, which always has an end."""

    #: how long, in milliseconds; at most 7 days
    duration_ms: int
    #: why the queue is paused; shown to everyone
    reason: Reason


class QueueResumed(Wire, frozen=True):
    """The queue is not paused any more."""

    #: false: it was not paused before either
    was_paused: bool


class QueueRecovered(Wire, frozen=True):
    """What recovery did."""

    #: submissions and tasks that are waiting for work to be done on them
    found: int
    #: messages that were missing and were sent
    sent: int
    #: the queue is paused, so nothing was looked at
    paused: bool


# Reading.


async def show_health(actor: Principal, _request: NoParameters) -> HealthAnswer:
    """Computed from the records in this process, without a worker (B7)."""
    return health_view(await queue_health_for(audiences_of(actor)), viewer_for(actor))


async def show_stats(actor: Principal, _request: NoParameters) -> QueueStats:
    audiences = audiences_of(actor)
    counts = await count_submissions(audiences=audiences)
    lately = await statistics.recent_activity(audiences=audiences)
    return QueueStats(
        counts=stats_view(counts),
        ended_last_hour=None if lately.truncated else len(lately.ends),
        per_minute=lately.per_minute,
        p50_ms=lately.took(0.50),
        p95_ms=lately.took(0.95),
        at=iso_time(lately.at),
    )


async def show_status(services: Services, actor: Principal, _request: NoParameters) -> QueueStatus:
    depth = DepthView.of(await services.broker.depth())
    return QueueStatus(depth, pause_view(await current_pause(), viewer_for(actor)))


async def list_stuck(services: Services, actor: Principal, request: ListStuck) -> StuckList:
    threshold_ms = services.settings.stuck_threshold_ms
    audiences = audiences_of(actor)
    stuck = await get_stuck_submissions(threshold_ms=threshold_ms)
    found = [one for one in stuck if may_read(one.audience, audiences)]
    shown = tuple(StuckView.of(one) for one in found[: request.limit])
    return StuckList(shown, len(found), threshold_ms)


def health_view(found: QueueHealth, viewer: Viewer) -> HealthAnswer:
    return HealthAnswer.of(
        found,
        counts=stats_view(found.counts),
        pause=pause_view(found.pause, viewer),
        workers_alive=found.workers.alive,
        last_worker_sign_at=maybe_time(found.workers.last_sign_at),
        dead_letters=found.dead_letters.total if found.dead_letters else None,
    )


def pause_view(found: Pause | None, viewer: Viewer) -> PauseView | None:
    return None if found is None else PauseView.of(found, by=viewer.actor(found.by))


# Changing.


async def pause(services: Services, actor: Principal, request: PauseQueue) -> QueueStatus:
    await pause_queue(request.duration_ms, reason=request.reason, by=actor.actor)
    return await show_status(services, actor, NoParameters())


async def resume(actor: Principal, _request: NoParameters) -> QueueResumed:
    """The commit that ends the pause contains the audit entry; without a pause, nothing is written."""
    return QueueResumed(await resume_queue(by=actor.actor))


async def recover(actor: Principal, _request: NoParameters) -> QueueRecovered:
    """Idempotent: a message that is queued already is not sent again."""
    done = await recover_everything()
    if not done.paused:
        await note("requeue all", "queue", by=actor.actor, reason="asked for it")
    return QueueRecovered.of(done)


HEALTH = action(
    show_health,
    "queue.health",
    f"{QUEUE}/health",
    method="GET",
    right=Right.ANYONE,
    summary="Check that nothing is stuck",
)
STATS = action(
    show_stats,
    "queue.stats",
    f"{QUEUE}/stats",
    method="GET",
    right=Right.ANYONE,
    summary="Read how fast the queue moves",
)
STATUS = action(
    show_status,
    "queue.status",
    ADMIN_QUEUE,
    method="GET",
    right=Right.ADMIN,
    errors=(QueueUnavailable,),
    summary="Count the messages, and see whether the queue is paused",
)
STUCK = action(
    list_stuck,
    "queue.stuck",
    f"{ADMIN_QUEUE}/stuck",
    method="GET",
    right=Right.ADMIN,
    summary="List submissions that have been in one state for longer than the threshold",
)
PAUSE = action(
    pause,
    "queue.pause",
    f"{ADMIN_QUEUE}/pause",
    right=Right.ADMIN,
    errors=(QueueUnavailable,),
    summary="Stop taking new work for a while",
    about="The pause ends by itself.",
)
RESUME = action(
    resume,
    "queue.resume",
    f"{ADMIN_QUEUE}/resume",
    right=Right.ADMIN,
    summary="End a pause now",
)
RECOVER = action(
    recover,
    "queue.recover",
    f"{ADMIN_QUEUE}/recover",
    right=Right.ADMIN,
    errors=(QueueUnavailable,),
    summary="Send the missing messages of all pending work",
    about="A message for every submission and task whose claim has expired or whose attempt is due. Harmless at any "
    "time; the schedule does it every five seconds.",
)


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
    activity: statistics.Activity
    rows: tuple[QueueRow, ...]
    #: Where a stream of changes goes on from this look.
    cursor: str
    now: int


async def read_activity(reader: Principal) -> statistics.Activity:
    return await statistics.recent_hours(audiences=audiences_of(reader))


async def look_at_queue(
    services: Services,
    reader: Principal,
    asked: ListSubmissions,
    *,
    health: Callable[[], Awaitable[HealthAnswer]],
    activity: Callable[[], Awaitable[statistics.Activity]],
) -> QueueLook:
    """`health` and `activity` may be a few seconds old: the caller caches them for readers of the same audiences."""
    audiences = audiences_of(reader)
    # Read first: the stream that begins at this cursor tells all later changes.
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
    some_wait = any(statistics.waits(record, now) for record in found.items)
    line = await statistics.waiting_line(audiences=audiences) if some_wait else None
    outlook = await look_ahead() if some_wait else None
    rows = tuple(queue_row(record, line, seen_activity, outlook) for record in found.items)
    return QueueLook(counts, found, seen_health, seen_activity, rows, cursor, now)


def queue_row(
    record: Submission,
    line: statistics.WaitingLine | None = None,
    activity: statistics.Activity | None = None,
    outlook: Outlook | None = None,
) -> QueueRow:
    place = None if line is None else line.position(record)
    return QueueRow(record, category_of(record.state), position_view(place, activity, outlook))
