"""One and two web processes of `serve --web N`, and one of another commit, each on a store filled by its own sources:
requests a second of the pages and answers that people ask for most, and the memory of all web processes."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import msgspec

from bench.door import Crowd, crowd
from bench.measure import PATIENCE_S
from bench.processes import ROOT, checked_out, family, memory_mb, start_server, table
from bench.results import Figure, Goal, Report, at_least
from bench.workshop import Workshop
from tools.browsing import environment_of

CHILD = Path(__file__).parent / "webs_child.py"
#: Clients that ask at once, each over one connection.
CLIENTS = 16
ONE, TWO = "web processes: 1", "web processes: 2"
ASKED = ("`/`", "`/skills`", "a skill's page", "search", "archive")
_NOTE = "Server and clients share the machine: with as many cores as processes, two of them cannot be twice as fast."


class Rival(msgspec.Struct, frozen=True):
    """Sources, how many processes of them answer, and the store that they filled."""

    source: Path
    python: str
    processes: int
    data: Path
    blobs: str
    store: str
    names: tuple[str, ...]

    @property
    def paths(self) -> dict[str, tuple[str, ...]]:
        word = self.names[3].rpartition("/")[2].partition("-")[0]
        pages = tuple(f"/skills/{name}" for name in self.names)
        archives = tuple(f"/api/v1/skills/{name}/archive" for name in self.names)
        answers = (("/",), ("/skills",), pages, (f"/api/v1/skills/search?q={word}",), archives)
        return dict(zip(ASKED, answers, strict=True))


def run(workshop: Workshop, before: str = "") -> Report:
    """`before` is a commit that is measured in turn with this one."""
    with ExitStack() as stack:
        ours = fill(workshop)
        rivals = {ONE: ours, TWO: msgspec.structs.replace(ours, processes=2)}
        if before:
            place = stack.enter_context(checked_out(before))
            workshop.say(f"installing what {before} needs")
            subprocess.run(["make", "--silent", "setup"], cwd=place, check=True)
            rivals[before] = fill(workshop, place, str(place / ".venv" / "bin" / "python"))
        return _compare(workshop, rivals, before)


def _compare(workshop: Workshop, rivals: dict[str, Rival], before: str) -> Report:
    samples: dict[tuple[str, str], list[float]] = {}
    memory: dict[str, list[float]] = {}
    for _ in range(workshop.scale.crowd_rounds):
        for name, rival in rivals.items():
            with serving(rival) as (port, pid):
                for what, paths in rival.paths.items():
                    workshop.run(crowd(port, 2, paths, 0.2))
                    found: Crowd = workshop.run(crowd(port, CLIENTS, paths, workshop.scale.crowd_s))
                    assert found.answered, f"{name} answers none of {paths[:2]}"
                    samples.setdefault((what, name), []).append(found.rate)
                held = sum(memory_mb(one) for one in family(pid, table()))
                memory.setdefault(name, []).append(held)
    rates = {key: Figure.of(f"{key[0]}, {key[1]}", "answers/s", taken) for key, taken in samples.items()}
    held_by = (Figure.of(f"memory, {name}", "MB", taken) for name, taken in memory.items())
    goals = tuple(_goals(rates, before))
    return Report("webs", "One and two web processes", (*rates.values(), *held_by), goals, (_NOTE,))


def _goals(rates: dict[tuple[str, str], Figure], before: str) -> Iterator[Goal]:
    for what in ASKED:
        two = rates[what, TWO].median
        yield at_least(f"{what}: two processes ÷ one", two / rates[what, ONE].median, 1.6)
        if before:
            yield at_least(f"{what}: two processes ÷ one of {before}", two / rates[what, before].median, 1.6)


def fill(workshop: Workshop, source: Path = ROOT, python: str = sys.executable) -> Rival:
    data = (workshop.folder / f"webs-{source.name}").absolute()
    data.mkdir(exist_ok=True)
    done = subprocess.run(
        [python, "-P", str(CHILD), str(data), str(min(1_000, workshop.scale.skills))],
        env={"PYTHONPATH": f"{source}:{source / 'src'}", "PATH": "/usr/local/bin:/usr/bin:/bin"},
        cwd=source,
        stdout=subprocess.PIPE,
        check=True,
        timeout=PATIENCE_S,
    )
    return Rival(source, python, 1, data, f"files:{data / 'blobs'}", **json.loads(done.stdout))


def serving(rival: Rival) -> AbstractContextManager[tuple[int, int]]:
    """The product's own command, once all of its processes answer: the port and the process."""
    settings = {"store": f"sqlite:{rival.store}", "blobs": rival.blobs, "log_level": "error"}
    environment = environment_of(rival.data, settings) | {"PYTHONPATH": str(rival.source / "src")}
    several = ("--web", str(rival.processes)) if rival.processes > 1 else ()
    options = ("serve", "--web-only", *several, "--port", "0")
    return start_server("vskill_platform", *options, environment=environment, python=rival.python)
