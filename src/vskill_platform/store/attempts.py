"""How often somebody tried to sign in lately, counted in the store, so that every process and every restart counts on.

An attempt is counted before the password is looked at. A name that does not exist is counted like any other: the
answer, and the time it takes, tell nobody which names there are.
"""

import hashlib

import msgspec

from vskill_platform.domain import keys
from vskill_platform.domain.errors import RateLimited
from vskill_platform.kv.entries import ABSENT, Delete, Put
from vskill_platform.records import decode, persist
from vskill_platform.worker_context import require_env

WINDOW_MS = 15 * 60_000
#: From one address for one name, from one address for any name, and for one name from anywhere.
MOST_PAIR, MOST_ADDRESS, MOST_NAME = 10, 50, 100


class SignInAttempts(msgspec.Struct, frozen=True):
    """The record at `attempts:{hash}`, gone when its window is over."""

    count: int
    until: int


async def count_attempt(name: str, address: str) -> None:
    """One more; RateLimited where that is one too many. Refused ones are not counted, so the window ends."""
    subjects = {
        _key("pair", name, address): MOST_PAIR,
        _key("address", address): MOST_ADDRESS,
        _key("name", name): MOST_NAME,
    }
    await persist(lambda: _count(subjects))


async def forget_attempts(name: str, address: str) -> None:
    """The right password was given: what came before were mistakes of the same person."""
    await persist(lambda: require_env("kv").kv.commit([Delete(_key("pair", name, address))]))


async def _count(subjects: dict[str, int]) -> None:
    kv = require_env("kv").kv
    settled = await kv.get_many(subjects)
    for error in settled.failed.values():
        raise error
    now = kv.now()
    writes = []
    for key, most in subjects.items():
        entry = settled.found.get(key)
        known = decode(entry, SignInAttempts) if entry else None
        if known is None or not now < known.until <= now + WINDOW_MS:
            known = SignInAttempts(0, now + WINDOW_MS)
        if known.count >= most:
            wait_ms = known.until - now
            message = f"Too many attempts to sign in; try again in {wait_ms // 60_000 + 1} minutes."
            raise RateLimited(message, retry_after_s=max(1, wait_ms // 1000))
        counted = msgspec.json.encode(SignInAttempts(known.count + 1, known.until))
        version = entry.version if entry else ABSENT
        writes.append(Put(key, counted, version, quiet=True, ttl_ms=max(known.until - now, 1)))
    await kv.commit(writes)


def _key(*subject: str) -> str:
    """Foreign text of any length and kind as a key."""
    return keys.attempts(hashlib.sha256(msgspec.json.encode(subject)).hexdigest())
