"""Whoever puts, reads and collects at the same time, and wherever they die: no request of theirs leaves content without
a copy that a record names, or that was put within a day.

The lines of the S3 engine and of the collector run over a bucket in memory. Each request is a step; hypothesis chooses
who makes the next one, who dies instead, and how much time passes.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.buckets import MemoryBucket, at_once
from tests.support.envs import active_env, open_test_env
from tests.support.manual_clock import ManualClock
from vskill_core.errors import BlobUnavailable
from vskill_platform.domain import keys
from vskill_platform.ledger.blobs.s3 import S3Blobs
from vskill_platform.ledger.kv.memory import MemoryKV
from vskill_platform.observing.metrics import Metrics
from vskill_platform.upkeep.collector import ASIDE_MS, UNTOUCHED_MS, collect
from vskill_platform.worker_context import Env

ADDRESSES = ("a" * 64, "b" * 64)
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
PASSING = (0, 1_000, 9 * MINUTE, 11 * MINUTE, HOUR, 6 * HOUR, 25 * HOUR, 8 * DAY)


class World:
    """A bucket, records, and processes that make one request at a time, each when it is told to."""

    def __init__(self, env: Env) -> None:
        self.clock = ManualClock()
        self.env = env
        self.kv = MemoryKV(self.clock)
        self.objects = MemoryBucket(self.clock).objects
        self.running: list[asyncio.Task[None]] = []
        #: Who waits to send a request, by the order in which they started, and which.
        self.waiting: dict[asyncio.Task[None], tuple[asyncio.Future[None], str]] = {}
        #: When each content was last put as a whole.
        self.put_at: dict[str, int] = {}
        self.named: set[str] = set()

    def blobs(self, before_each: Callable[[str], Awaitable[None]]) -> S3Blobs:
        bucket = MemoryBucket(self.clock, before_each)
        bucket.objects = self.objects
        return S3Blobs(bucket, "s3://memory", self.clock, Metrics())

    def there_is(self, folder: str, address: str, age_ms: int) -> None:
        written = datetime.fromtimestamp(self.clock.now() / 1000, UTC) - timedelta(milliseconds=age_ms)
        self.objects[f"{folder}/{address}"] = address.encode(), written

    def start(self, kind: str, address: str) -> None:
        self.running.append(asyncio.create_task(self._run(kind, address)))

    async def _run(self, kind: str, address: str) -> None:
        blobs = self.blobs(self._wait)
        with active_env(self.env, blobs=blobs, kv=self.kv, clock=self.clock):
            if kind in ("put", "submit"):
                await blobs.put(address, address.encode())
                self.put_at[address] = self.clock.now()
            if kind == "submit":
                await self.kv.put(keys.collection(address[:8]), b'{"pack":"%b"}' % address.encode())
                self.named.add(address)
            # Content that others move between two requests about it is unavailable for a moment, and not missing.
            with suppress(BlobUnavailable):
                await self._ask(kind, address, blobs)

    async def _ask(self, kind: str, address: str, blobs: S3Blobs) -> None:
        if kind == "get":
            assert await blobs.get(address) in (None, address.encode())
        if kind == "has":
            await blobs.has(address)
        if kind == "set_aside" and address not in self.named:
            await blobs.set_aside(address, UNTOUCHED_MS)
        if kind == "delete_aside" and address not in self.named:
            await blobs.delete_aside(address, ASIDE_MS)
        if kind == "collect":
            await collect()

    async def _wait(self, request: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.waiting[task] = asyncio.get_running_loop().create_future(), request
        await self.waiting[task][0]

    async def settle(self) -> None:
        """Let all go on until each waits to make a request, or has ended."""
        while len(self.waiting) < sum(not task.done() for task in self.running):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)

    async def step(self, who: int, *, dies: bool) -> None:
        waiting = [task for task in self.running if task in self.waiting]
        if waiting:
            task = waiting[who % len(waiting)]
            gate, _ = self.waiting.pop(task)
            if dies:
                task.cancel()
            else:
                gate.set_result(None)
            await self.settle()
        self.check()

    async def let_pass(self, ms: int) -> None:
        """A deletion that was decided is sent at once: whoever sleeps so long before that finds its connection lost."""
        for number, task in reversed(list(enumerate(task for task in self.running if task in self.waiting))):
            if ms >= MINUTE and self.waiting[task][1] == "delete":
                await self.step(number, dies=True)
        self.clock.advance(ms)

    async def finish(self) -> None:
        while self.waiting:
            await self.step(0, dies=False)
        for task in self.running:
            if not task.cancelled():
                task.result()

    def check(self) -> None:
        """Everything that is owed has a copy."""
        for address, at in self.put_at.items():
            if address in self.named or self.clock.now() - at < DAY:
                assert self.copies(address), f"{address[0]} is gone"

    def copies(self, address: str) -> list[str]:
        return [folder for folder in ("content", "aside") if f"{folder}/{address}" in self.objects]


Step = tuple[str, int, int]
starts = st.tuples(
    st.sampled_from(("put", "submit", "get", "has", "set_aside", "delete_aside", "collect")),
    st.integers(0, 1),
    st.just(0),
)
moves = st.tuples(st.just("step"), st.integers(0, 5), st.just(0))
deaths = st.tuples(st.just("die"), st.integers(0, 5), st.just(0))
passing = st.tuples(st.just("pass"), st.just(0), st.sampled_from(PASSING))
histories = st.lists(st.one_of(starts, moves, moves, moves, moves, deaths, passing), max_size=80)
ages = st.sampled_from((None, 0, HOUR, 25 * HOUR, 8 * DAY))


async def play(env: Env, history: list[Step], places: list[int | None], asides: list[int | None]) -> World:
    world = World(env)
    for address, in_place, aside in zip(ADDRESSES, places, asides, strict=True):
        if in_place is not None:
            world.there_is("content", address, in_place)
        if aside is not None:
            world.there_is("aside", address, aside)
    for kind, number, ms in history:
        if kind == "pass":
            await world.let_pass(ms)
        elif kind in ("step", "die"):
            for _ in range(max(ms, 1)):
                await world.step(number, dies=kind == "die")
        else:
            world.start(kind, ADDRESSES[number])
            await world.settle()
    await world.finish()
    blobs = world.blobs(at_once)
    for address in world.named:
        assert await blobs.get(address) == address.encode()
    return world


@pytest.fixture(scope="module")
def env(tmp_path_factory):
    async def opened() -> Env:
        async with open_test_env("memory", tmp_path_factory.mktemp("env"), active=False) as env:
            return env

    return asyncio.run(opened())


OLD, WAITED = 8 * DAY, 25 * HOUR
#: The requests before a deletion: two for the server's time, then looks and copies.
TO_THE_LAST_LOOK, TO_THE_DELETION = 4, 4
RACES: dict[str, tuple[list[Step], list[int | None], list[int | None]]] = {
    "a put just before the deletion": (
        [("set_aside", 0, 0), ("step", 0, 3), ("put", 0, 0), ("step", 1, 1), ("step", 0, 9)],
        [OLD, None],
        [None, None],
    ),
    "put between copy and deletion, then collected": (
        [
            *(("set_aside", 0, 0), ("step", 0, TO_THE_LAST_LOOK)),
            *(("put", 0, 0), ("step", 1, 1)),
            *(("step", 0, 2), ("collect", 0, 0), ("step", 0, 9)),
        ],
        [OLD, None],
        [None, None],
    ),
    "a collector that slept between copy and deletion": (
        [
            *(("set_aside", 0, 0), ("step", 0, TO_THE_LAST_LOOK), ("pass", 0, WAITED)),
            *(("put", 0, 0), ("step", 1, 1)),
            *(("step", 0, 2), ("collect", 0, 0), ("step", 0, 9)),
        ],
        [OLD, None],
        [None, None],
    ),
    "two collectors, one at each copy, and a put": (
        [
            *(("delete_aside", 0, 0), ("step", 0, TO_THE_DELETION)),
            *(("set_aside", 0, 0), ("step", 1, TO_THE_LAST_LOOK)),
            *(("put", 0, 0), ("step", 2, 1)),
            *(("step", 1, 2), ("step", 0, 1)),
        ],
        [OLD, None],
        [WAITED, None],
    ),
    "a collector that knows the names of a week ago": (
        [
            *(("collect", 0, 0), ("step", 0, 3)),
            *(("put", 1, 0), ("step", 1, 1), ("pass", 0, OLD)),
            *(("set_aside", 1, 0), ("step", 1, TO_THE_LAST_LOOK)),
            *(("submit", 1, 0), ("step", 2, 1)),
            *(("step", 1, 2), ("pass", 0, WAITED), ("step", 0, 9)),
        ],
        [None, None],
        [WAITED, WAITED],
    ),
}


@pytest.mark.parametrize("race", RACES)
def test_a_race_leaves_owed_content_a_copy(env, race):
    """Each of these would lose content if one rule were missing."""
    asyncio.run(play(env, *RACES[race]))


@pytest.mark.slow
@settings(max_examples=1_000)
@given(
    history=histories,
    places=st.lists(ages, min_size=2, max_size=2),
    asides=st.lists(ages, min_size=2, max_size=2),
)
def test_no_interleaving_leaves_owed_content_without_a_copy(env, history, places, asides):
    asyncio.run(play(env, history, places, asides))
