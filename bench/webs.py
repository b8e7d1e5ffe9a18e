"""One and two web processes of `serve --web N` on one filled store: requests a second of the pages and answers that
people ask for most, and the memory of all web processes."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from bench.catalogue import CONTENT, asked, filled
from bench.door import Crowd, crowd
from bench.processes import family, memory_mb, start_server, table
from bench.results import Figure, Goal, Report, at_least
from bench.workshop import Workshop
from tools.browsing import environment_of
from vskill_core.content import digest_of_files
from vskill_platform.bootstrap import env_for
from vskill_platform.domain.packed_content import pack
from vskill_platform.settings import Settings

#: Clients that ask at once, each over one connection.
CLIENTS = 16
PROCESSES = (1, 2)
_NOTE = "Server and clients share the machine: with as many cores as processes, two of them cannot be twice as fast."


def run(workshop: Workshop) -> Report:
    count = min(1_000, workshop.scale.skills)
    store = filled(workshop, count)
    data = workshop.folder / "webs"
    workshop.run(_keep_content(store, data))
    samples: dict[tuple[str, int], list[float]] = {}
    memory: dict[int, list[float]] = {}
    for _ in range(workshop.scale.crowd_rounds):
        for number in PROCESSES:
            with _serving(store, data, number) as (port, pid):
                for what, paths in _paths(count).items():
                    workshop.run(crowd(port, 2, paths, 0.2))
                    found: Crowd = workshop.run(crowd(port, CLIENTS, paths, workshop.scale.crowd_s))
                    samples.setdefault((what, number), []).append(found.rate)
                held = sum(memory_mb(one) for one in family(pid, table()))
                memory.setdefault(number, []).append(held)
    rates = {
        key: Figure.of(f"{key[0]}, web processes: {key[1]}", "answers/s", taken)
        for key, taken in samples.items()
    }
    return Report(
        name="webs",
        title="One and two web processes",
        figures=(
            *rates.values(),
            *(Figure.of(f"memory, web processes: {number}", "MB", taken) for number, taken in memory.items()),
        ),
        goals=tuple(_goals(rates, tuple(_paths(count)))),
        notes=(_NOTE,),
    )


def _goals(rates: dict[tuple[str, int], Figure], asked: tuple[str, ...]) -> Iterator[Goal]:
    for what in asked:
        yield at_least(f"{what}: two processes ÷ one", rates[what, 2].median / rates[what, 1].median, 1.6)


def _paths(count: int) -> dict[str, tuple[str, ...]]:
    names, word = asked(count)
    return {
        "`/`": ("/",),
        "`/skills`": ("/skills",),
        "a skill's page": tuple(f"/skills/{name}" for name in names),
        "search": (f"/api/v1/skills/search?q={word}",),
        "archive": tuple(f"/api/v1/skills/{name}/archive" for name in names),
    }


async def _keep_content(store: Path, data: Path) -> None:
    async with env_for(
        Settings(data_dir=str(data), store=f"sqlite:{store}", blobs=f"files:{data / 'blobs'}")
    ) as env:
        await env.blobs.put(digest_of_files(CONTENT), pack(CONTENT))


def _serving(store: Path, data: Path, number: int) -> AbstractContextManager[tuple[int, int]]:
    """The product's own command, once all of its processes answer: the port and the process."""
    settings = {"store": f"sqlite:{store}", "blobs": f"files:{data / 'blobs'}", "log_level": "error"}
    options = ("serve", "--web-only", "--web", str(number), "--port", "0")
    return start_server("vskill_platform", *options, environment=environment_of(data, settings))
