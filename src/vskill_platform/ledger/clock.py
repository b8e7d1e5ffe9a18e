"""Time and ids, from one place that tests and the simulator can replace, and timeouts that do not count suspension.
Deadlines use the store's clock (`KV.now`) instead, which all workers share."""

import asyncio
import os
import threading
import time
from functools import lru_cache
from types import TracebackType
from typing import Protocol, Self

#: Characters of an id that are random: 16 of 5 bits each.
_RANDOM_LENGTH = 16
#: Ids whose random parts are drawn at once.
_BLOCK = 128
#: Clocks further apart than this make deadlines look wrong to people.
MAX_SKEW_MS = 2_000
#: A time limit counts ticks of this length. If a tick is late by more than this, the process was suspended.
TICK_S = 1.0


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
        self._random: list[str] = []

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    def new_id(self) -> str:
        """Random parts are drawn in blocks: the system call costs more than all the rest."""
        with self._lock:
            if not self._random:
                drawn = os.urandom(_BLOCK * _RANDOM_LENGTH).translate(_BY_BYTE).decode()
                starts = range(0, len(drawn), _RANDOM_LENGTH)
                self._random = [drawn[start : start + _RANDOM_LENGTH] for start in starts]
            return _time_part(self.now()) + self._random.pop()


class ServerClock:
    """The server's time, from this machine's monotonic clock and the last comparison of the two."""

    def __init__(self) -> None:
        self._machine = SystemClock()
        self._offset_ms = self._machine.now() - time.monotonic() * 1000

    def now(self) -> int:
        return int(time.monotonic() * 1000 + self._offset_ms)

    def compare(self, server_ms: int, asked: float, answered: float) -> None:
        """The server's time, read between two readings (seconds) of our clock."""
        self._offset_ms = server_ms - (asked + answered) / 2 * 1000


class TimeLimit:
    """As `asyncio.timeout`, but time in which this process was suspended (a sleeping laptop, a paused virtual machine,
    SIGSTOP) does not count: it could not have seen an answer."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._timer = asyncio.timeout(None)
        self._tick: asyncio.TimerHandle | None = None
        #: Whether this process was suspended meanwhile.
        self.slept = False

    async def __aenter__(self) -> Self:
        await self._timer.__aenter__()
        self._schedule()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._tick is not None:
            self._tick.cancel()
        await self._timer.__aexit__(kind, error, trace)

    def expired(self) -> bool:
        return self._timer.expired()

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        length = min(self._left, TICK_S)
        self._tick = loop.call_later(length, self._count, length, loop.time() + length)

    def _count(self, length: float, due: float) -> None:
        now = asyncio.get_running_loop().time()
        is_late = now - due > TICK_S
        self.slept |= is_late
        # A late tick counts a little, so that the limit ends even if every tick is late.
        self._left -= max(length / 10, TICK_S / 100) if is_late else length
        if self._left > 0:
            self._schedule()
        else:
            self._timer.reschedule(now)


_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_SHIFTS = tuple(range(120, -1, -10))
#: A random byte's lowest 5 bits as a character.
_BY_BYTE = bytes(ord(_ALPHABET[byte & 31]) for byte in range(256))


def sortable_id(now_ms: int, random_bits: int) -> str:
    """26 characters of Crockford's base 32, lower case: the time first, so that ids sort by it."""
    number = (now_ms << 80) | random_bits
    return "".join([_PAIRS[(number >> shift) & 1023] for shift in _SHIFTS])


@lru_cache(maxsize=8)
def _time_part(now_ms: int) -> str:
    return sortable_id(now_ms, 0)[:-_RANDOM_LENGTH]
