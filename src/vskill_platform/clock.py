"""Time and ids, from one place that tests and the simulator can own. Deadlines are not set by this clock but by
the store's (`KV.now`), which all workers share."""

import os
import threading
import time
from typing import Protocol

_RANDOM_BYTES = 10
#: Clocks further apart than this make deadlines look wrong to people.
MAX_SKEW_MS = 2_000


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

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._random = b""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    def new_id(self) -> str:
        return sortable_id(self.now(), int.from_bytes(self._random_bytes(), "big"))

    def _random_bytes(self) -> bytes:
        """Drawn in blocks: asking the system costs more than everything else about an id."""
        with self._lock:
            if not self._random:
                self._random = os.urandom(_RANDOM_BYTES * 128)
            drawn, self._random = self._random[:_RANDOM_BYTES], self._random[_RANDOM_BYTES:]
        return drawn


_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_SHIFTS = tuple(range(120, -1, -10))


def sortable_id(now_ms: int, random_bits: int) -> str:
    """26 characters of Crockford's base 32, lower case: the time first, so that ids sort by it."""
    number = (now_ms << 80) | random_bits
    return "".join([_PAIRS[(number >> shift) & 1023] for shift in _SHIFTS])
