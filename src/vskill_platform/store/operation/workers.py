"""Signs of life (heartbeats) of processes: health can tell if no worker is alive, and `doctor` which keys each has.

A sign is neither claim nor lease: a worker whose signs stop loses no work. It expires after a day.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from vskill_core.errors import PlatformError
from vskill_platform.domain import keys
from vskill_platform.domain.submissions.attempts import CLOCK_SLACK_MS
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.records import decode, iter_entries
from vskill_platform.worker_context import Env, require_env, run_with_worker_env

#: A worker whose last sign is older than this many intervals counts as dead: two missed, and one late.
MISSED_SIGNS = 2.5
KEPT_MS = 24 * 3_600_000
#: How often a web process gives one: nothing but `doctor` asks for it.
WEB_SIGN_S = 60.0


class WorkerSign(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `worker:{id}` or `web:{id}`."""

    seen_at: int
    #: It stopped as it was told to.
    stopped: bool = False
    #: How long the sign before this one took to be written.
    write_ms: int = 0
    #: What keeps it from working, in a sentence that everybody may read; empty where nothing does.
    lacks: str = ""
    #: The key that it signs with; empty where it signs nothing, or could not read its key.
    signing_key: str = ""
    #: The key that seals credentials there; empty likewise.
    sealing_key: str = ""


class LiveProcess(msgspec.Struct, frozen=True):
    """A web process or worker that gave a sign lately."""

    role: str
    id: str
    sign: WorkerSign


class WorkersSeen(msgspec.Struct, frozen=True):
    """What the signs say."""

    alive: int
    #: Of all of them the latest, also of those that are dead or stopped; None: nobody has worked for a day.
    last_sign_at: int | None
    #: How long the last write took that a live worker measured, the longest.
    write_ms: int
    #: Somebody worked here, and nobody has for longer than a worker that lives is silent.
    gone: bool
    #: What keeps live workers from working, a sentence for each of these.
    lacks: tuple[str, ...] = ()
    #: The keys that live workers sign with, each once.
    signing_keys: tuple[str, ...] = ()


async def give_sign(
    kind: keys.KeyKind = keys.worker, *, stopped: bool = False, write_ms: int = 0, lacks: str = ""
) -> None:
    """Write a sign of life, with how long the last one took."""
    env = require_env("kv")
    signing, sealing = await own_key_id(env), await own_sealing_key_id(env)
    sign = WorkerSign(env.kv.now(), stopped, write_ms, lacks, signing or "", sealing)
    put = Put(kind(env.worker_id), msgspec.json.encode(sign), quiet=True, ttl_ms=KEPT_MS)
    await env.kv.commit([put])


async def run_web_signs(env: Env, stop: asyncio.Event) -> None:
    """Give signs of life of a web process until `stop` is set, then say that it stopped."""
    is_stopping = False
    while not is_stopping:
        is_stopping = stop.is_set()
        try:
            await run_with_worker_env(env, lambda: give_sign(keys.web, stopped=stop.is_set()))
        except PlatformError as error:
            env.log.warning("sign of life not written", error=str(error))
        with suppress(TimeoutError):
            async with asyncio.timeout(WEB_SIGN_S):
                await stop.wait()


async def own_key_id(env: Env) -> str | None:
    """The key that this process signs with; None where it signs nothing, empty where its key cannot be read now."""
    if env.signing is None:
        return None
    try:
        return (await env.signing.current()).public.key_id
    except PlatformError as error:
        env.log.warning("the signing key cannot be read", error=str(error))
        return ""


async def own_sealing_key_id(env: Env) -> str:
    """The key that seals credentials in this process; empty where there is none that can be read."""
    try:
        known = () if env.sealing is None else await env.sealing.keys()
    except PlatformError as error:
        env.log.warning("the sealing key cannot be read", error=str(error))
        return ""
    return known[0].key_id if known else ""


async def live_processes() -> list[LiveProcess]:
    """Web processes and workers that live, by their names."""
    now, found = require_env("kv").kv.now(), []
    for role, kind, silent_ms in (
        ("web", keys.web, int(WEB_SIGN_S * 1000 * MISSED_SIGNS)),
        ("worker", keys.worker, silence_ms()),
    ):
        async for entry in iter_entries(kind.prefix):
            sign = decode(entry, WorkerSign)
            if not sign.stopped and now - silent_ms <= sign.seen_at <= now + CLOCK_SLACK_MS:
                found.append(LiveProcess(role, entry.key.removeprefix(kind.prefix), sign))
    return found


async def look_at_workers() -> WorkersSeen:
    signs = [decode(entry, WorkerSign) async for entry in iter_entries(keys.worker.prefix)]
    return count_workers(signs, require_env("kv").kv.now(), silence_ms())


def silence_ms() -> int:
    return int(require_env("pace").pace.sign_every_s * 1000 * MISSED_SIGNS)


def count_workers(signs: Sequence[WorkerSign], now: int, silent_ms: int) -> WorkersSeen:
    """Signs from the future were written before the clock went back, and are ignored."""
    known = [sign for sign in signs if sign.seen_at <= now + CLOCK_SLACK_MS]
    last = max((sign.seen_at for sign in known), default=None)
    since = now - silent_ms
    alive = [sign for sign in known if not sign.stopped and sign.seen_at >= since]
    slowest = max((sign.write_ms for sign in alive), default=0)
    lacks = tuple(sign.lacks for sign in alive if sign.lacks)
    signing = tuple(sorted({sign.signing_key for sign in alive if sign.signing_key}))
    gone = last is not None and last < since
    return WorkersSeen(len(alive), last, slowest, gone=gone, lacks=lacks, signing_keys=signing)
