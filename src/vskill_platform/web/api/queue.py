"""The queue, for everyone: is anything stuck, does it move, and what must an operator look at."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.submission_views import StatsView, stats_view
from vskill_platform.actions.visibility import Viewer
from vskill_platform.actions.wire import Wire, iso_time, maybe_time
from vskill_platform.queue import health
from vskill_platform.queue.control import Pause
from vskill_platform.queue.health import QueueHealth
from vskill_platform.queue.schedule import JobHealth
from vskill_platform.store.statistics import recent_activity
from vskill_platform.submission_store import count_submissions
from vskill_platform.web.principal import viewer_of
from vskill_platform.web.responses import json_response
from vskill_platform.web.routing import get
from vskill_platform.worker_context import require_env


class ViolationView(Wire, frozen=True):
    """A record that breaks the invariant, and how."""

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
    last_error: str | None
    last_error_at: str | None


class AlertView(Wire, frozen=True):
    """One thing that is wrong now."""

    code: str
    text: str
    subject: str


class HealthAnswer(Wire, frozen=True):
    """The invariant: every submission is at rest, or held until a deadline, or has a next attempt."""

    #: nothing breaks the invariant, and the queue moves
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
    #: what an operator must look at, the gravest first
    alerts: tuple[AlertView, ...]
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


async def health_view(request: Request) -> Response:
    """Computed by this process from the records; it needs no worker (B7)."""
    found = await health.queue_health()
    require_env("metrics").metrics.queue_violations.set(len(found.violations))
    return json_response(queue_view(found, viewer_of(request)))


async def stats(_request: Request) -> Response:
    counts, lately = await count_submissions(), await recent_activity()
    answer = QueueStats(
        counts=stats_view(counts),
        ended_last_hour=None if lately.truncated else len(lately.ends),
        per_minute=lately.per_minute,
        p50_ms=lately.took(0.50),
        p95_ms=lately.took(0.95),
        at=iso_time(lately.at),
    )
    return json_response(answer)


def queue_view(found: QueueHealth, viewer: Viewer) -> HealthAnswer:
    return HealthAnswer(
        healthy=found.healthy,
        violations=tuple(ViolationView(one.key, one.problem) for one in found.violations),
        truncated=found.truncated,
        counts=stats_view(found.counts),
        oldest_waiting_ms=found.oldest_waiting_ms,
        last_ended_at=maybe_time(found.last_ended_at),
        stalled=found.stalled,
        pause=_pause(found.pause, viewer),
        jobs=tuple(map(_job, found.jobs)),
        alerts=tuple(AlertView(one.code.value, one.text, one.subject) for one in found.alerts),
        dead_letters=found.dead_letters.total if found.dead_letters else None,
        at=iso_time(found.at),
    )


def _pause(found: Pause | None, viewer: Viewer) -> PauseView | None:
    if found is None:
        return None
    return PauseView(iso_time(found.until), found.reason, viewer.actor(found.by), iso_time(found.at))


def _job(found: JobHealth) -> JobView:
    return JobView(
        name=found.name,
        purpose=found.purpose,
        stale=found.stale,
        last_start=maybe_time(found.last_start),
        last_success=maybe_time(found.last_success),
        last_duration_ms=found.last_duration_ms,
        last_error=found.last_error,
        last_error_at=maybe_time(found.last_error_at),
    )


ENDPOINTS = (
    get(
        "/api/v1/queue/health",
        health_view,
        answer=HealthAnswer,
        tag="queue",
        summary="Check that nothing is stuck",
    ),
    get(
        "/api/v1/queue/stats",
        stats,
        answer=QueueStats,
        tag="queue",
        summary="Read how fast the queue moves",
    ),
)
