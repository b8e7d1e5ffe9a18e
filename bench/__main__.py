"""`python -m bench`: run the benchmarks, show what they found, and end with 1 where a goal is not met."""

import sys
from pathlib import Path

import click
import msgspec
from rich.console import Console

from bench.render import show, to_json, write_page
from bench.scale import FULL, QUICK
from bench.suite import BENCHES, Run, run_suite

DOCS = Path(__file__).parent.parent / "docs" / "benchmarks.md"


@click.command()
@click.option("--quick", is_flag=True, help="Smaller sizes: under a minute instead of several.")
@click.option(
    "--only", "names", multiple=True, type=click.Choice(list(BENCHES)), help="Run this one (repeatable)."
)
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures here."
)
@click.option("--write-docs", is_flag=True, help="Write docs/benchmarks.md and its pictures from this run.")
@click.option(
    "--after",
    "before",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="With --only and --write-docs: the other parts are those of this earlier run's --json.",
)
def main(
    *, quick: bool, names: tuple[str, ...], json_file: Path | None, write_docs: bool, before: Path | None
) -> None:
    """Measure throughput and reads, as ratios within one run."""
    if write_docs and (quick or (names and before is None)):
        raise click.UsageError(
            "--write-docs needs a whole run: leave out --quick, and --only without --after"
        )
    progress = Console(stderr=True)
    run = run_suite(names or BENCHES, QUICK if quick else FULL, lambda text: progress.print(f"bench: {text}"))
    show(run, Console())
    if before is not None:
        run = msgspec.json.decode(before.read_bytes(), type=Run).followed_by(run)
    if json_file is not None:
        json_file.write_bytes(to_json(run))
    if write_docs:
        write_page(run, DOCS)
    sys.exit(0 if run.all_met else 1)


if __name__ == "__main__":
    main()
