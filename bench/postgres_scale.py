"""`python -m bench.postgres_scale`: the queue page, stats, stuck, search and list in PostgreSQL among 10,000 and among
1,000,000 submissions, in one run, and the query plans that show why the second takes hardly longer.

The server is a real one, from the package that the tests use. Both databases are filled first (several minutes at
full size); then each question is asked of both in turns, through the application in this process.
"""

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import asyncpg
import click
import msgspec

from bench.command import end, measured
from bench.machine import Machine
from bench.postgres_fill import check, fill, send_waiting
from bench.postgres_plans import Plans, explain, to_markdown
from bench.postgres_questions import Place, Question, questions
from bench.postgres_records import PER_SKILL, Drafts, make_drafts, records
from bench.results import Figure, Report, at_most
from bench.scale import FULL
from bench.workshop import Workshop
from tests.support import postgres
from vskill_platform.bootstrap import env_for
from vskill_platform.cli.process import run_async
from vskill_platform.clock import SystemClock
from vskill_platform.settings import Settings

DOCS = Path(__file__).parent.parent / "docs" / "reference" / "query-plans.md"
MOST = 3.0
_MS = 1000


class Size(msgspec.Struct, frozen=True):
    """How large both databases are, and how often each question is asked."""

    small: int = 10_000
    large: int = 1_000_000
    stuck: int = 100
    rounds: int = 25


QUICK = Size(large=100_000, rounds=9)


class StandingClock:
    """The time at which both databases were filled: what was fresh then stays so, however long filling takes."""

    def __init__(self, at: int) -> None:
        self._at = at
        self._system = SystemClock()

    def now(self) -> int:
        return self._at

    def monotonic(self) -> float:
        return self._system.monotonic()

    def new_id(self) -> str:
        return self._system.new_id()


class Outcome(msgspec.Struct, frozen=True):
    """What a run found."""

    report: Report
    plans: Plans


async def measure(size: Size, folder: Path, say: Callable[[str], None]) -> Outcome:
    """Fill both and check them, ask in turns, explain."""
    server = postgres.Server(settings=("max_wal_size=8GB", "jit=off"))
    try:
        async with AsyncExitStack() as stack:
            now = SystemClock().now()
            drafts = await make_drafts()
            small, large = [
                await stack.enter_async_context(_filled(server, drafts, count, size.stuck, now, folder, say))
                for count in (size.small, size.large)
            ]
            return await ask_both(size, small, large, say)
    finally:
        server.remove()


@asynccontextmanager
async def _filled(
    server: postgres.Server,
    drafts: Drafts,
    count: int,
    stuck: int,
    now: int,
    folder: Path,
    say: Callable[[str], None],
) -> AsyncIterator[Place]:
    location = await postgres.new_database(server)
    settings = Settings(data_dir=str(folder), store=location, blobs="memory:", rate_limits="off")
    async with env_for(settings, clock=StandingClock(now)) as env:
        say(f"filling {count:,} submissions")
        began = time.monotonic()
        counted = await fill(location, records(drafts, count, stuck, now), now)
        await send_waiting(env)
        await check(env, location, counted)
        say(f"filled and checked after {time.monotonic() - began:.0f} s: {await _sizes(location)}")
        yield Place(env, count, now)


async def _sizes(location: str) -> str:
    connection = await asyncpg.connect(location)
    try:
        rows, table, all_of_it = await connection.fetchrow(
            "SELECT (SELECT count(*) FROM records), pg_table_size('records'), pg_database_size(current_database())"
        )
    finally:
        await connection.close()
    return f"{rows:,} records, {table / 1e6:,.0f} MB without and {all_of_it / 1e6:,.0f} MB with indexes"


async def ask_both(size: Size, small: Place, large: Place, say: Callable[[str], None]) -> Outcome:
    say("measuring")
    pairs = list(zip(await questions(small), await questions(large), strict=True))
    samples = {one.name: await _in_turns(one, other, size.rounds) for one, other in pairs}
    plans = {
        one.name: (await explain(small.env, one), await explain(large.env, other))
        for one, other in pairs
        if one.because
    }
    because = {one.name: one.because for one, _ in pairs}
    return Outcome(_report(size, samples), Plans(size.small, size.large, plans, because))


async def _in_turns(small: Question, large: Question, rounds: int) -> tuple[list[float], list[float]]:
    """Milliseconds of each; the first ones do not count, since a server plans anew while a statement is new."""
    taken: tuple[list[float], list[float]] = ([], [])
    for number in range(-8, rounds):
        for question, samples in zip((small, large), taken, strict=True):
            began = time.perf_counter()
            await question.ask()
            if number >= 0:
                samples.append((time.perf_counter() - began) * _MS)
    return taken


def _report(size: Size, samples: Mapping[str, tuple[list[float], list[float]]]) -> Report:
    figures, goals = [], []
    for name, taken in samples.items():
        small, large = (
            Figure.of(f"{name}, among {count:,}", "ms", one)
            for count, one in zip((size.small, size.large), taken, strict=True)
        )
        figures += [small, large]
        goals.append(
            at_most(f"{name}: among {size.large:,} ÷ among {size.small:,}", large.median / small.median, MOST)
        )
    return Report(
        name="postgres_scale",
        title=f"PostgreSQL with {size.small:,} submissions and {size.small // PER_SKILL:,} skills, and with "
        f"{size.large:,} and {size.large // PER_SKILL:,}",
        figures=tuple(figures),
        goals=tuple(goals),
        notes=("Each answer is made anew: nothing is kept from the one before.",),
    )


def shown_table(report: Report) -> str:
    """One line for each question: both medians with their spread, and the ratio."""
    lines = ["| question | among few, ms | among many, ms | ratio |", "|---|---|---|---|"]
    for small, large, goal in zip(report.figures[::2], report.figures[1::2], report.goals, strict=True):
        name = small.name.rpartition(", among ")[0]
        cells = (f"{one.median:.1f} ({one.least:.1f} to {one.most:.1f})" for one in (small, large))
        lines.append(f"| {name} | {' | '.join(cells)} | {goal.value:.2f} |")
    return "\n".join(lines)


def shown_machine(machine: Machine) -> str:
    busy = " Other processes kept it busy meanwhile." if machine.disturbed else ""
    return (
        f"Measured on {machine.cores} cores ({machine.cpu}), {machine.system}, Python {machine.python}.{busy}"
    )


@click.command()
@click.option("--quick", is_flag=True, help="100,000 submissions instead of 1,000,000.")
@click.option("--write-docs", is_flag=True, help="Write docs/reference/query-plans.md from this run.")
def main(*, quick: bool, write_docs: bool) -> None:
    """Ask PostgreSQL the same questions among few and among many records."""
    if write_docs and quick:
        raise click.UsageError("--write-docs needs a whole run: leave out --quick")
    size = QUICK if quick else Size()
    found: list[Outcome] = []

    def bench(workshop: Workshop) -> Report:
        found.append(run_async(measure(size, workshop.folder, workshop.say)))
        return found[-1].report

    run = measured({"postgres_scale": bench}, FULL)
    if write_docs:
        page = to_markdown(found[0].plans, shown_machine(run.machine), shown_table(found[0].report))
        DOCS.write_text(page, "utf-8")
    end(run, quick=quick)


if __name__ == "__main__":
    main()
