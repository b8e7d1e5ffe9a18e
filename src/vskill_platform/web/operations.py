"""Endpoints for operators and their tools: liveness, readiness, metrics."""

import asyncio
import hmac
import math
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Wire
from vskill_core.errors import (
    NotSignedIn,
    PlatformError,
    QueueUnavailable,
    Stopping,
    StoreUnavailable,
)
from vskill_platform import __version__
from vskill_platform.actions.principal import require_entry, resolve
from vskill_platform.ledger.broker.contract import Depth
from vskill_platform.machine.disk_space import look_at_disks
from vskill_platform.observing.metrics import METRICS_TYPE, QueueFigures
from vskill_platform.queue.alerts import AlertCode
from vskill_platform.queue.health import QueueHealth, queue_health
from vskill_platform.web.door.limits import is_loopback
from vskill_platform.web.exchange import json_response, principal_of, services_of
from vskill_platform.web.readiness import ReadinessProbe
from vskill_platform.web.routing import Endpoint, View, get
from vskill_platform.worker_context import require_env

#: Headers that a proxy adds.
FORWARDED = ("x-forwarded-for", "forwarded", "x-real-ip")


class Up(Wire, frozen=True):
    """The process is up."""

    status: str
    version: str


class Readiness(Wire, frozen=True):
    """Records, content and temporary files can be written, and child processes run."""

    status: str
    #: the engine's name
    store: str


async def healthz(_request: Request) -> Response:
    """The process is up; nothing else is asked."""
    return json_response(Up("ok", __version__))


async def readyz(request: Request) -> Response:
    """What this process needs can be written and run, and it is not about to end; otherwise 503 with the reason."""
    if request.app.state.stop.is_set():
        raise Stopping
    env = services_of(request)
    probe: ReadinessProbe = request.app.state.readiness
    await probe.check(env)
    return json_response(Readiness("ready", env.kv.engine))


async def guarded_metrics(request: Request) -> Response:
    """The same on the port that everybody reaches: for the operator's token, or without one for this machine alone."""
    token = services_of(request).settings.metrics_token
    if token:
        given = request.headers.get("authorization", "")
        if not hmac.compare_digest(given.encode("latin-1", "replace"), f"Bearer {token}".encode()):
            raise NotSignedIn("Send the value of VSKILL_METRICS_TOKEN as a bearer token.")
    else:
        await _require_this_machine(request)
    return await metrics(request)


async def _require_this_machine(request: Request) -> None:
    """Raise NotSignedIn for requests from elsewhere, even through a local proxy, and in internal mode."""
    peer = request.client.host if request.client else ""
    if not is_loopback(peer) or any(name in request.headers for name in FORWARDED):
        raise NotSignedIn(
            "Metrics are read with a token: set VSKILL_METRICS_TOKEN, and send it as a bearer token."
        )
    # Without the store, the process still tells what it knows itself.
    with suppress(StoreUnavailable):
        require_entry(await resolve(principal_of(request)))


async def metrics(_request: Request) -> Response:
    """Everything in Prometheus's text format; what the store knows is asked for this answer."""
    env = require_env("metrics")
    # Before anything is set, so that no other scrape comes in between.
    beside = await env.metrics.read_beside()
    for disk in await asyncio.to_thread(look_at_disks, env.settings):
        env.metrics.disk_free.labels(disk.kept).set(disk.free_bytes)
        env.metrics.disk_size.labels(disk.kept).set(disk.total_bytes)
    try:
        async with asyncio.timeout(env.pace.ready_within_s):
            found, depth = await queue_health(), await _depth()
    except (PlatformError, TimeoutError) as error:
        env.log.warning("queue not looked at for metrics", error=str(error) or "no answer in time")
        env.metrics.show_submissions(None)
        env.metrics.show_queue(None)
    else:
        env.metrics.show_submissions({state.value: n for state, n in found.counts.by_state.items()})
        env.metrics.show_queue(_figures(found, depth))
    return Response(env.metrics.render(beside), media_type=METRICS_TYPE)


async def _depth() -> Depth | None:
    """None if the queue is unavailable, which an alert says."""
    try:
        return await require_env("broker").broker.depth()
    except QueueUnavailable:
        return None


def _figures(found: QueueHealth, depth: Depth | None) -> QueueFigures:
    holding = {alert.code for alert in found.alerts}
    return QueueFigures(
        violations=len(found.violations),
        damaged=found.damaged,
        workers_alive=found.workers.alive,
        oldest_waiting_s=(found.oldest_waiting_ms or 0) / 1000,
        dead_letters=depth.dead if depth else math.nan,
        judge_last_answer_s=(found.judge.last_answer_at or 0) / 1000,
        messages={"ready": depth.ready, "delayed": depth.delayed, "leased": depth.leased} if depth else {},
        stale_jobs={job.name: int(job.stale) for job in found.jobs},
        job_successes={job.name: job.last_success / 1000 for job in found.jobs if job.last_success},
        alerts={code.value: int(code in holding) for code in AlertCode},
    )


_ALWAYS = (
    get(
        "/healthz",
        healthz,
        stays_open=True,
        answer=Up,
        tag="operations",
        summary="Check that the process is up",
    ),
    get(
        "/readyz",
        readyz,
        stays_open=True,
        answer=Readiness,
        tag="operations",
        summary="Check that the process can do its work",
    ),
)


def _metrics_at(view: View) -> Endpoint:
    return get(
        "/metrics",
        view,
        # It checks its own token, which is not an API token.
        stays_open=True,
        signs_in=True,
        tag="operations",
        summary="Read the metrics for Prometheus",
        media=METRICS_TYPE,
    )


ENDPOINTS = (*_ALWAYS, _metrics_at(guarded_metrics))
#: On a separate port, everybody who reaches it may read.
OWN_PORT = (*_ALWAYS, _metrics_at(metrics))
