"""The processes of a run: web processes behind a stretch of network each, and workers with clocks that can be moved. A
supervisor starts again what was killed; a process that was up and ended by itself fails the run."""

import asyncio
import itertools
import random
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.chaos.proxy import Proxy
from tests.chaos.skewed import SHIFT
from tests.processes.workers import SLOW_WORKER, WorkerProcess, Workers
from tests.support.compiled_rules import keep_compiled_rules
from tests.support.patience import PATIENCE_S

WEBS = 2
WORKERS = 3
SKEWED = str(Path(__file__).with_name("skewed.py"))
WEB = ("-m", "vskill_platform", "serve", "--web-only", "--port")
STARTED_AGAIN = "started again, since its store was away at the start"
#: How far clocks are from the truth.
SKEW_S = 20


class Web:
    """A web process at a fixed place, whoever runs there at the moment."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.way = Proxy(self.port)

    @property
    def command(self) -> tuple[str, ...]:
        return (*WEB, str(self.port))


class Crew:
    """Who works, and where."""

    def __init__(
        self, processes: Workers, folder: Path, chance: random.Random, *, shares_folder: bool
    ) -> None:
        self._processes = processes
        self._shares_folder = shares_folder
        # Python 3.11 keeps a module's compiled form also where the full disk took only its beginning, and every later
        # start from that checkout would end with it.
        processes.variables["PYTHONDONTWRITEBYTECODE"] = "1"
        self._folder = folder
        self._chance = chance
        self._numbers = itertools.count(1)
        self.webs = [Web() for _ in range(WEBS)]
        self.serving: dict[Web, WorkerProcess] = {}
        self.working: list[WorkerProcess] = []
        self.clocks: dict[WorkerProcess, Path] = {}
        self.faults: Counter[str] = Counter()

    @property
    def addresses(self) -> list[str]:
        """Where clients send to: through the network that can break."""
        return [f"http://127.0.0.1:{web.way.port}" for web in self.webs]

    @property
    def pids(self) -> list[int]:
        return [one.pid for one in (*self.serving.values(), *self.working) if one.running]

    async def start(self) -> None:
        for web in self.webs:
            await web.way.start()
            await self._start_web(web)
        for _ in range(WORKERS):
            await self._start_worker()
        for process in (*self.serving.values(), *self.working):
            await process.until_up()

    async def stop(self) -> None:
        for web in self.webs:
            await web.way.stop()

    async def _start_web(self, web: Web) -> None:
        self.serving[web] = await self._processes.start(web.command, **await self._home())

    async def _start_worker(self) -> None:
        clock = self._folder / f"clock-{next(self._numbers)}"
        clock.write_bytes(SHIFT.pack(0))
        worker = await self._processes.start((SKEWED, str(clock), *SLOW_WORKER), **await self._home())
        self.clocks[worker] = clock
        self.working.append(worker)

    async def _home(self) -> dict[str, str]:
        """A folder that no other process has, nor the one that took the place of this."""
        if self._shares_folder:
            return {}
        home = self._folder / f"home-{next(self._numbers)}"
        await asyncio.to_thread(keep_compiled_rules, home)
        return {"VSKILL_DATA_DIR": str(home)}

    # What can happen to them.

    async def kill_a_worker(self) -> None:
        victim = self.working.pop(self._chance.randrange(len(self.working)))
        await victim.kill()
        await self._start_worker()

    async def kill_a_web(self) -> None:
        web = self._chance.choice(self.webs)
        await self.serving[web].kill()
        await self._start_web(web)

    def move_clocks(self) -> None:
        """One worker is ahead, one behind; which ones is chance."""
        shifts = [0, SKEW_S, -SKEW_S]
        self._chance.shuffle(shifts)
        for worker, shift in zip(self.working, itertools.cycle(shifts), strict=False):
            with self.clocks[worker].open("r+b") as file:
                file.write(SHIFT.pack(shift * 1_000_000_000))

    async def replace_the_dead(self) -> None:
        """A supervisor starts again what could not start without its store; what is up must stay up."""
        for worker in [one for one in self.working if not one.running]:
            self._check_start(worker)
            self.working.remove(worker)
            await self._start_worker()
        for web, process in list(self.serving.items()):
            if not process.running:
                self._check_start(process)
                await self._start_web(web)

    def _check_start(self, process: WorkerProcess) -> None:
        said = process.log.read_text("utf-8")
        assert "vskill-platform is up" not in said, f"a running process ended by itself:\n{said[-4000:]}"
        self.faults[STARTED_AGAIN] += 1

    def check_logs(self) -> None:
        """Nobody met an error that is none of ours, even where it was survived."""
        for process in self._processes.started:
            said = process.log.read_text("utf-8", errors="replace")
            if "vskill-platform is up" in said:
                assert not unforeseen(said), unforeseen(said)


def unforeseen(log: str) -> list[str]:
    """The tracebacks of a log that do not end in an error of ours; of a chain, the last link counts."""
    found: list[str] = []
    for part in log.split("Traceback (most recent call last):\n")[1:]:
        lines = part.splitlines()
        end = next((number for number, line in enumerate(lines) if not line.startswith(" ")), len(lines) - 1)
        chained = any(" exception" in line and line.endswith(":") for line in lines[end + 1 : end + 3])
        if not chained and not lines[end].startswith("vskill_core.errors."):
            found.append("\n".join(lines[: end + 1]))
    return found


@asynccontextmanager
async def crew_on(
    processes: Workers, folder: Path, chance: random.Random, *, shares_folder: bool = True
) -> AsyncIterator[Crew]:
    crew = Crew(processes, folder, chance, shares_folder=shares_folder)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await crew.start()
        yield crew
    finally:
        await crew.stop()
