"""Signs of life (heartbeats) of worker processes, so that health can tell if none is alive.

A sign is neither claim nor lease: a worker whose signs stop loses no work. It expires after a day.
"""

from collections.abc import Sequence

import msgspec

from vskill_core.errors import PlatformError
from vskill_platform.domain import keys
from vskill_platform.domain.submissions.attempts import CLOCK_SLACK_MS
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.records import decode, iter_entries
from vskill_platform.worker_context import Env, require_env

#: A worker whose last sign is older than this many intervals counts as dead: two missed, and one late.
MISSED_SIGNS = 2.5
KEPT_MS = 24 * 3_600_000


class WorkerSign(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `worker:{id}`."""

    seen_at: int
    #: It stopped as it was told to.
    stopped: bool = False
    #: How long the sign before this one took to be written.
    write_ms: int = 0
    #: What keeps it from working, in a sentence that everybody may read; empty where nothing does.
    lacks: str = ""
    #: The key that it signs with; empty where it signs nothing, or could not read its key.
    signing_key: str = ""


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


async def give_sign(*, stopped: bool = False, write_ms: int = 0, lacks: str = "") -> None:
    """Write a sign of life, with how long the last one took."""
    env = require_env("kv")
    key = await own_key_id(env)
    sign = msgspec.json.encode(WorkerSign(env.kv.now(), stopped, write_ms, lacks, key or ""))
    await env.kv.commit([Put(keys.worker(env.worker_id), sign, quiet=True, ttl_ms=KEPT_MS)])


async def own_key_id(env: Env) -> str | None:
    """The key that this process signs with; None where it signs nothing, empty where its key cannot be read now."""
    if env.signing is None:
        return None
    try:
        return (await env.signing.current()).public.key_id
    except PlatformError as error:
        env.log.warning("the signing key cannot be read", error=str(error))
        return ""


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
