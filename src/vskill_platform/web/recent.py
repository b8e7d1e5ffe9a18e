"""Answers that may be a few seconds old: made once for everybody who asks meanwhile, so that a thousand open pages
cost what one costs. A failure is never kept."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from vskill_platform.clock import Clock

T = TypeVar("T")


class Recent:
    """The answers of one process, by name."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, tuple[float, Any]] = {}
        self._turns: dict[str, asyncio.Lock] = {}

    async def get(self, name: str, max_age_s: float, make: Callable[[], Awaitable[T]]) -> T:
        """The answer of that name if it is young enough, otherwise a new one."""
        async with self._turns.setdefault(name, asyncio.Lock()):
            kept = self._kept.get(name)
            now = self._clock.monotonic()
            if kept is None or now - kept[0] > max_age_s:
                kept = (now, await make())
                self._kept[name] = kept
            found: T = kept[1]
            return found
