"""`python -m bench.scaling`: a backlog for every setup in every round, on two servers that all share."""

from functools import partial

import click
import msgspec

from bench.command import end, measured
from bench.results import Report
from bench.scale import FULL
from bench.scaling.backlog import Servers, measure
from bench.scaling.outcome import SETUPS, Sample, Setup, report
from bench.workshop import Workshop
from tests.support import nats, postgres
from vskill_platform.cli.process import run_async


class Size(msgspec.Struct, frozen=True):
    """How many jobs, and how often."""

    jobs: int = 1_000
    rounds: int = 3


QUICK = Size(jobs=300, rounds=1)


def run(size: Size, workshop: Workshop) -> Report:
    servers = Servers(postgres.Server(durable=True), nats.Server())
    try:
        samples: dict[Setup, list[Sample]] = {setup: [] for setup in SETUPS}
        for number in range(size.rounds):
            for setup, taken in samples.items():
                taken.append(run_async(measure(servers, setup, size.jobs, workshop.folder)))
                workshop.say(f"round {number + 1}, {setup}: {taken[-1]}")
        return report(size.jobs, samples)
    finally:
        servers.postgres.remove()
        servers.nats.remove()


@click.command()
@click.option("--quick", is_flag=True, help="Fewer jobs, one round.")
@click.option("--rounds", type=click.IntRange(1), help="How often each is measured.")
@click.option("--jobs", type=click.IntRange(10), help="How many jobs each time.")
def main(*, quick: bool, rounds: int | None, jobs: int | None) -> None:
    """Measure what a job costs with one and with several processes."""
    size = QUICK if quick else Size()
    size = msgspec.structs.replace(size, rounds=rounds or size.rounds, jobs=jobs or size.jobs)
    end(measured({"scaling": partial(run, size)}, FULL), quick=quick)


if __name__ == "__main__":
    main()
