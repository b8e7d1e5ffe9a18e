"""Commands made from actions: parts of the path become arguments, the other fields options, and `#:` lines their help.
`answers` declares how the answer is printed; `--json` prints it as the API gives it."""

import enum
import sys
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

import click
import msgspec
from msgspec import inspect

from vskill_client.destination import Caller, run_with_caller
from vskill_client.group import complete
from vskill_client.output import print_json
from vskill_platform.actions.action import Action
from vskill_platform.actions.wire import field_texts
from vskill_platform.cli.answers import Part, show_answer, show_rest

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
    options: Mapping[str, click.Option] = MappingProxyType({}),
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
    options: Mapping[str, click.Option],
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
