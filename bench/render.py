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
from bench.suite import BENCHES, Run

_HEAD = """# Benchmarks

Written by `make bench ARGS=--write-docs`; each part says when and where it was measured, and `--only NAME --write-docs`
measures one anew. Claims are ratios against peers and the raw engine within one run, on one disk: absolute figures say
more about the machine. Each figure is the median of its rounds with the least and the most of them, after one round
that does not count; rivals take turns. `python -m bench --only queue` runs one, `--quick` a smaller set, `--json FILE`
keeps the figures. Labelled skills are not everybody's: `python -m bench.labelled FOLDER --write-docs` measures those.
"""

#: Where the page finds its pictures.
IMAGES = "images"
#: The order of the parts.
_ORDER = (*BENCHES, "labelled")

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
        if _unsaid(report):
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


def pictures(run: Run) -> dict[str, str]:
    """Every picture of the page, by the name of its file."""
    return {
        f"bench-{plot.name}.svg": to_svg(plot, figures)
        for report in run.reports
        for plot, figures in plots_of(report)
    }


def write_page(run: Run, page: Path) -> None:
    """The parts of this run, in place of those that the page has, and their pictures; pictures that the page shows no
    more go."""
    text = with_sections(page.read_text("utf-8") if page.exists() else "", run)
    page.write_text(text, "utf-8")
    folder = page.parent / IMAGES
    folder.mkdir(exist_ok=True)
    for name, picture in pictures(run).items():
        (folder / name).write_text(picture, "utf-8")
    for old in folder.glob("bench-*.svg"):
        if f"]({IMAGES}/{old.name})" not in text:
            old.unlink()


def with_sections(page: str, run: Run) -> str:
    """The page `docs/benchmarks.md` with what this run measured."""
    _, *old = f"\n{page}".split("\n## ")
    sections = {part.partition("\n")[0]: f"## {part}".rstrip("\n") for part in old}
    for report in run.reports:
        sections[report.name] = "\n".join(_section(report, run)).rstrip("\n")
    return "\n\n".join([_HEAD.rstrip("\n"), *(sections[name] for name in _ORDER if name in sections)]) + "\n"


def _section(report: Report, run: Run) -> Iterator[str]:
    yield f"## {report.name}\n\n{report.title}.\n"
    yield f"{run.day}: {_machine_line(run.machine)}{f' **{_DISTURBED}**' if run.machine.disturbed else ''}\n"
    yield "| goal | must | measured | |\n|---|---|---|---|"
    for goal in report.goals:
        yield f"| {goal.name} | {_limit(goal)} | {readable(goal.value)}{goal.unit} | {verdict(goal)} |"
    for plot, _ in plots_of(report):
        yield f"\n![{plot.title}]({IMAGES}/bench-{plot.name}.svg)"
    for table in report.tables:
        yield f"\n| {' | '.join(table.columns)} |\n|{'---|' * len(table.columns)}"
        yield from (f"| {' | '.join(row)} |" for row in table.rows)
    figures = _unsaid(report)
    if figures:
        yield "\n| figure | median | least to most |\n|---|---|---|"
    for figure in figures:
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
