"""A run for people (a table in the terminal, a page of the documentation with its pictures) and for machines (JSON)."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from bench.machine import Machine
from bench.plots import plots_of, to_svg
from bench.results import Figure, Goal, Report, readable
from bench.results import Table as Words
from bench.suite import Run

_HEAD = """# Benchmarks

Written by `make bench ARGS=--write-docs`; the text below is what that run measured. Claims are ratios against peers
and the raw engine within one run, on one disk: absolute figures say more about the machine.
Each figure is the median of its rounds with the least and the most of them, after one round that does not count;
rivals take turns. `python -m bench --only queue` runs one, `--quick` a smaller set, `--json FILE` keeps the figures.
"""

#: Where the page finds its pictures.
IMAGES = "images"
#: How the part of the page about labelled skills begins; it is the last one.
LABELLED = "\n## labelled\n"

_DISTURBED = (
    "Other processes kept this machine busy during the run: absolute figures, and ratios to references that are not "
    "from this run, are far too low. Only ratios between figures of this run mean something; repeat it when it is idle."
)


def show(run: Run, console: Console) -> None:
    """Tables in the terminal."""
    console.print(_machine_line(run.machine))
    if run.machine.disturbed:
        console.print(_DISTURBED, style="bold yellow")
    for report in run.reports:
        # A line of its own: the title of a table would be folded at the table's width.
        console.print(f"{report.name}: {report.title}", style="italic")
        for table in report.tables:
            console.print(_words_table(table))
        console.print(_figures_table(report))
        console.print(_goals_table(report))
        for note in report.notes:
            console.print(f"  {note}", style="dim")


def to_json(run: Run) -> bytes:
    """Everything, with what was met."""
    plain = msgspec.to_builtins(run)
    for report, found in zip(plain["reports"], run.reports, strict=True):
        for goal, judged in zip(report["goals"], found.goals, strict=True):
            goal["met"], goal["wish_met"] = judged.met, judged.wish_met
    return msgspec.json.format(msgspec.json.encode(plain), indent=2)


def to_markdown(run: Run) -> str:
    """The page `docs/benchmarks.md`."""
    parts = [_HEAD, f"{_machine_line(run.machine)} Scale: {run.scale.name}.\n"]
    if run.again:
        parts.append(f"Measured again after the rest, in a run of their own: {', '.join(run.again)}.\n")
    if run.machine.disturbed:
        parts.append(f"**{_DISTURBED}**\n")
    for report in run.reports:
        parts += _section(report)
    return "\n".join(parts)


def pictures(run: Run) -> dict[str, str]:
    """Every picture of the page, by the name of its file."""
    return {
        f"bench-{plot.name}.svg": to_svg(plot, figures)
        for report in run.reports
        for plot, figures in plots_of(report)
    }


def write_page(run: Run, page: Path) -> None:
    """The page and its pictures; those of an earlier run that this one does not have go."""
    folder = page.parent / IMAGES
    folder.mkdir(exist_ok=True)
    found = pictures(run)
    for old in folder.glob("bench-*.svg"):
        if old.name not in found:
            old.unlink()
    for name, text in found.items():
        (folder / name).write_text(text, "utf-8")
    labelled = page.read_text("utf-8").partition(LABELLED)[2] if page.exists() else ""
    page.write_text(to_markdown(run) + (LABELLED + labelled if labelled else ""), "utf-8")


def write_labelled(run: Run, page: Path) -> None:
    """The last part of the page: labelled skills are not everybody's, so they are measured in a run of their own."""
    parts = [part for report in run.reports for part in _section(report, pictured=False)]
    disturbed = f" {_DISTURBED}" if run.machine.disturbed else ""
    written_by = "Written by `python -m bench.labelled FOLDER --write-docs`."
    parts.insert(1, f"{written_by} {_machine_line(run.machine)}{disturbed}\n")
    page.write_text(page.read_text("utf-8").partition(LABELLED)[0] + "\n" + "\n".join(parts), "utf-8")


def _section(report: Report, *, pictured: bool = True) -> Iterator[str]:
    yield f"## {report.name}\n\n{report.title}.\n"
    yield "| goal | must | measured | |\n|---|---|---|---|"
    for goal in report.goals:
        yield f"| {goal.name} | {_limit(goal)} | {readable(goal.value)}{goal.unit} | {verdict(goal)} |"
    for plot, _ in plots_of(report) if pictured else ():
        yield f"\n![{plot.title}]({IMAGES}/bench-{plot.name}.svg)"
    for table in report.tables:
        yield f"\n| {' | '.join(table.columns)} |\n|{'---|' * len(table.columns)}"
        yield from (f"| {' | '.join(row)} |" for row in table.rows)
    yield "\n| figure | median | least to most |\n|---|---|---|"
    for figure in _unsaid(report):
        yield f"| {figure.name} | {readable(figure.median)} {figure.unit} | {figure.spread} |"
    yield "".join(f"\n- {note}" for note in report.notes) + "\n"


def _unsaid(report: Report) -> list[Figure]:
    """The figures that no table has."""
    said = {row[0] for table in report.tables for row in table.rows}
    return [figure for figure in report.figures if figure.name not in said]


def _figures_table(report: Report) -> Table:
    table = Table("figure")
    for column in ("median", "least to most", "unit"):
        table.add_column(column, justify="right")
    for figure in _unsaid(report):
        table.add_row(figure.name, readable(figure.median), figure.spread, figure.unit)
    return table


def _words_table(words: Words) -> Table:
    table = Table(*words.columns)
    for row in words.rows:
        table.add_row(*row)
    return table


def _goals_table(report: Report) -> Table:
    table = Table(box=None)
    for column in ("goal", "must", "measured", ""):
        table.add_column(column)
    for goal in report.goals:
        style = "green" if goal.met else "bold red"
        table.add_row(
            goal.name, _limit(goal), f"{readable(goal.value)}{goal.unit}", verdict(goal), style=style
        )
    return table


def verdict(goal: Goal) -> str:
    """In words."""
    if not goal.met:
        return "not met"
    return {None: "met", True: "met, wish too", False: "met, wish not"}[goal.wish_met]


def _limit(goal: Goal) -> str:
    wish = "" if goal.wish is None else f", wish {goal.relation} {readable(goal.wish)}"
    return f"{goal.relation} {readable(goal.limit)}{goal.unit}{wish}"


def _machine_line(machine: Machine) -> str:
    median, least, most = machine.fsync_us
    return (
        f"{machine.cores} cores ({machine.cpu}), {machine.system}, Python {machine.python}, SQLite {machine.sqlite}; "
        f"writing and flushing 4 KB takes {median:.0f} µs ({least:.0f} to {most:.0f}); "
        f"load at the start {machine.load_before}."
    )
