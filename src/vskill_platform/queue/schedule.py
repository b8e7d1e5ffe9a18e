"""The schedule: runs each job of `jobs.JOBS` when its tick is due. Any number of schedules may run side by side;
each tick is taken by one of them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import Context

import msgspec
import structlog

from vskill_core.errors import PlatformError
from vskill_platform.ledger.clock import TimeLimit
from vskill_platform.queue.jobs import JOBS, Job
from vskill_platform.store.operation.jobs import JobRecord, finish_tick, renew_tick, take_tick
from vskill_platform.worker_context import Env, require_env, run_with_worker_env

#: How often a running job renews its tick.
RENEW_EVERY_S = 5.0


class JobOutcome(msgspec.Struct, frozen=True):
    """How a run of a job ended."""

    #: None where it succeeded.
    error: str | None


async def run_job(job: Job, *, forced: bool = False) -> JobOutcome | None:
    """Run the job if its tick can be taken (`forced`: even if it is not due yet); None if it cannot."""
    env = require_env("kv")
    taken = await take_tick(job.name, every_ms=job.every_ms, now_forced=forced)
    if taken is None:
        return None
    started = env.clock.monotonic()
    state, error = dict(taken.state), None
    with structlog.contextvars.bound_contextvars(job=job.name), env.tracing.span("job", job=job.name):
        try:
            async with TimeLimit(job.budget_ms / 1000), _keep_renewing(taken):
                state = await job.run(state)
        except asyncio.CancelledError:
            await asyncio.shield(finish_tick(taken, duration_ms=0, error="its schedule stopped", state=state))
            raise
        except Exception as problem:
            error = str(problem) or repr(problem)
            # A PlatformError explains itself: no traceback.
            env.log.error("job failed", error=error, exc_info=not isinstance(problem, PlatformError))  # noqa: TRY400
        env.metrics.job_runs.labels(job.name, "failed" if error else "ok").inc()
        if error is None:
            env.metrics.job_last_success.labels(job.name).set(env.clock.now() / 1000)
        duration_ms = int((env.clock.monotonic() - started) * 1000)
        await finish_tick(taken, duration_ms=duration_ms, error=error, state=state)
    return JobOutcome(error)


@asynccontextmanager
async def _keep_renewing(taken: JobRecord) -> AsyncIterator[None]:
    async def renew() -> None:
        still_ours = True
        while still_ours:
            await asyncio.sleep(RENEW_EVERY_S)
            still_ours = await renew_tick(taken)

    renewals = asyncio.create_task(renew())
    try:
        yield
    finally:
        renewals.cancel()
        await asyncio.gather(renewals, return_exceptions=True)


async def run_schedule(env: Env, stop: asyncio.Event, jobs: Sequence[Job] = JOBS) -> None:
    """Run due jobs until `stop` is set, each in a task and a context of its own."""
    running: dict[str, asyncio.Task[None]] = {}
    try:
        while not stop.is_set():
            for job in jobs:
                if job.name not in running or running[job.name].done():
                    running[job.name] = asyncio.create_task(_run_in(env, job), context=Context())
            with suppress(TimeoutError):
                async with asyncio.timeout(env.pace.look_every_s):
                    await stop.wait()
    finally:
        for task in running.values():
            task.cancel()
        await asyncio.gather(*running.values(), return_exceptions=True)


async def _run_in(env: Env, job: Job) -> None:
    try:
        await run_with_worker_env(env, lambda: run_job(job))
    except Exception as error:  # noqa: BLE001 - the store is unavailable: the next look tries again
        env.log.warning("tick not taken", job=job.name, error=str(error))
