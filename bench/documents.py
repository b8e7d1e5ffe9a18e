"""Documents about the whole registry: what `/marketplace.json`, the discovery index and the sitemap cost a web process
when it makes one first, and when it has kept it. Each is asked of a process of its own, so that its memory is its own.
"""

import asyncio
import statistics
import subprocess
import sys
import time
from pathlib import Path

import msgspec
from starlette.types import ASGIApp

from bench.measure import PATIENCE_S
from bench.processes import most_resident_bytes, resident_bytes
from bench.results import Figure, Goal, Report, Table, at_least, at_most, readable
from bench.web_store import body_of, filled, opened
from bench.workshop import Workshop
from vskill_platform.cli.process import run_async
from vskill_platform.web.app import create_app

#: Each document, and what stands before every skill in it.
DOCUMENTS = {
    "/marketplace.json": b'"source":{"source"',
    "/.well-known/agent-skills/index.json": b'"digest":"sha256:',
    "/sitemap.xml": b"/skills/owner",
}
#: Answers that the figure of a kept one is the mean of.
KEPT_ANSWERS = 20
#: Who asks at once for a document that is not there yet.
BURST = 10
MOST_KEPT = 0.1
MOST_MEMORY_MB = 64.0
_MS, _MB = 1_000, 1_000_000

_KEPT_NOTE = (
    f"First: {BURST} ask at once, and the document is made once. Kept: it is asked for again, and the store says that "
    "no skill and no block has changed."
)
_EARLIER_NOTE = (
    "What an earlier release published does not say in its record how it is handed out in one piece, until the job "
    "`standing` has noted it: until then the first index of a process reads the content of each such skill."
)


class DocumentCost(msgspec.Struct, frozen=True):
    """What one document cost the process that was asked for it."""

    bytes: int
    skills: int
    first_ms: float
    first_cpu_ms: float
    kept_ms: float
    kept_cpu_ms: float
    memory_before_mb: float
    memory_after_mb: float
    memory_most_mb: float


def run(workshop: Workshop) -> Report:
    skills, rounds = workshop.scale.skills, workshop.scale.rounds
    store = filled(workshop, skills)
    costs = {path: [_ask_process(store, path) for _ in range(rounds)] for path in DOCUMENTS}
    figures = [
        Figure.of(f"{path}, {when}", "ms", [getattr(cost, f"{when}_ms") for cost in found])
        for path, found in costs.items()
        for when in ("first", "kept")
    ]
    goals = [goal for path, found in costs.items() for goal in _goals(path, found, skills)]
    return Report(
        name="documents",
        title=f"Documents about a whole registry of {skills:,} skills, each by a web process of its own",
        figures=tuple(figures),
        goals=tuple(goals),
        tables=(_table(costs),),
        notes=(_KEPT_NOTE, _EARLIER_NOTE),
    )


def _goals(path: str, found: list[DocumentCost], skills: int) -> tuple[Goal, ...]:
    kept, first = (_median(found, name) for name in ("kept_ms", "first_ms"))
    gained = _median(found, "memory_after_mb") - _median(found, "memory_before_mb")
    return (
        at_least(f"{path}: skills in it", _median(found, "skills"), skills, unit=" skills"),
        at_most(f"{path}: kept ÷ first", kept / first, MOST_KEPT),
        at_most(f"{path}: memory that it adds", max(0.0, gained), MOST_MEMORY_MB, unit=" MB"),
    )


def _table(costs: dict[str, list[DocumentCost]]) -> Table:
    columns = (
        "document",
        "bytes",
        "first: time",
        "first: CPU",
        "kept: time",
        "kept: CPU",
        "memory before",
        "memory after",
        "most memory",
    )
    rows = []
    for path, found in costs.items():
        times = [
            f"{readable(_median(found, name))} ms"
            for name in ("first_ms", "first_cpu_ms", "kept_ms", "kept_cpu_ms")
        ]
        memory = [
            f"{_median(found, name):.0f} MB"
            for name in ("memory_before_mb", "memory_after_mb", "memory_most_mb")
        ]
        rows.append((path, f"{_median(found, 'bytes'):,.0f}", *times, *memory))
    return Table(columns, tuple(rows))


def _median(found: list[DocumentCost], name: str) -> float:
    return float(statistics.median(getattr(cost, name) for cost in found))


# The process that is asked.


def _ask_process(store: Path, path: str) -> DocumentCost:
    root = Path(__file__).parent.parent
    command = [sys.executable, "-m", "bench.documents", str(store), path]
    done = subprocess.run(command, cwd=root, capture_output=True, check=True, timeout=PATIENCE_S)
    return msgspec.json.decode(done.stdout, type=DocumentCost)


async def measure(store: Path, path: str) -> DocumentCost:
    async with opened(store) as env:
        app = create_app(env)
        # What every process loads with its first answer is not part of the document.
        await body_of(app, "/api/v1/skills?limit=1")
        before = resident_bytes()
        clock, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(_ask(app, path) for _ in range(BURST)))
        first, first_cpu = time.perf_counter() - clock, time.process_time() - cpu
        clock, cpu = time.perf_counter(), time.process_time()
        for _ in range(KEPT_ANSWERS):
            await _ask(app, path)
        kept, kept_cpu = time.perf_counter() - clock, time.process_time() - cpu
        after = resident_bytes()
        body = await body_of(app, path)
    return DocumentCost(
        bytes=len(body),
        skills=body.count(DOCUMENTS[path]),
        first_ms=first * _MS,
        first_cpu_ms=first_cpu * _MS,
        kept_ms=kept / KEPT_ANSWERS * _MS,
        kept_cpu_ms=kept_cpu / KEPT_ANSWERS * _MS,
        memory_before_mb=before / _MB,
        memory_after_mb=after / _MB,
        memory_most_mb=most_resident_bytes() / _MB,
    )


async def _ask(app: ASGIApp, path: str) -> None:
    """An answer that is not kept here, since its copy would count as the process's."""
    await body_of(app, path)


if __name__ == "__main__":
    cost = run_async(measure(Path(sys.argv[1]), sys.argv[2]))
    sys.stdout.buffer.write(msgspec.json.encode(cost))
