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
    """A shared/exclusive lock; newcomers do not overtake a waiting exclusive run."""

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
    """A mutex per name: the second caller finds the first one's result in a cache.

    If the first is cancelled or fails, the next one does the work itself.
    """

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._wanted: dict[str, int] = {}

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """Hold this name's mutex."""
        self._wanted[name] = self._wanted.get(name, 0) + 1
        try:
            async with self._locks.setdefault(name, asyncio.Lock()):
                yield
        finally:
            self._wanted[name] -= 1
            if not self._wanted[name]:
                del self._wanted[name], self._locks[name]


class HostHangs(Exception):
    """Every slot of this host is taken, and it has answered none of them for too long."""


class HostSlots:
    """Concurrency limits per host, and for all hosts together.

    A host that does not answer fills its own slots. Further callers get HostHangs after `patience_s` without an answer,
    instead of taking slots from callers of other hosts.
    """

    def __init__(self, in_all: int, per_host: int, patience_s: float) -> None:
        self._all = asyncio.Semaphore(in_all)
        self._per_host = per_host
        self._patience_s = patience_s
        self._lanes: dict[str, _HostLane] = {}

    @asynccontextmanager
    async def slot(self, host: str) -> AsyncIterator[None]:
        """Occupy a slot. If the body ends without an error, the host has answered."""
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
    """Callers that wait for one host now, and when it last answered."""

    def __init__(self) -> None:
        self.wanted = 0
        #: When each caller entered, the oldest first.
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
