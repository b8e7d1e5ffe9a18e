"""`python -m bench`: run the benchmarks, show what they found, and end with 1 where a full run misses a goal."""

from functools import partial
from pathlib import Path

import click

from bench import path
from bench.command import end, measured
from bench.render import to_json, write_page
from bench.scale import FULL, QUICK
from bench.suite import BENCHES

DOCS = Path(__file__).parent.parent / "docs" / "benchmarks.md"


@click.command()
@click.option("--quick", is_flag=True, help="Smaller sizes: under a minute instead of several.")
@click.option(
    "--only", "names", multiple=True, type=click.Choice(list(BENCHES)), help="Run this one (repeatable)."
)
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures here."
)
@click.option("--compared", default="", help="Measure this commit's path too, in turn with this one's.")
@click.option(
    "--write-docs", is_flag=True, help="Write what was measured into docs/benchmarks.md, and its pictures."
)
def main(
    *,
    quick: bool,
    names: tuple[str, ...],
    json_file: Path | None,
    compared: str,
    write_docs: bool,
) -> None:
    """Measure throughput and reads, as ratios within one run."""
    if write_docs and quick:
        raise click.UsageError("--write-docs is about the full sizes: leave out --quick")
    benches = BENCHES | {"path": partial(path.run, before=compared)}
    run = measured({name: benches[name] for name in names or benches}, QUICK if quick else FULL)
    if json_file is not None:
        json_file.write_bytes(to_json(run))
    if write_docs:
        write_page(run, DOCS)
    end(run, quick=quick)


if __name__ == "__main__":
    main()
