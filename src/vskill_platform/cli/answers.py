"""How answers of actions are printed, as declarations: sentences, tables and details, in their order.

A value is a field of the answer by its name (`details.id`), a sentence with fields in braces (`{kind} {target}`), or a
function. Fields are written as people read them: times and durations, which the ends of their names tell, and lists.
In a sentence, `{#skills}` is how many there are, and `{#skills:skill}` says `2 skills`.
"""

import string
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import click

from vskill_client.output import UNKNOWN, plain, print_table, show_text_time
from vskill_client.wire.base import TIME_FIELDS
from vskill_core.plural import counted
from vskill_platform.cli.output import show_duration

Show = Callable[[Any], None]
#: What is printed of an answer: a sentence, what a function prints, or several of these.
Part = str | Show | tuple["Part", ...]
#: A field's name, a sentence, or a function.
Value = str | Callable[[Any], object]
#: What is taken of an answer as it is: a field's name, or a function.
Raw = str | Callable[[Any], Any]


def show_answer(answer: Any, *parts: Part) -> None:
    """Print the parts in order."""
    for part in parts:
        if isinstance(part, tuple):
            show_answer(answer, *part)
        elif isinstance(part, str):
            click.echo(_fill_in(part, answer))
        else:
            part(answer)


def show_rest(answer: object) -> None:
    """How to go on where a list has more, and how many of its records could not be read."""
    page = getattr(answer, "pagination", answer)
    for option, words in (("after", "More"), ("before", "Older ones")):
        if (cursor := getattr(page, option, None)) is not None:
            click.echo(f"{words}: --{option} {cursor}")
    if skipped := getattr(answer, "skipped", 0) or getattr(answer, "unreadable", 0):
        click.echo(f"{counted(skipped, 'record')} could not be read; the log names them.", err=True)


def table(title: str, items: Raw, *columns: str | tuple[str, Value]) -> Show:
    """A row for each item. A column is a field, or its title with a value; `title` is a sentence about the answer."""
    titled = [(column, column) if isinstance(column, str) else column for column in columns]

    def show(answer: Any) -> None:
        rows = [[_tell(value, item) for _, value in titled] for item in _find(items, answer)]
        print_table(_fill_in(title, answer), [name for name, _ in titled], rows)

    return show


def details(title: str, *rows: tuple[str, Value]) -> Show:
    """A line for each value, after its name."""

    def show(answer: Any) -> None:
        told = [(name, _tell(value, answer)) for name, value in rows]
        shown = [(name, UNKNOWN if value in (None, "") else value) for name, value in told]
        print_table(_fill_in(title, answer), ("", ""), shown)

    return show


def when(condition: Raw, then: Part, otherwise: Part = ()) -> Show:
    """One part where a field or a function of the answer is something, another where it is not."""
    return lambda answer: show_answer(answer, then if _find(condition, answer) else otherwise)


def each(items: Raw, *parts: Part) -> Show:
    """The parts for each item; in a sentence, `{}` is an item that is a text."""

    def show(answer: Any) -> None:
        for item in _find(items, answer):
            show_answer(item, *parts)

    return show


def known(field: str) -> Value:
    """A field that a table shows as unknown where it is empty."""
    return lambda item: _read(item, field) or UNKNOWN


def _find(items: Raw, answer: Any) -> Any:
    return attrgetter(items)(answer) if isinstance(items, str) else items(answer)


def _tell(value: Value, item: Any) -> object:
    if not isinstance(value, str):
        return value(item)
    return _fill_in(value, item) if "{" in value else _read(item, value)


def _read(item: object, field: str) -> object:
    """A field as people read it."""
    value = attrgetter(field)(item)
    if f"_{field.replace('.', '_')}".endswith(TIME_FIELDS):
        return show_text_time(value)
    if field.endswith("_ms"):
        return show_duration(value)
    return ", ".join(value) if isinstance(value, tuple) else value


def _fill_in(sentence: str, item: Any) -> str:
    """The sentence about an item; foreign text in it cannot steer the terminal."""
    parts = []
    for text, field, noun, _ in string.Formatter().parse(sentence):
        parts.append(text)
        if field is None:
            continue
        if field.startswith("#"):
            value = attrgetter(field[1:])(item)
            number = len(value) if isinstance(value, tuple) else value
            parts.append(counted(number, *noun.split("/")) if noun else str(number))
        else:
            value = _read(item, field) if field else item
            parts.append(plain(UNKNOWN if value is None else value))
    return "".join(parts)
