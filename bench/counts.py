"""Counts by state do not grow with the number of records: the engine keeps them in the same write."""

from functools import partial
from pathlib import Path

from bench.measure import take_turns, timed_calls
from bench.results import Figure, Report, at_most
from bench.workshop import Workshop, open_env
from vskill_platform.domain.audience import EVERYTHING
from vskill_platform.submission_store import count_submissions
from vskill_platform.worker_context import run_with_worker_env

_CALLS = 500


def run(workshop: Workshop) -> Report:
    sizes = (workshop.scale.small, workshop.scale.large)
    files = {f"count_submissions() among {size:,}": (workshop.submissions(size), size) for size in sizes}
    rivals = {name: partial(_count_us, workshop, *file) for name, file in files.items()}
    samples = take_turns(workshop.scale.rounds, rivals)
    small, large = (Figure.of(name, "µs", taken) for name, taken in samples.items())
    return Report(
        name="counts",
        title="Exact counts of submissions by state",
        figures=(small, large),
        goals=(at_most(f"among {sizes[1]:,} ÷ among {sizes[0]:,}", large.median / small.median, 3.0),),
    )


def _count_us(workshop: Workshop, path: Path, size: int) -> float:
    return workshop.run(_count(path, size)) * 1e6


async def _count(path: Path, size: int) -> float:
    async with open_env(path) as env:
        count = partial(count_submissions, audiences=EVERYTHING)
        counts = await run_with_worker_env(env, count)
        assert counts.total == size, f"{counts.total} counted of {size}"
        return await run_with_worker_env(env, lambda: timed_calls(_CALLS, count))
