"""Counts recent sign-in attempts, codes mailed to an address, and requests that write, in the store, so that all
processes share the counts and a restart keeps them.

An attempt is counted before the password is checked. A missing name is counted like any other: neither the answer nor
its time reveals which names exist.
"""

import hashlib
from collections.abc import Callable

import msgspec

from vskill_core.errors import RateLimited
from vskill_platform.domain import keys
from vskill_platform.domain.telling.notification import MOST_PROOFS_TO_ADDRESS, PROOF_MS
from vskill_platform.ledger.kv.entries import ABSENT, Delete, Entry, Put
from vskill_platform.records import decode, persist, read_entries
from vskill_platform.worker_context import require_env

WINDOW_MS = 15 * 60_000
#: From one address for one name, from one address for any name, and for one name from anywhere.
MOST_PAIR, MOST_ADDRESS, MOST_NAME = 10, 50, 100


class CountedAttempts(msgspec.Struct, frozen=True):
    """The record at `attempts:{hash}`, gone when its window is over."""

    count: int
    until: int


class Window(msgspec.Struct, frozen=True):
    """Where a client stands after a request."""

    allowed: bool
    #: Requests that are still allowed.
    left: int
    ends_in_ms: int


async def count_request(kind: str, client: str, most: int, window_ms: int) -> Window:
    """Count one request of this kind, unless there were too many: a refused one does not count."""
    key = _key("request", kind, client)

    async def write() -> Window:
        kv = require_env("kv").kv
        entry, now = await kv.get(key), kv.now()
        known = _counted(entry, now, window_ms)
        if known.count >= most:
            return Window(allowed=False, left=0, ends_in_ms=known.until - now)
        await kv.commit([_one_more(key, entry, known, now)])
        return Window(allowed=True, left=most - known.count - 1, ends_in_ms=known.until - now)

    return await persist(write)


async def count_attempt(name: str, address: str) -> None:
    """Count one attempt; RateLimited if it is one too many. Refused attempts do not count, so the window ends."""
    subjects = {
        _key("pair", name, address): MOST_PAIR,
        _key("address", address): MOST_ADDRESS,
        _key("name", name): MOST_NAME,
    }

    def refusal(wait_ms: int) -> str:
        return f"Too many attempts to sign in; try again in {wait_ms // 60_000 + 1} minutes."

    async def write() -> None:
        await require_env("kv").kv.commit(await _count(subjects, WINDOW_MS, refusal))

    await persist(write)


async def count_code_to(address: str) -> list[Put]:
    """Count one more code to an e-mail address, from any account; commit the result with the task that mails it.
    RateLimited if it is one too many."""
    return await _count(
        {_key("code", address.lower()): MOST_PROOFS_TO_ADDRESS},
        PROOF_MS,
        lambda _: (
            f"{MOST_PROOFS_TO_ADDRESS} codes were mailed to this address within a day; try again tomorrow."
        ),
    )


async def forget_attempts(name: str, address: str) -> None:
    """Reset the counts after the right password: the earlier attempts were the same person's mistakes."""
    await persist(lambda: require_env("kv").kv.commit([Delete(_key("pair", name, address))]))


async def _count(subjects: dict[str, int], window_ms: int, refusal: Callable[[int], str]) -> list[Put]:
    """The writes that count each subject once more; RateLimited if one has reached its limit."""
    kv = require_env("kv").kv
    counted_before = await read_entries(subjects)
    now = kv.now()
    writes = []
    for key, most in subjects.items():
        entry = counted_before.get(key)
        known = _counted(entry, now, window_ms)
        if known.count >= most:
            wait_ms = known.until - now
            raise RateLimited(refusal(wait_ms), retry_after_s=max(1, wait_ms // 1000))
        writes.append(_one_more(key, entry, known, now))
    return writes


def _counted(entry: Entry | None, now: int, window_ms: int) -> CountedAttempts:
    """What was counted in the window that has not ended; a clock that was wrong makes no longer one."""
    known = decode(entry, CountedAttempts) if entry else None
    return known if known and now < known.until <= now + window_ms else CountedAttempts(0, now + window_ms)


def _one_more(key: str, entry: Entry | None, known: CountedAttempts, now: int) -> Put:
    counted = msgspec.json.encode(CountedAttempts(known.count + 1, known.until))
    version = entry.version if entry else ABSENT
    return Put(key, counted, version, quiet=True, ttl_ms=max(known.until - now, 1))


def _key(*subject: str) -> str:
    """A key for foreign text of any length and kind (hashed)."""
    return keys.attempts(hashlib.sha256(msgspec.json.encode(subject)).hexdigest())
