"""The record of each scheduled job: when it is due, how it last went, where it continues. A tick is taken by
compare-and-swap, so any number of schedules may run without a leader."""

from collections.abc import Iterable

import msgspec

from vskill_core.errors import Conflict
from vskill_platform.domain import keys
from vskill_platform.domain.submissions.attempts import CLOCK_SLACK_MS
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.records import decode, persist, read_entries, read_record
from vskill_platform.worker_context import require_env

#: How long a job is reserved for its runner after the last renewal.
LEASE_MS = 15_000


class Running(msgspec.Struct, frozen=True):
    """The lease of the process that runs the job now."""

    token: str
    worker: str
    until: int


class JobRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `job:{name}`."""

    name: str
    due_at: int = 0
    running: Running | None = None
    last_start: int | None = None
    last_success: int | None = None
    last_duration_ms: int | None = None
    last_error: str | None = None
    last_error_at: int | None = None
    #: Where the job goes on, in its own words.
    state: dict[str, str | int | None] = {}


async def read_job(name: str) -> tuple[JobRecord, int]:
    """The job's record and version; a job that never ran has an empty one."""
    record, version = await read_record(keys.job(name), JobRecord)
    return record or JobRecord(name), version


async def read_jobs(names: Iterable[str]) -> dict[str, JobRecord]:
    """The records of these jobs, in one read; one that cannot be read raises."""
    wanted = {name: keys.job(name) for name in names}
    stored = await read_entries(wanted.values())
    return {
        name: decode(stored[key], JobRecord) if key in stored else JobRecord(name)
        for name, key in wanted.items()
    }


async def take_tick(name: str, *, every_ms: int, now_forced: bool = False) -> JobRecord | None:
    """Take the tick that is due; None if it is not due, still running, or another schedule was quicker.

    A time too far in the future was set before the clock went back, and counts as past.
    """
    env = require_env("kv")
    record, version = await read_job(name)
    now = env.kv.now()
    running = record.running is not None and now < record.running.until <= now + LEASE_MS + CLOCK_SLACK_MS
    waiting = now < record.due_at <= now + every_ms + CLOCK_SLACK_MS and not now_forced
    if running or waiting:
        return None
    taken = msgspec.structs.replace(
        record,
        due_at=now + every_ms,
        last_start=now,
        running=Running(env.clock.new_id(), env.worker_id, now + LEASE_MS),
    )
    try:
        await env.kv.commit([Put(keys.job(name), msgspec.json.encode(taken), version)])
    except Conflict:
        return None
    return taken


async def renew_tick(taken: JobRecord) -> bool:
    env = require_env("kv")
    record, version = await read_job(taken.name)
    if record.running is None or not _is_same(record, taken):
        return False
    running = msgspec.structs.replace(record.running, until=env.kv.now() + LEASE_MS)
    renewed = msgspec.structs.replace(record, running=running)
    try:
        await env.kv.commit([Put(keys.job(taken.name), msgspec.json.encode(renewed), version, quiet=True)])
    except Conflict:
        return False
    return True


def _is_same(record: JobRecord, taken: JobRecord) -> bool:
    return bool(record.running and taken.running and record.running.token == taken.running.token)


async def finish_tick(
    taken: JobRecord, *, duration_ms: int, error: str | None, state: dict[str, str | int | None]
) -> None:
    """Write the outcome, unless another schedule has taken the job over."""

    async def write() -> None:
        env = require_env("kv")
        record, version = await read_job(taken.name)
        if not _is_same(record, taken):
            env.log.warning("job was taken over before it ended", job=taken.name)
            return
        now = env.kv.now()
        ended = msgspec.structs.replace(record, running=None, last_duration_ms=duration_ms, state=state)
        if error is None:
            ended = msgspec.structs.replace(ended, last_success=now)
        else:
            ended = msgspec.structs.replace(ended, last_error=error, last_error_at=now)
        await env.kv.commit([Put(keys.job(taken.name), msgspec.json.encode(ended), version)])

    await persist(write)
