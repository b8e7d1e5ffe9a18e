"""What one job leaves behind for the next: jobs that each set a context variable and the worker environment, through
the real consumer, and beside it what ordinary ways of running jobs do. What other queues do stands in the table of
`bench.queue`."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from itertools import count

import msgspec

from bench.consuming import consuming, fill, until_empty
from bench.results import Figure, Report, at_most
from bench.workshop import Workshop, open_env
from vskill_platform.broker.contract import Batch, Message
from vskill_platform.env import Env
from vskill_platform.worker_context import get_worker_env, require_env, run_with_worker_env

_WORKERS = 10
#: One job in so many also looks from a thread.
_IN_THREAD = 20

_mark: ContextVar[str | None] = ContextVar("bench_mark", default=None)


def run(workshop: Workshop) -> Report:
    jobs = workshop.scale.jobs
    ours = workshop.run(leaks_through_consumer(workshop, jobs))
    figures = {
        "vskill-platform's consumer": ours,
        "a plain thread pool, 10 threads": leaks_through_pool(jobs),
        "asyncio workers that live on, 10 tasks": workshop.run(leaks_through_workers(jobs)),
    }
    return Report(
        name="context",
        title=f"{jobs:,} interleaved jobs that each set a context variable: how many saw another job's",
        figures=tuple(Figure.of(name, "leaks", [float(leaks)]) for name, leaks in figures.items()),
        goals=(at_most("leaks through the consumer", float(ours), 0.0, unit=" leaks"),),
        notes=(
            "Ours also sets the worker environment per job, and looks at both from tasks and threads.",
            "What other queues leave behind stands in the table of `queue`.",
        ),
    )


class _Marks:
    """A job that leaves its mark and counts the marks of others."""

    def __init__(self) -> None:
        self.leaks = 0
        self._numbers = count()

    def job(self) -> None:
        if _mark.get() is not None:
            self.leaks += 1
        _mark.set(f"job-{next(self._numbers)}")


async def leaks_through_consumer(workshop: Workshop, jobs: int) -> int:
    """Every way in which a job could see what is not its own."""
    watch = _Watch()
    over = asyncio.Event()

    async def handle(batch: Batch, env: Env) -> None:
        watch.expect(_mark.get(), None)
        watch.expect(get_worker_env(), None)
        await asyncio.gather(*(watch.job(message, env) for message in batch.messages))
        # Left behind on purpose: the next batch must not find it.
        _mark.set("batch")
        if watch.jobs >= jobs:
            over.set()

    async with open_env(workshop.new_file()) as env:
        await fill(env, jobs)
        async with consuming(env, handle):
            await over.wait()
            await until_empty(env)
    return watch.leaks


class _Watch:
    """Counts jobs and everything that they see and should not."""

    def __init__(self) -> None:
        self.jobs = 0
        self.leaks = 0

    def expect(self, found: object, expected: object) -> None:
        if found != expected:
            self.leaks += 1

    async def job(self, message: Message, env: Env) -> None:
        name = f"job-{message.delivery.id}"
        self.expect(_mark.get(), None)
        own = msgspec.structs.replace(env, worker_id=name)
        await run_with_worker_env(own, lambda: self._body(name, message.delivery.id))
        self.expect(get_worker_env(), None)
        self.jobs += 1

    async def _body(self, name: str, number: int) -> None:
        _mark.set(name)
        for _ in range(number % 4):
            await asyncio.sleep(0)
        self._look(name)
        if number % _IN_THREAD == 0:
            await asyncio.to_thread(self._look, name)
        _mark.set(name)

    def _look(self, name: str) -> None:
        self.expect(_mark.get(), name)
        self.expect(require_env().worker_id, name)


def leaks_through_pool(jobs: int) -> int:
    marks = _Marks()
    with ThreadPoolExecutor(_WORKERS) as pool:
        for _ in range(jobs):
            pool.submit(marks.job)
    return marks.leaks


async def leaks_through_workers(jobs: int) -> int:
    """Tasks that take one job after the other, as most asynchronous queues have them."""
    marks = _Marks()
    waiting: asyncio.Queue[Callable[[], None]] = asyncio.Queue()
    for _ in range(jobs):
        waiting.put_nowait(marks.job)

    async def worker() -> None:
        while not waiting.empty():
            waiting.get_nowait()()
            await asyncio.sleep(0)

    await asyncio.gather(*(worker() for _ in range(_WORKERS)))
    return marks.leaks
