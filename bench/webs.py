"""One and two web processes of `serve --web N` on one filled store: requests a second of the pages and answers that
people ask for most, and the memory of all web processes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.catalogue import CONTENT, DETAILED, canonical_of, filled
from bench.door import Crowd, crowd
from bench.processes import ROOT, family, memory_mb, table
from bench.results import Figure, Goal, Report, at_least
from bench.workshop import Workshop
from vskill_core.content import digest_of_files, pack
from vskill_platform.bootstrap import env_for
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
                for what, paths in _asked(count).items():
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
        goals=tuple(_goals(rates, tuple(_asked(count)))),
        notes=(_NOTE,),
    )


def _goals(rates: dict[tuple[str, int], Figure], asked: tuple[str, ...]) -> Iterator[Goal]:
    for what in asked:
        yield at_least(f"{what}: two processes ÷ one", rates[what, 2].median / rates[what, 1].median, 1.6)


def _asked(count: int) -> dict[str, tuple[str, ...]]:
    names = [canonical_of(number) for number in range(min(DETAILED, count))]
    word = names[3].rpartition("/")[2].partition("-")[0]
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


@contextmanager
def _serving(store: Path, data: Path, number: int) -> Iterator[tuple[int, int]]:
    """The product's own command, once all of its processes answer: the port and the process."""
    given = {name: value for name, value in os.environ.items() if not name.startswith("VSKILL_")}
    given |= {
        "VSKILL_DATA_DIR": str(data),
        "VSKILL_STORE": f"sqlite:{store}",
        "VSKILL_BLOBS": f"files:{data / 'blobs'}",
    }
    command = [
        sys.executable,
        "-m",
        "vskill_platform",
        "serve",
        "--web-only",
        "--web",
        str(number),
        "--port",
        "0",
    ]
    variables = {**given, "VSKILL_RATE_LIMITS": "off", "VSKILL_LOG_LEVEL": "error", "COLUMNS": "200"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            address = next(line for line in process.stdout if "Address" in line)
            yield int(address.rpartition(":")[2].split()[0]), process.pid
        finally:
            process.terminate()
            process.stdout.read()
            process.wait()
