"""Real processes under real faults: workers on PostgreSQL and NATS, killed and cut off at random while skills are
submitted, and the account at the end. `python -m tests.chaos` plays it for minutes; a test plays it for seconds.

The account: every submission that was accepted is terminal, waits for a person, or is held for a later attempt; none is
lost, none was published twice, and queue health is empty within a minute of the last fault.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from tests.chaos.proxy import Proxy
from tests.incidents.steps import check_history
from tests.processes.workers import WorkerProcess, Workers, until, workers_on
from tests.support import nats, postgres
from tests.support.envs import active_env, submit_skill
from vskill_platform.bootstrap import env_for
from vskill_platform.domain.errors import PlatformError
from vskill_platform.domain.states import State
from vskill_platform.domain.submission import Submission
from vskill_platform.env import Env
from vskill_platform.queue.health import queue_health
from vskill_platform.settings import Settings
from vskill_platform.store.skills import get_skill
from vskill_platform.submission_store import get_run, get_submission

WORKERS = 3
#: Within this long of the last fault nothing may be owed.
QUIET_WITHIN_S = 60.0
#: How long a server is gone.
DOWN_S = 2.0
WORKER_KILLED = "worker killed"
STARTED_AGAIN = "started again, since its store was away at the start"
#: Between two submissions.
EVERY_S = 0.2


class Account(msgspec.Struct, frozen=True):
    """What came of it."""

    seconds: float
    seed: int
    faults: dict[str, int]
    accepted: int
    #: Refused with the typed error while the store was away; the submitter knows.
    refused: int
    states: dict[str, int]
    #: Attempts that ended with their worker.
    interrupted: int
    #: From the last fault until nothing was owed.
    quiet_after_s: float
    #: From acceptance to the end of the run.
    median_s: float
    worst_s: float


class World:
    """Servers, workers, the network between, and what was accepted."""

    def __init__(self, env: Env, workers: Workers, proxy: Proxy, servers: "Servers", seed: int) -> None:
        self.env = env
        self.workers = workers
        self.proxy = proxy
        self.servers = servers
        self.seed = seed
        self.chance = random.Random(seed)
        self.alive: list[WorkerProcess] = []
        self.accepted: list[str] = []
        self.refused = 0
        self.faults: Counter[str] = Counter()

    # Load.

    async def submit_for_ever(self) -> None:
        number = 0
        while True:
            number += 1
            try:
                record = (await submit_skill(f"skill-{number}", "slow")).submission
            except PlatformError:
                self.refused += 1
            else:
                assert record is not None
                self.accepted.append(record.id)
            await asyncio.sleep(EVERY_S)

    # Faults.

    async def kill_a_worker(self) -> None:
        victim = self.alive.pop(self.chance.randrange(len(self.alive)))
        await victim.kill()
        self.alive.append(await self.workers.start())

    async def kill_postgres(self) -> None:
        await self._restart(self.servers.postgres)

    async def kill_nats(self) -> None:
        await self._restart(self.servers.nats)

    async def _restart(self, server: "postgres.Server | nats.Server") -> None:
        await asyncio.to_thread(server.stop, kill=True)
        await asyncio.sleep(DOWN_S)
        await asyncio.to_thread(server.start)

    async def cut_the_network(self) -> None:
        self.proxy.refusing = True
        self.proxy.cut()
        await asyncio.sleep(DOWN_S)
        self.proxy.refusing = False

    async def stall_the_network(self) -> None:
        self.proxy.stall()
        await asyncio.sleep(DOWN_S)
        self.proxy.flow()

    async def half_close_the_network(self) -> None:
        self.proxy.half_close()
        await asyncio.sleep(DOWN_S)

    async def suffer(self, seconds: float, names: tuple[str, ...]) -> None:
        """Every fault in turn at first, so that a short run has had each; then by chance."""
        end = time.monotonic() + seconds
        first = list(names)
        # A death of a worker is the commonest of faults, and the others leave little time for it.
        often = [*names, *([WORKER_KILLED] * len(names) if WORKER_KILLED in names else ())]
        while time.monotonic() < end or first:
            await asyncio.sleep(self.chance.uniform(0.3, 1.5))
            name = first.pop(0) if first else self.chance.choice(often)
            await FAULTS[name](self)
            self.faults[name] += 1
            await self._replace_the_dead()

    async def _replace_the_dead(self) -> None:
        """A supervisor starts again what could not start without its store; what is up must stay up."""
        for worker in [one for one in self.alive if not one.running]:
            said = worker.log.read_text("utf-8")
            assert "vskill-platform is up" not in said, f"a running worker ended by itself:\n{said[-4000:]}"
            self.alive.remove(worker)
            self.faults[STARTED_AGAIN] += 1
            self.alive.append(await self.workers.start())

    # The account.

    async def settle(self) -> float:
        """Wait until nothing is owed; how long it took."""

        async def quiet() -> bool:
            await self._replace_the_dead()
            try:
                health = await queue_health()
            except PlatformError:
                return False
            return not health.violations and health.counts.active == 0

        return await until(quiet, QUIET_WITHIN_S, "something is still owed")

    async def account(self, seconds: float, quiet_after_s: float) -> Account:
        records = [await get_submission(number) for number in self.accepted]
        for record in records:
            await check(record)
        took = sorted((record.updated_at - record.created_at) / 1000 for record in records)
        return Account(
            seconds=round(seconds, 1),
            seed=self.seed,
            faults=dict(sorted(self.faults.items())),
            accepted=len(records),
            refused=self.refused,
            states=dict(sorted(Counter(record.state.value for record in records).items())),
            interrupted=sum(record.attempts.interrupted for record in records),
            quiet_after_s=round(quiet_after_s, 1),
            median_s=round(took[len(took) // 2], 2),
            worst_s=round(took[-1], 2),
        )


FAULTS: dict[str, Callable[[World], Awaitable[None]]] = {
    WORKER_KILLED: World.kill_a_worker,
    "PostgreSQL killed": World.kill_postgres,
    "NATS killed": World.kill_nats,
    "network cut": World.cut_the_network,
    "network stalled": World.stall_the_network,
    "network half-closed": World.half_close_the_network,
}


async def check(record: Submission) -> None:
    """It ended, or waits for a person; its history has no gap; what it published, it published once."""
    assert record.state.terminal or record.state is State.NEEDS_REVIEW, (record.id, record.state)
    runs = [await get_run(record.id, number) for number in range(1, record.run + 1)]
    for run in runs:
        check_history(run)
        published = [event for event in run.history if event.to is State.PUBLISHED]
        assert len(published) <= 1, f"{record.id} was published twice"
    if record.state is State.PUBLISHED:
        assert record.published is not None
        skill = await get_skill(record.published.removeprefix("skill:"))
        assert len(skill.versions) == 1, f"{skill.canonical} has two versions of one content"
        assert skill.current_digest == record.digest


class Servers(msgspec.Struct, frozen=True):
    """Those that may be killed."""

    postgres: postgres.Server
    nats: nats.Server


@asynccontextmanager
async def servers() -> AsyncIterator[Servers]:
    started = Servers(
        await asyncio.to_thread(lambda: postgres.Server(durable=True)), await asyncio.to_thread(nats.Server)
    )
    try:
        yield started
    finally:
        await asyncio.to_thread(started.postgres.remove)
        await asyncio.to_thread(started.nats.remove)


@asynccontextmanager
async def world(folder: Path, seed: int) -> AsyncIterator[World]:
    """Everything up and running; whatever was started ends with it."""
    async with servers() as running:
        proxy = Proxy(running.postgres.port)
        await proxy.start()
        store = await postgres.new_database(running.postgres)
        settings = Settings(data_dir=str(folder), store=store, broker=running.nats.url)
        through = urlsplit(store)._replace(netloc=f"postgres@127.0.0.1:{proxy.port}").geturl()
        try:
            async with (
                env_for(settings) as env,
                workers_on(
                    settings,
                    folder,
                    VSKILL_STORE=through,
                    VSKILL_BROKER=running.nats.url,
                    TEST_SCAN_S="0.05-0.4",
                ) as workers,
            ):
                with active_env(env):
                    made = World(env, workers, proxy, running, seed)
                    made.alive = [await workers.start() for _ in range(WORKERS)]
                    for worker in made.alive:
                        await worker.until_up(30)
                    yield made
        finally:
            await proxy.stop()


async def play(folder: Path, seconds: float, seed: int, names: tuple[str, ...] = tuple(FAULTS)) -> Account:
    """Submit and break things for so long; then the account, or the assertion that failed."""
    async with world(folder, seed) as made:
        began = time.monotonic()
        load = asyncio.create_task(made.submit_for_ever())
        await made.suffer(seconds, names)
        ended = time.monotonic()
        load.cancel()
        await asyncio.gather(load, return_exceptions=True)
        quiet = await made.settle()
        assert made.accepted, "nothing was submitted"
        return await made.account(ended - began, quiet)
