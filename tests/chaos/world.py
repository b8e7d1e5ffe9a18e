"""Real processes under real faults: whatever engine they stand on, skills are submitted over HTTP while things break one
after another, and at the end comes the account. `engines` and `single` say what a world is made of and what can break in
it; `python -m tests.chaos` plays them for minutes, a test for seconds.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from tests.chaos.account import QUIET_WITHIN_S, Account, Played, Watch, take_account
from tests.chaos.crew import STARTED_AGAIN, Crew
from tests.chaos.disk import limit_files
from tests.chaos.load import ACCOUNT, Load
from tests.chaos.proxy import Proxy
from tests.processes.workers import until
from tests.support.damage import BREAKS
from tests.support.envs import skill_files
from tests.support.patience import PATIENCE_S
from tests.support.people import make_account, token_of
from tests.support.slow_clients import HALF_BODY, HALF_HEAD, NOTHING, slow_clients
from vskill_core.errors import PlatformError
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.stored_content import list_damage, read_damage
from vskill_platform.store.submissions.submission_lists import find_submissions
from vskill_platform.worker_context import Env

T = TypeVar("T")

Fault = Callable[[], Awaitable[None]]

WORKER_KILLED = "worker killed"
WEB_KILLED = "web process killed"
DISK_FULL = "disk full for every process"
SLOW_CLIENTS = "slow clients"
#: Connections that send half a request and wait.
SLOW = 300
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
        #: What is submitted, once it is.
        self.load = Load([], "")
        #: Each fault that was played, when it began and when it was over.
        self.played: list[Played] = []
        self.faults: dict[str, Fault] = {
            WORKER_KILLED: crew.kill_a_worker,
            WEB_KILLED: crew.kill_a_web,
            DISK_FULL: self._fill_the_disk,
            SLOW_CLIENTS: self._connect_slowly,
            **{f"content {kind}": partial(self._damage_content, kind) for kind in BREAKS},
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
        return sum(self.load.refused[code] for code in codes)

    async def _fill_the_disk(self) -> None:
        """Content, records where they are files, and logs: nothing can be written."""
        async with self.felt_as(*self.refused_when_full):
            limit_files(self.crew.pids, NO_ROOM)
            await self.wait(FULL_S)
        limit_files(self.crew.pids)

    async def _connect_slowly(self) -> None:
        """Half heads, half bodies and silence before one web process, while it goes on answering everybody else."""
        address = self.crew.addresses[-1]
        async with (
            slow_clients(address, SLOW, (HALF_HEAD, HALF_BODY, NOTHING)),
            httpx2.AsyncClient() as client,
        ):

            async def ready() -> bool:
                # It may have been killed before, and start at the moment.
                with contextlib.suppress(httpx2.HTTPError):
                    return (await client.get(f"{address}/readyz", timeout=PATIENCE_S)).status_code == 200
                return False

            await until(ready, PATIENCE_S, "slow clients keep everybody else from being answered")
            await self.wait()

    async def _damage_content(self, kind: str) -> None:
        """A published skill's files are lost, cut or flipped at equal length. Nobody gets a wrong byte; it is listed; and
        the same files, sent again by their author, mend it."""
        record = await self._until_published()
        name, digest = record.skill_name, str(record.digest)
        await BREAKS[kind](self.env.blobs, digest)

        async def noticed() -> bool:
            answer = await self.load.download(name)
            wrong = answer is not None and answer.status_code == 200 and answer.content != _skill_md(name)
            assert not wrong, f"a wrong byte of {name} was handed out"
            return await _quietly(read_damage(digest)) is not None

        async def mended() -> bool:
            taken = await self.load.submit_again(name)
            answer = await self.load.download(name)
            whole = answer is not None and answer.content == _skill_md(name)
            return taken and whole and await _quietly(list_damage()) == ()

        await until(noticed, PATIENCE_S, f"nobody noticed that content was {kind}")
        await until(mended, PATIENCE_S, f"content that was {kind} was not mended")

    async def _until_published(self) -> Submission:
        found: list[Submission] = []

        async def is_there() -> bool:
            states = (State.PUBLISHED,)
            page = await _quietly(find_submissions(audiences=EVERYTHING, states=states, limit=20))
            found.extend(() if page is None else page.items)
            return bool(found)

        await until(is_there, PATIENCE_S, "nothing was published")
        return self.plan.chance.choice(found)

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
            began = time.time()
            await self.faults[name]()
            self.played.append(Played(name, began, time.time()))
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
        world.load = load
        began = time.monotonic()
        await _until_first_ends(_all(world, load), load.run(), watch.run())
        seconds = time.monotonic() - began
        quiet = await world.settle(watch)
        assert load.accepted, "nothing was submitted"
        account = await take_account(
            load,
            watch,
            world.played,
            seconds=seconds,
            seed=plan.seed,
            quiet_after_s=quiet,
            started_again=world.crew.faults[STARTED_AGAIN],
        )
        world.crew.check_logs()
        return account


def _skill_md(name: str) -> bytes:
    return skill_files(name, "slow")[0].data


async def _quietly(read: Awaitable[T]) -> T | None:
    """None where the store cannot be read at the moment."""
    try:
        return await read
    except PlatformError:
        return None


async def _all(world: World, load: Load) -> None:
    """Every fault, and after the last one the proof that submissions are taken again."""
    await world.suffer()
    last = world.played[-1].ended

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
