"""What every command of the benchmarks does: measure while it says how far it is, show what was found, and end with 1
where a goal of a full run is not met."""

import sys
from collections.abc import Mapping
from typing import NoReturn

from rich.console import Console

from bench.render import show
from bench.scale import Scale
from bench.suite import Bench, Run, run_suite

#: Of a file or a pipe: wider than any table, so that none is squeezed.
PIPE_WIDTH = 10_000


def console(*, stderr: bool = False) -> Console:
    """What prints: as wide as the terminal, or as what is printed where there is none."""
    out = sys.stderr if stderr else sys.stdout
    return Console(file=out, width=None if out.isatty() else PIPE_WIDTH)


def measured(benches: Mapping[str, Bench], scale: Scale) -> Run:
    """What these benchmarks found, as it is shown: progress on the standard error, tables on the standard output."""
    progress = console(stderr=True)
    run = run_suite(benches, scale, lambda text: progress.print(f"bench: {text}"))
    show(run, console())
    return run


def end(run: Run, *, quick: bool) -> NoReturn:
    if quick:
        console().print(
            "A quick look: the goals are about the full sizes, and smaller ones only hint at them."
        )
        sys.exit(0)
    sys.exit(0 if run.all_met else 1)
