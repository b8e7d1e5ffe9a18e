"""Real processes under real faults: whatever engine they stand on, skills are submitted over HTTP while things break one
after another, and at the end comes the account. `engines` and `single` say what a world is made of and what can break in
it; `python -m tests.chaos` plays them for minutes, a test for seconds.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from tests.chaos.account import QUIET_WITHIN_S, Account, Watch, take_account
from tests.chaos.crew import STARTED_AGAIN, Crew
from tests.chaos.disk import limit_files
from tests.chaos.load import ACCOUNT, Load
from tests.chaos.proxy import Proxy
from tests.processes.workers import until
from tests.support.patience import PATIENCE_S
from tests.support.people import make_account, token_of
from vskill_platform.env import Env
from vskill_platform.store.accounts import Role

Fault = Callable[[], Awaitable[None]]

WORKER_KILLED = "worker killed"
WEB_KILLED = "web process killed"
DISK_FULL = "disk full for every process"
#: Less than any file that is written: the disk has no room at all.
NO_ROOM = 64
#: A disk is full for longer than a writer tries again.
FULL_S = 2.0


class Plan:
    """How long, by which chance, and how long things stay broken."""

    def __init__(self, seconds: float, seed: int, down_s: float = 2.0) -> None:
        self.seconds = seconds
        self.seed = seed
        self.down_s = down_s
        self.chance = random.Random(seed)


class World:
    """What runs, and what can break in it."""

    #: How a submission is refused while no process can write a file.
    refused_when_full: tuple[str, ...] = ("blob_unavailable",)

    def __init__(self, env: Env, crew: Crew, plan: Plan) -> None:
        self.env = env
        self.crew = crew
        self.plan = plan
        #: By the code of the problem document, from the load once it runs.
        self.refused: Counter[str] = Counter()
        #: Each fault that was played, and when it was over.
        self.ends: list[tuple[str, float]] = []
        self.faults: dict[str, Fault] = {
            WORKER_KILLED: crew.kill_a_worker,
            WEB_KILLED: crew.kill_a_web,
            DISK_FULL: self._fill_the_disk,
        }
        for web in crew.webs[:1]:
            self.add_network("clients to web", web.way)

    def add_network(self, between: str, way: Proxy) -> None:
        """The ways in which a stretch of network fails."""

        async def cut() -> None:
            way.refusing = True
            way.cut()
            await self.wait()
            way.refusing = False

        async def stall() -> None:
            way.stall()
            await self.wait()
            way.flow()

        async def half_close() -> None:
            way.half_close()
            await self.wait()

        self.faults |= {
            f"network cut, {between}": cut,
            f"network stalled, {between}": stall,
            f"network half-closed, {between}": half_close,
        }

    async def wait(self, least_s: float = 0) -> None:
        await asyncio.sleep(max(self.plan.down_s, least_s))

    @asynccontextmanager
    async def felt_as(self, *codes: str) -> AsyncIterator[None]:
        """What breaks in the block stays broken until a client has been refused with one of these codes: on a busy
        machine a fault could be over before anybody meets it."""
        before = self._refusals(codes)
        yield

        async def refused() -> bool:
            return self._refusals(codes) > before

        await until(refused, PATIENCE_S, f"nobody was refused with {' or '.join(codes)}")

    def _refusals(self, codes: Sequence[str]) -> int:
        return sum(self.refused[code] for code in codes)

    async def _fill_the_disk(self) -> None:
        """Content, records where they are files, and logs: nothing can be written."""
        async with self.felt_as(*self.refused_when_full):
            limit_files(self.crew.pids, NO_ROOM)
            await self.wait(FULL_S)
        limit_files(self.crew.pids)

    async def suffer(self) -> None:
        """Every fault in turn at first, so that a short run has had each; then by chance."""
        chance = self.plan.chance
        end = time.monotonic() + self.plan.seconds
        first = list(self.faults)
        # A death of a worker is the commonest of faults, and the others leave little time for it.
        often = [*first, *[WORKER_KILLED] * len(first)]
        while time.monotonic() < end or first:
            await asyncio.sleep(chance.uniform(0.2, 0.75) * self.plan.down_s)
            name = first.pop(0) if first else chance.choice(often)
            await self.faults[name]()
            self.ends.append((name, time.time()))
            await self.crew.replace_the_dead()

    async def settle(self, watch: Watch) -> float:
        """Wait until nothing is owed; how long it took."""

        async def quiet() -> bool:
            await self.crew.replace_the_dead()
            return await watch.look()

        return await until(quiet, QUIET_WITHIN_S, "something is still owed")


async def play(
    opened: Callable[[Path, Plan], AbstractAsyncContextManager[World]], folder: Path, plan: Plan
) -> Account:
    """Submit and break things for so long; then the account, or the assertion that failed."""
    async with opened(folder, plan) as world:
        await make_account(world.env, ACCOUNT, Role.AUTHOR)
        token = await token_of(world.env, ACCOUNT, "submit")
        load, watch = Load(world.crew.addresses, token), Watch()
        world.refused = load.refused
        began = time.monotonic()
        await _until_first_ends(_all(world, load), load.run(), watch.run())
        seconds = time.monotonic() - began
        quiet = await world.settle(watch)
        assert load.accepted, "nothing was submitted"
        account = await take_account(
            load,
            watch,
            world.ends,
            seconds=seconds,
            seed=plan.seed,
            quiet_after_s=quiet,
            started_again=world.crew.faults[STARTED_AGAIN],
        )
        world.crew.check_logs()
        return account


async def _all(world: World, load: Load) -> None:
    """Every fault, and after the last one the proof that submissions are taken again."""
    await world.suffer()
    last = world.ends[-1][1]

    async def accepted() -> bool:
        await world.crew.replace_the_dead()
        return any(sent >= last for sent, _ in load.accepted.values())

    await until(accepted, QUIET_WITHIN_S, "no submission was accepted after the last fault")


async def _until_first_ends(*works: Coroutine[Any, Any, None]) -> None:
    """Side by side until one ends; then the others are cancelled, and the first error is raised."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for one in outcomes:
        if isinstance(one, BaseException) and not isinstance(one, asyncio.CancelledError):
            raise one
