"""How commands print: tables for people, JSON with the API's names for programs, times in UTC."""

import os
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO, Self, TypeVar

import click
import msgspec

from vskill_client.wire.base import camel

F = TypeVar("F", bound=Callable[..., object])

#: Where there is no value to show; never 0.
UNKNOWN = "\N{EN DASH}"
GAP = "  "
#: What a column of a terminal keeps at least.
NARROWEST = 8


def json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")(command)


def print_json(value: object) -> None:
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


def plain(cell: object) -> str:
    """Text without control characters: foreign text must not steer the terminal."""
    text = "" if cell is None else str(cell)
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def show_text_time(text: str | None) -> str:
    return UNKNOWN if text is None else text.replace("T", " ")


def bold(text: str, colour: str | None = None) -> str:
    """As a terminal shows it; click takes the style out of what goes to a file or a pipe."""
    return click.style(text, fg=None if "NO_COLOR" in os.environ else colour, bold=True)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table; much of it was written by strangers. In a terminal, cells are folded so that rows fit; for programs
    every cell is whole. Columns are two spaces apart, and nothing follows the last word."""
    cells = [[plain(cell) for cell in row] for row in rows]
    head = [list(columns)] if any(columns) else []
    widths = [
        max((shown_width(row[place]) for row in (*head, *cells)), default=0) for place in range(len(columns))
    ]
    if sys.stdout.isatty():
        widths = _fit(widths, shutil.get_terminal_size().columns)
    click.echo(title)
    for row in head:
        for line in _lines(row, widths):
            click.echo(bold(line))
    for row in cells:
        for line in _lines(row, widths):
            click.echo(line)


def print_wrapped(text: str, indent: int, label: str = "") -> None:
    """A paragraph, moved in; in a terminal its lines are as long as that is wide. The label before it is bold."""
    begin, whole = " " * indent, f"{label}{plain(text)}"
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    if width > indent + NARROWEST:
        whole = textwrap.fill(
            whole, width, initial_indent=begin, subsequent_indent=begin, break_on_hyphens=False
        )
    else:
        whole = begin + whole
    click.echo(whole.replace(label, bold(label), 1) if label else whole)


def shown_width(text: str) -> int:
    """How many places of a terminal's line a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def _fit(widths: Sequence[int], most: int) -> list[int]:
    """The widest columns give way until a row fits."""
    fitting = list(widths)
    while sum(fitting) + len(GAP) * (len(fitting) - 1) > most and max(fitting) > NARROWEST:
        fitting[fitting.index(max(fitting))] -= 1
    return fitting


def _lines(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """A row as one line, or as many as its longest cell needs."""
    folded = [list(_fold(cell, width)) for cell, width in zip(row, widths, strict=True)]
    for number in range(max(map(len, folded), default=0)):
        parts = [cell[number] if number < len(cell) else "" for cell in folded]
        padded = (part + " " * (width - shown_width(part)) for part, width in zip(parts, widths, strict=True))
        yield GAP.join(padded).rstrip()


def _fold(text: str, width: int) -> Iterator[str]:
    """Between words where that can be, within a word that is longer than a line."""
    while shown_width(text) > width:
        end = len(text)
        while shown_width(text[:end]) > width and end > 1:
            end -= 1
        space = text.rfind(" ", 1, end + 1)
        end = space if space > 0 else end
        yield text[:end].rstrip()
        text = text[end:].lstrip()
    yield text


class StatusLine:
    """One line of a terminal that says what goes on, and is gone afterwards; nothing where nobody watches."""

    def __init__(self, text: str, *, quiet: bool) -> None:
        self._text = text
        self._shown = not quiet and sys.stdout.isatty()

    def update(self, text: str) -> None:
        self._text = plain(text)
        self.show()

    def show(self) -> None:
        if self._shown:
            width = shutil.get_terminal_size().columns
            click.echo(f"\r\x1b[2K{next(_fold(self._text, width - 1))}", nl=False)

    def hide(self) -> None:
        """Before something else is printed."""
        if self._shown:
            click.echo("\r\x1b[2K", nl=False)

    def __enter__(self) -> Self:
        self.show()
        return self

    def __exit__(self, *_: object) -> None:
        self.hide()
