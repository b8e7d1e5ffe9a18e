"""Concurrency limits of one process: exclusive runs for a submission over which workers have died, per-key locks for
what would do the same work twice, slots per host for what waits for others, and a bounded gather."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
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
        """Enter shared mode; waits while an exclusive run is active or queued."""
        async with self._turnstile:
            self._inside += 1
            self._empty.clear()
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                self._empty.set()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Enter exclusive mode; waits until everybody else has left."""
        async with self._turnstile:
            await self._empty.wait()
            yield


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


class HostHangs(Exception):
    """Every slot of this host is taken, and nobody has got an answer from it for too long."""


class HostSlots:
    """How much waits for one host at the same time, and for all hosts together.

    A host that answers nobody fills its own slots. Whoever else wants it gets HostHangs after `patience_s` without an
    answer, instead of waiting in the place of those who want other hosts.
    """

    def __init__(self, in_all: int, per_host: int, patience_s: float) -> None:
        self._all = asyncio.Semaphore(in_all)
        self._per_host = per_host
        self._patience_s = patience_s
        self._lanes: dict[str, _HostLane] = {}

    @asynccontextmanager
    async def slot(self, host: str) -> AsyncIterator[None]:
        """Occupy a slot. A body that ends without an error has got an answer."""
        lane = self._lanes.setdefault(host, _HostLane())
        lane.wanted += 1
        mark = object()
        try:
            await self._enter(lane, mark)
            async with self._all:
                yield
            lane.answered_at = time.monotonic()
        finally:
            lane.inside.pop(mark, None)
            lane.left.set()
            lane.wanted -= 1
            if not lane.wanted:
                del self._lanes[host]

    async def _enter(self, lane: "_HostLane", mark: object) -> None:
        while len(lane.inside) >= self._per_host:
            oldest = next(iter(lane.inside.values()))
            left_s = max(oldest, lane.answered_at) + self._patience_s - time.monotonic()
            if left_s <= 0:
                raise HostHangs
            lane.left.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await lane.left.wait()
        lane.inside[mark] = time.monotonic()


class _HostLane:
    """Who waits for one host now, and when it last answered."""

    def __init__(self) -> None:
        self.wanted = 0
        #: When each was let in, the oldest first.
        self.inside: dict[object, float] = {}
        self.answered_at = -math.inf
        self.left = asyncio.Event()


async def some_at_a_time(work: Callable[[A], Awaitable[T]], items: Iterable[A], at_once: int) -> list[T]:
    """Run `work` on each item, at most `at_once` concurrently; results keep input order."""
    slots = asyncio.Semaphore(at_once)

    async def bounded(item: A) -> T:
        async with slots:
            return await work(item)

    return await asyncio.gather(*map(bounded, items))
