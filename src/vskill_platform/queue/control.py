"""Pausing the queue. A pause always carries its end, so a queue that somebody forgot goes on by itself, and who set or
ended it stands in the audit, whichever door they came through."""

import msgspec

from vskill_core.errors import Conflict, InvalidInput, StoreUnavailable
from vskill_platform.domain.keys import CONTROL_QUEUE
from vskill_platform.domain.submissions.attempts import CLOCK_SLACK_MS
from vskill_platform.ledger.kv.entries import Delete, Put
from vskill_platform.records import Skips, persist
from vskill_platform.store.people.audit import record_audit
from vskill_platform.worker_context import Env, require_env

LONGEST_PAUSE_MS = 7 * 24 * 3_600_000


class Pause(msgspec.Struct, frozen=True):
    """The record at `control:queue`."""

    until: int
    reason: str
    by: str
    at: int


async def pause_queue(duration_ms: int, *, reason: str, by: str) -> Pause:
    """No batch is received and nothing is sent by recovery until the end, which comes by itself."""
    if not 0 < duration_ms <= LONGEST_PAUSE_MS:
        raise InvalidInput(
            "A pause lasts more than 0 and at most 7 days.",
            field="duration_ms",
            fix="give for example 10 minutes",
        )
    if not reason.strip():
        raise InvalidInput("A pause needs a reason.", field="reason", fix="say in a few words why")
    kv = require_env("kv").kv
    now = kv.now()
    pause = Pause(now + duration_ms, reason, by, now)
    audited = record_audit("pause", "queue", by=by, reason=reason, details={"until": str(pause.until)})
    await kv.commit([Put(CONTROL_QUEUE, msgspec.json.encode(pause)), audited])
    return pause


async def resume_queue(*, by: str) -> bool:
    """End a pause now; whether one was in force. A record that is over or cannot be read goes as well."""
    kv = require_env("kv").kv
    paused = False

    async def write() -> None:
        nonlocal paused
        paused = await current_pause() is not None or paused
        entry = await kv.get(CONTROL_QUEUE)
        if entry is not None:
            audited = record_audit("resume", "queue", by=by, reason="asked for it")
            await kv.commit([Delete(CONTROL_QUEUE, entry.version), audited])

    await persist(write)
    return paused


async def current_pause() -> Pause | None:
    """The pause that is in force on the store's clock, if any. A record that cannot be read names no end, so it
    pauses nothing; it is counted and logged."""
    env = require_env("kv")
    entry = await env.kv.get(CONTROL_QUEUE)
    if entry is None:
        return None
    skips = Skips("current_pause")
    pause = skips.decode(entry, Pause)
    skips.report(env)
    now = env.kv.now()
    if pause is None or pause.until <= now:
        return None
    return pause if pause.at <= now + CLOCK_SLACK_MS else await _begun_again(env, pause, entry.version, now)


async def _begun_again(env: Env, pause: Pause, version: int, now: int) -> Pause:
    """Set on a clock that has gone back since: how much of it is over nobody knows, so it begins again now, and
    lasts no longer than it was to last in all. Who cannot write that, or is not the first to, still waits."""
    again = msgspec.structs.replace(pause, at=now, until=now + pause.until - pause.at)
    try:
        await env.kv.commit([Put(CONTROL_QUEUE, msgspec.json.encode(again), version)])
    except (Conflict, StoreUnavailable):
        return pause
    return again
