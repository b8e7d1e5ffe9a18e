"""A run as Markdown: what the terminal shows, and the parts of `docs/benchmarks.md`."""

from collections.abc import Iterator
from pathlib import Path

from bench.machine import Machine
from bench.results import Report, Table, readable
from bench.suite import BENCHES, Run

_HEAD = """# Benchmarks

Written by `make bench ARGS=--write-docs`; each part says when and where it was measured, and `--only NAME --write-docs`
measures one anew. Claims are ratios against peers and the raw engine within one run, on one disk: absolute figures say
more about the machine. Each figure is the median of its rounds with the least and the most of them, after one round
that does not count; rivals take turns. `python -m bench --only queue` runs one, `--quick` a smaller set.
"""

_DISTURBED = (
    "Other processes kept this machine busy during the run: absolute figures are far too low. Only ratios between "
    "figures of this run mean something; repeat it when it is idle."
)


def write_page(run: Run, page: Path) -> None:
    """Replace the parts of the page that this run has measured."""
    page.write_text(with_sections(page.read_text("utf-8") if page.exists() else "", run), "utf-8")


def with_sections(page: str, run: Run) -> str:
    """The page `docs/benchmarks.md` with what this run measured."""
    _, *old = f"\n{page}".split("\n## ")
    sections = {part.partition("\n")[0]: f"## {part}".rstrip("\n") for part in old}
    for report in run.reports:
        sections[report.name] = section(report, run)
    return "\n\n".join([_HEAD.rstrip("\n"), *(sections[name] for name in BENCHES if name in sections)]) + "\n"


def section(report: Report, run: Run) -> str:
    return "\n\n".join(filter(None, _parts(report, run)))


def _parts(report: Report, run: Run) -> Iterator[str]:
    yield f"## {report.name}\n\n{report.title}."
    yield f"{run.day}: {_machine_line(run.machine)}{f' **{_DISTURBED}**' if run.machine.disturbed else ''}"
    goals = (
        (
            one.name,
            f"{one.relation} {readable(one.limit)}{one.unit}",
            f"{readable(one.value)}{one.unit}",
            "met" if one.met else "not met",
        )
        for one in report.goals
    )
    yield _table(Table(("goal", "must", "measured", ""), tuple(goals)))
    yield from map(_table, report.tables)
    said = {row[0] for table in report.tables for row in table.rows}
    figures = (
        (one.name, f"{readable(one.median)} {one.unit}", one.spread)
        for one in report.figures
        if one.name not in said
    )
    yield _table(Table(("figure", "median", "least to most"), tuple(figures)))
    yield "\n".join(f"- {note}" for note in report.notes)


def _table(table: Table) -> str:
    """Empty where it has no rows."""
    lines = (table.columns, ("---",) * len(table.columns), *table.rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) if table.rows else ""


def _machine_line(machine: Machine) -> str:
    median, least, most = machine.fsync_us
    return (
        f"{machine.cores} cores ({machine.cpu}), {machine.system}, Python {machine.python}, SQLite {machine.sqlite}; "
        f"writing and flushing 4 KB takes {median:.0f} µs ({least:.0f} to {most:.0f}); "
        f"load at the start {machine.load_before}."
    )
