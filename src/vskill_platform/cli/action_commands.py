"""Commands made from actions: parts of the path become arguments, the other fields options, and `#:` lines their help.
A renderer prints the answer; `--json` prints it as the API gives it."""

import enum
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

Show = Callable[[Any], None]
#: How a shell completes an argument, by its field.
_COMPLETED = {"submission_id": complete, "skill": complete}
#: Tells what would change, before that is confirmed. What it returns is added to the request.
Foretell = Callable[[Caller, dict[str, Any]], Awaitable[dict[str, Any]]]

#: Completes what the command line did not give, by asking the registry first.
Fill = Callable[[Caller, dict[str, Any]], Awaitable[dict[str, Any]]]


class ForetoldQuestion(msgspec.Struct, frozen=True):
    """What is asked before anything is done, and what is told before that."""

    question: str
    foretell: Foretell
    #: Whether the command line says enough; None: `--yes` does.
    answered: Callable[[dict[str, Any]], bool] | None = None


def command_for(
    action: Action[Any, Any],
    show: Show,
    *,
    arguments: tuple[str, ...] = (),
    fill: Fill | None = None,
    optional: tuple[str, ...] = (),
    metavars: Mapping[str, str] = MappingProxyType({}),
    about: str = "",
    confirm: str | ForetoldQuestion = "",
    options: Mapping[str, click.Option] = MappingProxyType({}),
) -> click.Command:
    """The command of an action. `arguments` are given by position beside the parts of the path; `optional` fields are
    completed by `fill` or `confirm`; `metavars` name arguments in the help, and `about` explains them; `confirm` is
    asked before anything is done. `options` are fields that the command line writes in a way of its own. The
    command's callback gives the answer back."""
    wire = dict(zip(action.request.__struct_fields__, action.request.__struct_encode_fields__, strict=True))
    texts = field_texts(action.request)
    by_position = (*action.path_fields, *arguments)
    params: list[click.Parameter] = [
        options[field.name]
        if field.name in options
        else _argument(field, metavars.get(field.name))
        if field.name in by_position
        else _option(field, texts.get(wire[field.name], ""), optional=field.name in optional)
        for field in sorted(msgspec.structs.fields(action.request), key=_position(by_position))
    ]
    params.append(click.Option(["--json", "as_json"], is_flag=True, help="Print JSON instead of text."))
    answered = confirm.answered if isinstance(confirm, ForetoldQuestion) else None
    if confirm and answered is None:
        params.append(click.Option(["--yes"], is_flag=True, help="Do not ask for confirmation."))

    def callback(*, as_json: bool, yes: bool = True, **given: Any) -> Any:
        if not (yes if answered is None else answered(given)):
            given |= _ask(confirm, given)

        async def act(caller: Caller) -> Any:
            values = given if fill is None else await fill(caller, given)
            return await caller.call(action, action.request(**values))

        answer = run_with_caller(act)
        if as_json:
            print_json(answer)
        else:
            show(answer)
        return answer

    help_text = "\n\n".join(filter(None, (f"{action.summary}.", action.about, about)))
    return click.Command(action.command.split()[-1], callback=callback, params=params, help=help_text)


def _ask(confirm: str | ForetoldQuestion, given: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(confirm, ForetoldQuestion):
        click.confirm(confirm, abort=True)
        return {}
    told = run_with_caller(lambda caller: confirm.foretell(caller, given))
    click.confirm(confirm.question, abort=True)
    return told


def _position(by_position: tuple[str, ...]) -> Callable[[Any], int]:
    """Arguments in their order, then the options as declared."""
    return lambda field: by_position.index(field.name) if field.name in by_position else len(by_position)


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
    if isinstance(info, inspect.UnionType):
        inner = [one for one in info.types if not isinstance(one, inspect.NoneType)]
        return _click_type(inner[0])
    if isinstance(info, inspect.VarTupleType | inspect.ListType | inspect.SetType | inspect.FrozenSetType):
        return _click_type(info.item_type)[0], True
    if isinstance(info, inspect.EnumType):
        return click.Choice([str(one.value) for one in info.cls]), False
    if isinstance(info, inspect.LiteralType):
        return click.Choice([str(one) for one in info.values]), False
    if isinstance(info, inspect.BoolType):
        return click.BOOL, False
    if isinstance(info, inspect.IntType):
        return click.IntRange(info.ge, info.le), False
    return click.STRING, False
