"""Every benchmark, by name, and a whole run of them."""

import time
from collections.abc import Callable, Mapping

import msgspec

from bench import content, door, path, queue, reads, scaling, scanner, search, webs
from bench.machine import Machine, describe
from bench.results import Report
from bench.scale import Scale
from bench.workshop import Workshop, open_workshop

Bench = Callable[[Workshop], Report]

#: Those that start processes come first, so that no earlier part's memory can disturb them.
BENCHES: dict[str, Bench] = {
    "path": path.run,
    "queue": queue.run,
    "scale": scaling.run,
    "door": door.run,
    "webs": webs.run,
    "content": content.run,
    "reads": reads.run,
    "search": search.run,
    "scanner": scanner.run,
}


class Run(msgspec.Struct, frozen=True):
    """What one run found, and where."""

    machine: Machine
    reports: tuple[Report, ...]
    #: When it began, in UTC.
    day: str

    @property
    def all_met(self) -> bool:
        return all(goal.met for report in self.reports for goal in report.goals)


def run_suite(benches: Mapping[str, Bench], scale: Scale, say: Callable[[str], None]) -> Run:
    """All of them one after the other, in one workshop."""
    with open_workshop(scale, say) as workshop:
        machine, day = describe(workshop.folder), time.strftime("%Y-%m-%d", time.gmtime())
        reports = []
        for name, bench in benches.items():
            say(f"measuring {name}")
            began = time.monotonic()
            reports.append(bench(workshop))
            say(f"{name} took {time.monotonic() - began:.1f} s")
        return Run(machine, tuple(reports), day)
