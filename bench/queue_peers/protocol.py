"""What runs inside the process of one queue: an order comes in as JSON, jobs are counted and watched, and one line of
JSON goes out when the last has run.

Only the standard library is used, since the process may belong to an environment that has nothing of ours.
"""

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

#: A job that is killed in the middle would last this long.
HANG_S = 600.0

_mark: ContextVar[int | None] = ContextVar("bench_mark", default=None)


@dataclass(frozen=True)
class Order:
    """What a process is to do."""

    #: The module of this package.
    peer: str
    #: `drain` fills the queue and empties it, `fill` only fills it, `hang` works on jobs that never end.
    task: str
    #: Where the queue is: a file or the address of a server, fresh for this order.
    place: str
    #: A folder for whatever else it keeps.
    folder: str
    jobs: int = 1
    #: Where a job that hangs says that it began.
    file: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps(asdict(self))


class Work:
    """The jobs of one process: counts them, looks for what others left behind, and reports after the last."""

    def __init__(self, order: Order) -> None:
        self._jobs = order.jobs
        self._file = Path(order.file) if order.task == "hang" else None
        self._left = count(order.jobs - 1, -1)
        self._numbers = count(1)
        self._leaks = count(0)
        self._began = (0.0, 0.0)
        #: Called by the last job; a queue that also waits for its acknowledgements puts its own in place.
        self.on_last: Callable[[], object] = self.report

    def start(self) -> None:
        """The worker is set up, and takes its first job now."""
        gc.collect()
        self._began = (time.perf_counter(), time.process_time())

    def job(self) -> None:
        """Nothing, and a look at what the job before left in the context."""
        if self._file is not None:
            self._say_begun(self._file)
            time.sleep(HANG_S)
            return
        self._tick()

    async def job_async(self) -> None:
        if self._file is not None:
            self._say_begun(self._file)
            await asyncio.sleep(HANG_S)
            return
        self._tick()

    def _tick(self) -> None:
        if _mark.get() is not None:
            next(self._leaks)
        _mark.set(next(self._numbers))
        if next(self._left) == 0:
            self.on_last()

    @staticmethod
    def _say_begun(file: Path) -> None:
        with file.open("a") as lines:
            lines.write(f"{os.getpid()}\n")

    def report(self) -> None:
        """One line for whoever started this process, which ends here: what a queue does afterwards is not timed."""
        seconds = time.perf_counter() - self._began[0]
        cpu = time.process_time() - self._began[1]
        found = json.dumps({"seconds": seconds, "cpu": cpu, "leaks": next(self._leaks)})
        # Not by `print`, which a queue may have turned into a log.
        os.write(1, f"\n{found}\n".encode())
        os._exit(0)


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """On the fastest event loop that there is, whether the queue's own command would take it or not."""
    with asyncio.Runner(loop_factory=import_module("uvloop").new_event_loop) as runner:
        runner.run(coroutine)


def main(arguments: list[str]) -> None:
    order = Order(**json.loads(arguments[0]))
    module = import_module(f"bench.queue_peers.{order.peer}")
    if order.task in ("drain", "fill"):
        module.fill(order)
    if order.task != "fill":
        module.work(order, Work(order))


if __name__ == "__main__":
    main(sys.argv[1:])
