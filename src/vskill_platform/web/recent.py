"""Answers that may be a few seconds old: made once for all who ask meanwhile and may read the same, so that a thousand
open pages cost what one costs. A failure is never kept."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from vskill_platform.clock import Clock
from vskill_platform.domain.audience import Audiences

T = TypeVar("T")

#: Answers that are kept: those asked for last.
MOST_KEPT = 64


class Recent:
    """The answers of one process, by name and by what their readers may read."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[tuple[str, Audiences], tuple[float, Any]] = {}
        self._turns: dict[tuple[str, Audiences], asyncio.Lock] = {}

    async def get(
        self, name: str, audiences: Audiences, max_age_s: float, make: Callable[[], Awaitable[T]]
    ) -> T:
        """The answer of that name for these audiences if it is young enough, otherwise a new one."""
        key = (name, audiences)
        async with self._turns.setdefault(key, asyncio.Lock()):
            kept = self._kept.pop(key, None)
            now = self._clock.monotonic()
            if kept is None or now - kept[0] > max_age_s:
                kept = (now, await make())
            self._kept[key] = kept
            self._forget_oldest()
            found: T = kept[1]
            return found

    def _forget_oldest(self) -> None:
        while len(self._kept) > MOST_KEPT:
            oldest = next(iter(self._kept))
            del self._kept[oldest]
            # Whoever waits for the lock holds it by itself; the next one makes another.
            self._turns.pop(oldest, None)
