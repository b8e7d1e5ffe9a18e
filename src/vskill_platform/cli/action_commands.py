"""Commands made from actions: parts of the path become arguments, the other fields options, and `#:` lines their help.

How the answer is printed is declared too: sentences, tables and details, in their order. A value is a field of the
answer by its name (`details.id`), a sentence with fields in braces (`{kind} {target}`), or a function. Fields are
written as people read them: times and durations, which the ends of their names tell, lists, and descriptions as plain
text. In a sentence, `{#skills}` is how many there are, and `{#skills:skill}` says `2 skills`. `--json` prints an answer
as the API gives it.
"""

import enum
import string
import sys
from collections.abc import Awaitable, Callable, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import click
import msgspec
from msgspec import inspect

from vskill_client.destination import Caller, run_with_caller
from vskill_client.group import complete
from vskill_client.output import UNKNOWN, plain, print_json, print_table, show_text_time
from vskill_client.wire.base import TIME_FIELDS
from vskill_core.plain_text import plain_text
from vskill_core.plural import counted
from vskill_platform.actions.action import Action
from vskill_platform.actions.wire import field_texts
from vskill_platform.cli.output import show_duration

# Answers.

Show = Callable[[Any], None]
#: What is printed of an answer: a sentence, what a function prints, or several of these.
Part = str | Show | tuple["Part", ...]
#: A field's name, a sentence, or a function.
Value = str | Callable[[Any], object]
#: What is taken of an answer as it is: a field's name, or a function.
Raw = str | Callable[[Any], Any]


def show_answer(answer: Any, *parts: Part) -> None:
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


def known(field: str, otherwise: str = UNKNOWN) -> Value:
    """A field that a table shows as unknown, or as something else, where it is empty."""
    return lambda item: _read(item, field) if attrgetter(field)(item) else otherwise


def _find(items: Raw, answer: Any) -> Any:
    return attrgetter(items)(answer) if isinstance(items, str) else items(answer)


def _tell(value: Value, item: Any) -> object:
    if not isinstance(value, str):
        return value(item)
    return _fill_in(value, item) if "{" in value else _read(item, value)


def _read(item: object, field: str) -> object:
    value = attrgetter(field)(item)
    if f"_{field.replace('.', '_')}".endswith(TIME_FIELDS):
        return show_text_time(value)
    if field.endswith("_ms"):
        return show_duration(value)
    if field == "description":
        return plain_text(value)
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


# Commands.

#: What the command line gives, by field.
Given = dict[str, Any]
#: Asks the registry for what the command line did not give.
Fill = Callable[[Caller, Given], Awaitable[Given]]
#: How a shell completes an argument, by its field.
_COMPLETED = {"submission_id": complete, "skill": complete}


def _says_yes(given: Given) -> bool:
    return bool(given.pop("yes"))


class CommandQuestion(msgspec.Struct, frozen=True):
    """What is asked before anything is done."""

    text: str
    #: Tells what would change before that; what it returns is added to the request.
    foretell: Fill | None = None
    #: Whether the command line says enough.
    answered: Callable[[Given], bool] = _says_yes

    def ask(self, given: Given) -> Given:
        foretell = self.foretell
        told = {} if foretell is None else run_with_caller(lambda caller: foretell(caller, given))
        click.confirm(self.text, abort=True)
        return told


def command_for(
    action: Action[Any, Any],
    *shown: Part,
    arguments: tuple[str, ...] = (),
    optional: tuple[str, ...] = (),
    metavars: Mapping[str, str] = MappingProxyType({}),
    options: Mapping[str, click.Parameter] = MappingProxyType({}),
    about: str = "",
    confirm: CommandQuestion | None = None,
    fill: Fill | None = None,
    fails: Callable[[Any], bool] | None = None,
) -> click.Command:
    """The command of an action, which prints what is `shown` of the answer. `arguments` are given by position beside
    the parts of the path; `optional` fields are completed by `fill` or `confirm`; `metavars` name arguments in the
    help, and `about` explains them. `options` are fields that the command line writes in a way of its own. Where an
    answer `fails`, the exit code is 1."""
    params = _params(action, (*action.path_fields, *arguments), optional, metavars, options)
    params.append(click.Option(["--json", "as_json"], is_flag=True, help="Print JSON instead of text."))
    if confirm is not None and confirm.answered is _says_yes:
        params.append(click.Option(["--yes"], is_flag=True, help="Do not ask for confirmation."))

    def callback(*, as_json: bool, **given: Any) -> None:
        if confirm is not None and not confirm.answered(given):
            given |= confirm.ask(given)

        async def act(caller: Caller) -> Any:
            values = given if fill is None else await fill(caller, given)
            return await caller.call(action, action.request(**values))

        answer = run_with_caller(act)
        if as_json:
            print_json(answer)
        else:
            show_answer(answer, *shown)
            show_rest(answer)
        if fails is not None and fails(answer):
            sys.exit(1)

    help_text = "\n\n".join(filter(None, (f"{action.summary}.", action.about, about)))
    return click.Command(action.command.split()[-1], callback=callback, params=params, help=help_text)


def _params(
    action: Action[Any, Any],
    by_position: tuple[str, ...],
    optional: tuple[str, ...],
    metavars: Mapping[str, str],
    options: Mapping[str, click.Parameter],
) -> list[click.Parameter]:
    """Arguments in their order, then the options as declared."""
    wire = dict(zip(action.request.__struct_fields__, action.request.__struct_encode_fields__, strict=True))
    texts = field_texts(action.request)
    fields = {field.name: field for field in msgspec.structs.fields(action.request)}
    return [
        options[name]
        if name in options
        else _argument(fields[name], metavars.get(name))
        if name in by_position
        else _option(fields[name], texts.get(wire[name], ""), optional=name in optional)
        for name in dict.fromkeys((*by_position, *fields))
    ]


def _argument(field: Any, metavar: str | None) -> click.Argument:
    kind, many = _click_type(inspect.type_info(field.type))
    needed = field.default is msgspec.NODEFAULT
    return click.Argument(
        [field.name],
        type=kind,
        nargs=-1 if many else 1,
        required=needed,
        metavar=metavar,
        shell_complete=_COMPLETED.get(field.name),
    )


def _option(field: Any, text: str, *, optional: bool) -> click.Option:
    kind, many = _click_type(inspect.type_info(field.type))
    has_default = field.default is not msgspec.NODEFAULT
    needed = not (optional or has_default or field.default_factory is not msgspec.NODEFAULT)
    default = field.default if has_default else None
    if isinstance(default, enum.Enum):
        default = default.value
    elif isinstance(default, tuple):
        default = tuple(one.value if isinstance(one, enum.Enum) else one for one in default)
    help_text = text[:1].upper() + text[1:] + ("." if text and not text.endswith(".") else "")
    words = field.name.replace("_", "-")
    # What may be given more than once is named in the singular each time.
    name = f"--{words.removesuffix('s') if many else words}"
    if kind is click.BOOL:
        return click.Option([f"{name}/--no-{name[2:]}", field.name], default=bool(default), help=help_text)
    given: dict[str, Any] = {"type": kind, "multiple": many, "help": help_text}
    if needed:
        # Click takes a default of None for a value, and would not miss the option.
        return click.Option([name, field.name], required=True, **given)
    return click.Option(
        [name, field.name], default=default, show_default=default not in (None, "", ()), **given
    )


def _click_type(info: inspect.Type) -> tuple[Any, bool]:
    """What click takes for a field of this type, and whether it may be given more than once."""
    match info:
        case inspect.UnionType(types=types):
            return _click_type(next(one for one in types if not isinstance(one, inspect.NoneType)))
        case inspect.VarTupleType(item_type=item):
            return _click_type(item)[0], True
        case inspect.EnumType(cls=enumeration):
            return click.Choice([str(one.value) for one in enumeration]), False
        case inspect.LiteralType(values=values):
            return click.Choice([str(one) for one in values]), False
        case inspect.BoolType():
            return click.BOOL, False
        case inspect.IntType(ge=least, le=most):
            return click.IntRange(least, most), False
        case _:
            return click.STRING, False
