"""A run for people (a table in the terminal, a page of the documentation) and for machines (JSON)."""

from collections.abc import Iterator

import msgspec
from rich.console import Console
from rich.table import Table

from bench.machine import Machine
from bench.results import Figure, Goal, Report
from bench.suite import Run

_HEAD = """# Benchmarks

Written by `make bench ARGS=--write-docs`; the text below is what that run measured. Claims are ratios against peers
and the raw engine within one run, on one disk, in one process: absolute figures say more about the machine.
Each figure is the median of its rounds with the least and the most of them, after one round that does not count;
rivals take turns. `python -m bench --only queue` runs one, `--quick` a smaller set, `--json FILE` keeps the figures.
"""

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
    if run.machine.disturbed:
        parts.append(f"**{_DISTURBED}**\n")
    for report in run.reports:
        parts += _section(report)
    return "\n".join(parts)


def _section(report: Report) -> Iterator[str]:
    yield f"## {report.name}\n\n{report.title}.\n"
    yield "| goal | must | measured | |\n|---|---|---|---|"
    for goal in report.goals:
        yield f"| {goal.name} | {_limit(goal)} | {_amount(goal.value)}{goal.unit} | {verdict(goal)} |"
    yield "\n| figure | median | least to most |\n|---|---|---|"
    for figure in report.figures:
        yield f"| {figure.name} | {_amount(figure.median)} {figure.unit} | {_spread(figure)} |"
    yield "".join(f"\n- {note}" for note in report.notes) + "\n"


def _figures_table(report: Report) -> Table:
    table = Table(title=f"{report.name}: {report.title}", title_justify="left")
    table.add_column("figure")
    for column in ("median", "least to most", "unit"):
        table.add_column(column, justify="right")
    for figure in report.figures:
        table.add_row(figure.name, _amount(figure.median), _spread(figure), figure.unit)
    return table


def _goals_table(report: Report) -> Table:
    table = Table(box=None)
    for column in ("goal", "must", "measured", ""):
        table.add_column(column)
    for goal in report.goals:
        style = "green" if goal.met else "bold red"
        table.add_row(
            goal.name, _limit(goal), f"{_amount(goal.value)}{goal.unit}", verdict(goal), style=style
        )
    return table


def verdict(goal: Goal) -> str:
    """In words."""
    if not goal.met:
        return "not met"
    return {None: "met", True: "met, wish too", False: "met, wish not"}[goal.wish_met]


def _limit(goal: Goal) -> str:
    wish = "" if goal.wish is None else f", wish {goal.relation} {_amount(goal.wish)}"
    return f"{goal.relation} {_amount(goal.limit)}{goal.unit}{wish}"


def _spread(figure: Figure) -> str:
    return f"{_amount(figure.least)} to {_amount(figure.most)}" if figure.rounds > 1 else "one round"


def _amount(value: float) -> str:
    if value == int(value) or value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 100 else f"{value:.2f}"


def _machine_line(machine: Machine) -> str:
    median, least, most = machine.fsync_us
    return (
        f"{machine.cores} cores ({machine.cpu}), {machine.system}, Python {machine.python}, SQLite {machine.sqlite}; "
        f"writing and flushing 4 KB takes {median:.0f} µs ({least:.0f} to {most:.0f}); "
        f"load at the start {machine.load_before}."
    )
