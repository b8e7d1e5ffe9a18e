"""Pausing the queue. A pause always has an end, so a forgotten pause ends by itself. The audit says who set or ended
it, by page, API or command."""

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
    """Until the pause ends, workers receive no batch and recovery sends nothing."""
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
    await kv.commit([Put(CONTROL_QUEUE, msgspec.json.encode(pause)), *audited])
    return pause


async def resume_queue(*, by: str) -> bool:
    """End a pause now; whether one was in force. An expired or unreadable record is removed too."""
    kv = require_env("kv").kv
    paused = False

    async def write() -> None:
        nonlocal paused
        paused = await current_pause() is not None or paused
        entry = await kv.get(CONTROL_QUEUE)
        if entry is not None:
            audited = record_audit("resume", "queue", by=by, reason="asked for it")
            await kv.commit([Delete(CONTROL_QUEUE, entry.version), *audited])

    await persist(write)
    return paused


async def current_pause() -> Pause | None:
    """The pause that is in force on the store's clock, if any. An unreadable record has no end, so it pauses nothing;
    it is counted and logged."""
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
    """The store's clock went back since this pause was set, so nobody knows how much of it is over: start it again
    now, with its whole length. If the write fails or another process was first, the old pause still counts."""
    again = msgspec.structs.replace(pause, at=now, until=now + pause.until - pause.at)
    try:
        await env.kv.commit([Put(CONTROL_QUEUE, msgspec.json.encode(again), version)])
    except (Conflict, StoreUnavailable):
        return pause
    return again
