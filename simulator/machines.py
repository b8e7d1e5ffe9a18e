"""The simulated machines: each runs the real consumer, and some the real schedule, in a process that can crash, be
stopped in good order, and start again."""

import asyncio
from collections.abc import Sequence

from simulator.faults import Process
from simulator.plan import Fault
from simulator.world import World
from vskill_platform.queue.consumer import Handler, run_consumer
from vskill_platform.queue.jobs import Job
from vskill_platform.queue.schedule import run_schedule

#: A process that was asked to stop has ended after this long, in good weather.
STOP_S = 60


class Machine:
    """A place where worker processes follow each other."""

    def __init__(self, world: World, name: str, handler: Handler, jobs: Sequence[Job] | None) -> None:
        self._world = world
        self._name = name
        self._handler = handler
        self._jobs = jobs
        self._generation = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._stop = asyncio.Event()
        self._stopping = False
        self.process = Process(name, self._crashed)

    def start(self) -> None:
        self._generation += 1
        self._stopping = False
        self.process = self._world.new_process(f"{self._name}{self._generation}", self._crashed)
        env = self._world.env_for(self.process)
        self._stop = asyncio.Event()
        work = [run_consumer(env, self._stop, self._handler)]
        if self._jobs is not None:
            work.append(run_schedule(env, self._stop, self._jobs))
        self._tasks = [self._world.loop.create_task(one) for one in work]
        for task in self._tasks:
            task.add_done_callback(self._ended)

    async def stop(self) -> bool:
        """Ask it to stop, and wait; whether it did."""
        process, tasks = self.process, self._tasks
        if process.dead or self._stopping:
            return True
        self._stopping = True
        self._stop.set()
        await asyncio.wait(tasks, timeout=STOP_S)
        return process.dead or all(task.done() for task in tasks)

    async def restart(self) -> None:
        """Stopped in good order, away for a moment, and back."""
        process = self.process
        if process.dead or self._stopping:
            return
        self._world.weather.happened(Fault.STOPPED, process.name)
        ended = await self.stop()
        await self._world.check_stopped(process, ended=ended)
        await asyncio.sleep(self._world.rng.uniform(0, 10))
        if not process.dead:
            process.dead = True
            self.start()

    def _crashed(self) -> None:
        away = self._world.rng.uniform(0.2, 15 if self._world.weather.chaos else 2)
        self._world.loop.call_later(away, self.start)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and task.exception() is not None:
            self._world.broken("a process does not fall over", repr(task.exception()))
