"""Time and ids, from one place that tests and the simulator can own. Deadlines are not set by this clock but by
the store's (`KV.now`), which all workers share."""

import secrets
import time
from typing import Protocol


class Clock(Protocol):
    """Where time and fresh identifiers come from."""

    def now(self) -> int:
        """Wall-clock time, in milliseconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back, for durations."""
        ...

    def new_id(self) -> str:
        """A fresh identifier that sorts by time (48 bits of milliseconds, 80 random bits)."""
        ...


class SystemClock:
    """The machine's own clock and randomness."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    def new_id(self) -> str:
        return sortable_id(self.now(), secrets.randbits(80))


_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def sortable_id(now_ms: int, random_bits: int) -> str:
    """26 characters of Crockford's base 32, lower case: the time first, so that ids sort by it."""
    number = (now_ms << 80) | random_bits
    return "".join(_ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5))
