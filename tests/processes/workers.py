"""Starting, killing and watching real worker processes. Every process that a test starts ends with the test."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.compiled_rules import keep_compiled_rules
from tests.support.lifetimes import start_async
from tests.support.patience import PATIENCE_S
from tests.support.system_reads import get_submission
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
SLOW_WORKER = (str(ROOT / "tests" / "processes" / "slow_worker.py"),)
#: The product's own command, with nothing changed.
REAL_WORKER = ("-m", "vskill_platform", "worker")


class WorkerProcess:
    """One process that a test started."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.process = process
        self.log = log

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process.returncode is None

    async def kill(self) -> None:
        """`kill -9`: nothing in the process hears of it."""
        await self._signal(signal.SIGKILL)

    async def terminate(self) -> int:
        """SIGTERM; the exit code."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._signal(signal.SIGTERM)

    async def _signal(self, number: signal.Signals) -> int:
        if self.running:
            os.kill(self.pid, number)
        return await self.process.wait()

    async def until_up(self) -> None:
        """Wait until it says that its environment is open."""
        await until(lambda: _said(self, "vskill-platform is up"), PATIENCE_S, f"worker {self.pid} is not up")


async def _said(worker: WorkerProcess, words: str) -> bool:
    if not worker.running:
        raise AssertionError(f"a worker ended by itself:\n{worker.log.read_text('utf-8')}")
    return words in worker.log.read_text("utf-8")


class Workers:
    """The processes of one test, on one SQLite file."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self._folder = folder
        self.variables = dict(variables)
        self.started: list[WorkerProcess] = []

    async def start(self, command: tuple[str, ...] = SLOW_WORKER, **variables: str) -> WorkerProcess:
        return await self._start(sys.executable, *command, **variables)

    async def start_shell(self, script: str, **variables: str) -> WorkerProcess:
        """What the shell becomes at the end of the script."""
        return await self._start("sh", "-c", script, **variables)

    async def _start(self, *command: str, **variables: str) -> WorkerProcess:
        log = self._folder / f"worker-{len(self.started)}.log"
        with log.open("wb") as output:
            process = await start_async(
                *command,
                stdout=output,
                stderr=output,
                cwd=self._folder,
                env={**self.variables, **variables},
            )
        worker = WorkerProcess(process, log)
        self.started.append(worker)
        return worker

    async def end(self) -> None:
        for worker in self.started:
            await worker.kill()


@asynccontextmanager
async def workers_on(settings: Settings, folder: Path, **variables: str) -> AsyncIterator[Workers]:
    """Workers that share the store of these settings; whatever still runs at the end is killed."""
    given = {
        "PATH": os.environ.get("PATH", ""),
        "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))),
        "VSKILL_DATA_DIR": settings.data_dir,
        "VSKILL_STORE": settings.store,
        "NO_COLOR": "1",
        **{name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")},
        **variables,
    }
    await asyncio.to_thread(keep_compiled_rules, Path(settings.data_dir))
    workers = Workers(folder, given)
    try:
        yield workers
    finally:
        await workers.end()


async def until(check: Callable[[], Awaitable[bool]], within_s: float, otherwise: str) -> float:
    """Look again and again until it holds; how many seconds it took."""
    began = time.monotonic()
    while not await check():
        assert time.monotonic() - began < within_s, otherwise
        await asyncio.sleep(0.02)
    return time.monotonic() - began


async def until_record(submission_id: str, check: Callable[[Submission], bool]) -> Submission:
    """Wait until the record is as wanted; the record."""
    found: list[Submission] = []

    async def look() -> bool:
        found[:] = [await get_submission(submission_id)]
        return check(found[0])

    await until(look, PATIENCE_S, f"{submission_id} did not get there")
    return found[0]
