"""`python -m bench`: run the benchmarks, show what they found, and end with 1 where a full run misses a goal."""

import sys
from functools import partial
from pathlib import Path

import click

from bench import path, webs
from bench.render import section, write_page
from bench.scale import FULL, QUICK
from bench.suite import BENCHES, run_suite

DOCS = Path(__file__).parent.parent / "docs" / "benchmarks.md"


@click.command()
@click.option("--quick", is_flag=True, help="Smaller sizes: some minutes instead of half an hour.")
@click.option(
    "--only", "names", multiple=True, type=click.Choice(list(BENCHES)), help="Run this one (repeatable)."
)
@click.option(
    "--compared", default="", help="Measure path and webs of this commit too, in turn with this one's."
)
@click.option("--write-docs", is_flag=True, help="Write what was measured into docs/benchmarks.md.")
def main(*, quick: bool, names: tuple[str, ...], compared: str, write_docs: bool) -> None:
    """Measure throughput and reads, as ratios within one run."""
    if write_docs and quick:
        raise click.UsageError("--write-docs is about the full sizes: leave out --quick")
    benches = BENCHES | {
        one: partial(run.run, before=compared) for one, run in (("path", path), ("webs", webs))
    }
    chosen = {name: benches[name] for name in names or benches}
    run = run_suite(chosen, QUICK if quick else FULL, lambda text: click.echo(f"bench: {text}", err=True))
    click.echo("\n\n".join(section(report, run) for report in run.reports))
    if write_docs:
        write_page(run, DOCS)
    if quick:
        click.echo("A quick look: the goals are about the full sizes, and smaller ones only hint at them.")
    sys.exit(0 if quick or run.all_met else 1)


if __name__ == "__main__":
    main()
