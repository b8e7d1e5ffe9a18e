"""Company and solitude in one worker process: most work runs side by side, but a submission over which workers
have died repeatedly runs alone, so that it can take nothing else down with it, and what would do the same work
twice takes turns. And of much work at once, some at a time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

A = TypeVar("A")
T = TypeVar("T")


class WorkGate:
    """Many in company, or one alone; whoever wants to be alone is not overtaken by newcomers."""

    def __init__(self) -> None:
        self._inside = 0
        self._turnstile = asyncio.Lock()
        self._empty = asyncio.Event()
        self._empty.set()

    @asynccontextmanager
    async def company(self) -> AsyncIterator[None]:
        """Beside others, once nobody is alone inside or waits to be."""
        async with self._turnstile:
            self._enter()
        try:
            yield
        finally:
            self._leave()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """With nobody else inside."""
        async with self._turnstile:
            await self._empty.wait()
            yield

    def _enter(self) -> None:
        self._inside += 1
        self._empty.clear()

    def _leave(self) -> None:
        self._inside -= 1
        if not self._inside:
            self._empty.set()


class Turns:
    """One at a time per name: whoever comes second finds what the first has left in a cache.

    Where the first is cancelled or fails, the next one simply does the work itself.
    """

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._wanted: dict[str, int] = {}

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """Alone among those of this name."""
        self._wanted[name] = self._wanted.get(name, 0) + 1
        try:
            async with self._locks.setdefault(name, asyncio.Lock()):
                yield
        finally:
            self._wanted[name] -= 1
            if not self._wanted[name]:
                del self._wanted[name], self._locks[name]


async def some_at_a_time(work: Callable[[A], Awaitable[T]], items: Iterable[A], at_once: int) -> list[T]:
    """The work for every item, so many at the same time; the answers in the order of the items."""
    slots = asyncio.Semaphore(at_once)

    async def bounded(item: A) -> T:
        async with slots:
            return await work(item)

    return await asyncio.gather(*map(bounded, items))
