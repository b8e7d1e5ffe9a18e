"""Where a run works: one temporary folder, and the environments and filled stores that the benchmarks share.

Environments come from `bootstrap`, on the event loop and with the tuning that a real process has, so that what
is measured is what an operator gets.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import count, islice
from pathlib import Path
from typing import Any, TypeVar

from bench.measure import PATIENCE_S
from bench.records import submission_puts
from bench.scale import Scale
from vskill_platform.bootstrap import env_for
from vskill_platform.cli.process import run_async
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.observing.logs import configure_logging
from vskill_platform.settings import Settings
from vskill_platform.worker_context import Env

T = TypeVar("T")

#: Records of one commit while a store is filled, and commits that are under way: one is made while another is written.
_CHUNK = 5_000
_FILLERS = 2


class Workshop:
    """A folder and a scale; filled stores are made once and kept for the run."""

    def __init__(self, folder: Path, scale: Scale, say: Callable[[str], None]) -> None:
        self.folder = folder
        self.scale = scale
        self.say = say
        self._numbers = count(1)
        self._filled: dict[str, Path] = {}

    def new_file(self) -> Path:
        """A place for a database of its own."""
        return self.folder / f"store-{next(self._numbers)}.db"

    @staticmethod
    def run(work: Coroutine[Any, Any, T]) -> T:
        """Run in an event loop of the product's kind; what hangs ends with an error."""
        return run_async(asyncio.wait_for(work, PATIENCE_S))

    def submissions(self, size: int) -> Path:
        """A store with so many submissions, of which `scale.stuck` are stuck."""
        return self.fill(
            f"{size:,} submissions", submission_puts(size, self.scale.stuck, SystemClock().now())
        )

    def fill(self, what: str, puts: Iterable[Put]) -> Path:
        if what not in self._filled:
            self.say(f"filling a store with {what}")
            path = self.new_file()
            run_async(fill(f"sqlite:{path}", self.folder, puts))
            self._filled[what] = path
        return self._filled[what]


@contextmanager
def open_workshop(scale: Scale, say: Callable[[str], None] = print) -> Iterator[Workshop]:
    """A workshop in a folder beside the project's files, on the disk that the product would use; removed after."""
    settings = Settings(log_level="error")
    configure_logging(settings)
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=Path.cwd()) as folder:
        yield Workshop(Path(folder), scale, say)


@asynccontextmanager
async def open_env(path: Path) -> AsyncIterator[Env]:
    """The product's environment on this file."""
    async with open_place(f"sqlite:{path}", path.parent) as env:
        yield env


@asynccontextmanager
async def open_place(place: str, folder: Path) -> AsyncIterator[Env]:
    """The product's environment on this store; blobs are in memory, since none are measured."""
    async with env_for(Settings(data_dir=str(folder), store=place, blobs="memory:")) as env:
        yield env


async def fill(place: str, folder: Path, puts: Iterable[Put]) -> None:
    """Through the store itself, so that fields, counts and terms are what they would be."""
    waiting = iter(puts)
    async with open_place(place, folder) as env:

        async def filler() -> None:
            while chunk := list(islice(waiting, _CHUNK)):
                await env.kv.commit(chunk)

        await asyncio.gather(*(filler() for _ in range(_FILLERS)))
