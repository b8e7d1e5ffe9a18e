"""How commands print: tables for people, JSON with the API's names for programs, times in UTC."""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import IO, BinaryIO, TypeVar

import click
import msgspec
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

F = TypeVar("F", bound=Callable[..., object])

#: Where there is no value to show; never 0.
UNKNOWN = "\N{EN DASH}"
#: Of what goes to a file or a pipe: wider than any line, so that nothing is cut or folded.
PIPE_WIDTH = 100_000


def json_option(command: F) -> F:
    """The `--json` that every reading command has."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")(command)


def print_json(value: object) -> None:
    from vskill_platform.client.wire.base import camel

    print_document(msgspec.json.format(msgspec.json.encode(camel(value)), indent=2))


def print_document(document: bytes, stream: BinaryIO | None = None) -> None:
    """Write all of it and a line end, to stdout unless told otherwise. With PYTHONUNBUFFERED a signal can cut a write
    to a pipe short, and nobody but the caller writes the rest."""
    sys.stdout.flush()
    out = sys.stdout.buffer if stream is None else stream
    rest = memoryview(document + b"\n")
    while rest:
        rest = rest[out.write(rest) or 0 :]
    out.flush()


def console(file: IO[str] | None = None) -> Console:
    """What prints tables and panels, to stdout unless told otherwise."""
    out = sys.stdout if file is None else file
    return Console(file=out, width=None if out.isatty() else PIPE_WIDTH, highlight=False)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table; cells are text, never markup, because much of it was written by strangers."""
    cells = [[plain(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        _print_columns(title, columns, [[cell.plain for cell in row] for row in cells])
        return
    table = Table(title=Text(title), title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in cells:
        table.add_row(*row)
    console().print(table)


def _print_columns(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """The same for programs: every cell whole, columns two spaces apart, and nothing after the last word."""
    lines = [columns, *rows] if any(columns) else rows
    widths = [max((cell_len(line[place]) for line in lines), default=0) for place in range(len(columns))]
    click.echo(title)
    for line in lines:
        padded = (cell + " " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(padded).rstrip())


def plain(cell: object) -> Text:
    """Text without control characters: foreign text must not steer the terminal."""
    text = "" if cell is None else str(cell)
    return Text("".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text))


def show_text_time(text: str | None) -> str:
    """A time that the API wrote, for people."""
    return UNKNOWN if text is None else text.replace("T", " ")


def show_duration(ms: int | None) -> str:
    """A duration in its two largest units, such as `2 h 5 min`."""
    if ms is None:
        return UNKNOWN
    if ms < 1000:
        return f"{ms} ms"
    parts = []
    rest = ms // 1000
    for name, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])


class Duration(click.ParamType[int]):
    """A duration on the command line, such as `30s`, `10m`, `2h` or `1d`; the value is in milliseconds."""

    name = "duration"
    units = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}  # noqa: RUF012 - a constant table

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        number, unit = value[:-1], value[-1:]
        if not (number.isascii() and number.isdigit() and unit in self.units):
            self.fail(f"{value!r} is not a duration; write for example 30s, 10m, 2h or 1d", param, ctx)
        return int(number) * self.units[unit]
