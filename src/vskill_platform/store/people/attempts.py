"""How often somebody tried to sign in lately, and how many codes were mailed to an address, counted in the store, so
that every process and every restart counts on.

An attempt is counted before the password is looked at. A name that does not exist is counted like any other: the
answer, and the time it takes, tell nobody which names there are.
"""

import hashlib
from collections.abc import Callable

import msgspec

from vskill_core.errors import RateLimited
from vskill_platform.domain import keys
from vskill_platform.domain.telling.notification import MOST_PROOFS_TO_ADDRESS, PROOF_MS
from vskill_platform.ledger.kv.entries import ABSENT, Delete, Put
from vskill_platform.records import decode, persist, read_entries
from vskill_platform.worker_context import require_env

WINDOW_MS = 15 * 60_000
#: From one address for one name, from one address for any name, and for one name from anywhere.
MOST_PAIR, MOST_ADDRESS, MOST_NAME = 10, 50, 100


class CountedAttempts(msgspec.Struct, frozen=True):
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

    def refusal(wait_ms: int) -> str:
        return f"Too many attempts to sign in; try again in {wait_ms // 60_000 + 1} minutes."

    async def write() -> None:
        await require_env("kv").kv.commit(await _count(subjects, WINDOW_MS, refusal))

    await persist(write)


async def count_code_to(address: str) -> list[Put]:
    """One more code to an e-mail address, whichever account asks, to commit with the task that mails it; RateLimited
    where that is one too many."""
    return await _count(
        {_key("code", address.lower()): MOST_PROOFS_TO_ADDRESS},
        PROOF_MS,
        lambda _: (
            f"{MOST_PROOFS_TO_ADDRESS} codes were mailed to this address within a day; try again tomorrow."
        ),
    )


async def forget_attempts(name: str, address: str) -> None:
    """The right password was given: what came before were mistakes of the same person."""
    await persist(lambda: require_env("kv").kv.commit([Delete(_key("pair", name, address))]))


async def _count(subjects: dict[str, int], window_ms: int, refusal: Callable[[int], str]) -> list[Put]:
    """The writes that count each once more; RateLimited where one has been counted that often already."""
    kv = require_env("kv").kv
    counted_before = await read_entries(subjects)
    now = kv.now()
    writes = []
    for key, most in subjects.items():
        entry = counted_before.get(key)
        known = decode(entry, CountedAttempts) if entry else None
        if known is None or not now < known.until <= now + window_ms:
            known = CountedAttempts(0, now + window_ms)
        if known.count >= most:
            wait_ms = known.until - now
            raise RateLimited(refusal(wait_ms), retry_after_s=max(1, wait_ms // 1000))
        counted = msgspec.json.encode(CountedAttempts(known.count + 1, known.until))
        version = entry.version if entry else ABSENT
        writes.append(Put(key, counted, version, quiet=True, ttl_ms=max(known.until - now, 1)))
    return writes


def _key(*subject: str) -> str:
    """Foreign text of any length and kind as a key."""
    return keys.attempts(hashlib.sha256(msgspec.json.encode(subject)).hexdigest())
