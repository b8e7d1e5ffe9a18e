"""How the scheduled jobs are doing, by their records."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from vskill_platform.queue.job_specs import JOB_SPECS
from vskill_platform.store.operation.jobs import JobRecord, read_jobs
from vskill_platform.worker_context import require_env

#: A job that has not succeeded for this many intervals is stale.
STALE_INTERVALS = 3


class JobFacts(Protocol):
    """What is known of a job beside its record."""

    @property
    def name(self) -> str: ...
    @property
    def purpose(self) -> str: ...
    @property
    def every_ms(self) -> int: ...
    @property
    def budget_ms(self) -> int: ...
    @property
    def consequence(self) -> str: ...


class JobHealth(msgspec.Struct, frozen=True):
    """How a job is doing; stale means that it has not succeeded for three intervals and its budget."""

    name: str
    purpose: str
    consequence: str
    stale: bool
    last_start: int | None
    last_success: int | None
    last_duration_ms: int | None
    last_error: str | None
    last_error_at: int | None


async def job_health(jobs: Sequence[JobFacts] = JOB_SPECS) -> tuple[JobHealth, ...]:
    """Every job, whether or not it ever ran."""
    now = require_env("kv").kv.now()
    records = await read_jobs(job.name for job in jobs)
    return tuple(_health(job, records[job.name], now) for job in jobs)


def _health(job: JobFacts, record: JobRecord, now: int) -> JobHealth:
    allowed = STALE_INTERVALS * job.every_ms + job.budget_ms
    stale = record.last_success is None or now - record.last_success > allowed
    return JobHealth(
        job.name,
        job.purpose,
        job.consequence,
        stale,
        record.last_start,
        record.last_success,
        record.last_duration_ms,
        record.last_error,
        record.last_error_at,
    )
