"""Every command that is made from an action prints its answer as it was agreed on.

Each is given made-up answers of its action's type: one with everything, one with little and one with nothing in it.
What it prints is compared with `printed_answers.txt`. Where that changes on purpose, `make snapshots` writes it anew.
"""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click
import pytest
from click.testing import CliRunner
from msgspec import inspect

from vskill_client.destination import Destination
from vskill_client.wire.base import TIME_FIELDS, RegistryCall
from vskill_platform.cli import SectionedGroup
from vskill_platform.cli.groups import GROUPS

AGREED = Path(__file__).parent / "printed_answers.txt"
#: Answers: the number of items in each list, and whether what may be missing is there.
ANSWERS = {"everything": 2, "little": 1, "nothing": 0}
#: They print what they read in a way of their own.
NO_ACTION = {"audit tail", "bundle check", "bundle make", "skill export"}
T = TypeVar("T")


def commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        elif f"{path} {name}" not in NO_ACTION:
            yield f"{path} {name}", command


COMMANDS = dict(found for name in sorted(GROUPS) for found in commands(GROUPS[name], name))


def make_up(kind: inspect.Type, name: str, items: int) -> Any:
    """A value of this type for the field of this name."""
    match kind:
        case inspect.UnionType(types=types):
            is_missing = items < 2 and any(isinstance(one, inspect.NoneType) for one in types)
            return None if is_missing else make_up(types[0], name, items)
        case inspect.Metadata(type=plain):
            return make_up(plain, name, items)
        case inspect.StructType(cls=struct, fields=fields):
            return struct(**{one.name: make_up(one.type, one.name, items) for one in fields})
        case inspect.VarTupleType(item_type=item):
            return tuple(make_up(item, name, items) for _ in range(items))
        case inspect.DictType(value_type=value):
            return {f"{name}-key": make_up(value, name, items)} if items else {}
        case inspect.EnumType(cls=enum):
            return next(iter(enum))
    return make_up_plain(kind, name, items)


def make_up_plain(kind: inspect.Type, name: str, items: int) -> object:
    values = {
        inspect.BoolType: items == 2,
        inspect.IntType: len(name) * items,
        inspect.FloatType: items * 1.25,
        inspect.StrType: name.upper() if items else "",
        inspect.AnyType: "anything",
        inspect.NoneType: None,
    }
    is_time = isinstance(kind, inspect.StrType) and f"_{name}".endswith(TIME_FIELDS)
    return "2026-11-18T06:30:11.123Z" if is_time else values[type(kind)]


class MadeUp(Destination):
    """A registry that answers with made-up values."""

    program = "vskill-platform"
    registry = ""
    pages = "https://skills.example.org"

    def __init__(self, items: int) -> None:
        self._items = items

    def run(self, work: Callable[[Any], Awaitable[T]]) -> T:
        # Nothing here waits, so one step is the whole.
        try:
            work(self).__await__().send(None)
        except StopIteration as done:
            answer: T = done.value
            return answer
        raise AssertionError("it waits")

    async def call(self, call: RegistryCall[Any, Any], _request: object) -> Any:
        return make_up(inspect.type_info(call.answer), call.name, self._items)


def value_of(param: click.Parameter) -> Any:
    """What a person might give."""
    if param.multiple or param.nargs == -1:
        return ()
    match param.type:
        case click.Choice(choices=choices):
            return choices[0]
        case click.types.BoolParamType():
            return True
    return 1 if "int" in param.type.name else f"given-{param.name}"


def print_answer(command: click.Command, items: int) -> str:
    given = {str(param.name): value_of(param) for param in command.params} | {"as_json": False}

    @click.group(cls=SectionedGroup)
    def cli() -> None:
        """The executable."""

    @cli.command("print")
    def act() -> None:
        assert command.callback is not None
        command.callback(**given)

    done = CliRunner().invoke(cli, ["print"], obj=MadeUp(items), standalone_mode=False)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    ending = "" if done.exit_code == 0 else f"exit code {done.exit_code}\n"
    errors = "".join(f"stderr: {line}\n" for line in done.stderr.splitlines())
    return done.stdout + errors + ending


def printed() -> Iterator[str]:
    for path, command in COMMANDS.items():
        for title, items in ANSWERS.items():
            yield f"$ {path}  # {title}\n{print_answer(command, items)}\n"


def test_answers_are_printed_as_agreed(request: pytest.FixtureRequest):
    text = "".join(printed())
    if request.config.getoption("--write-snapshots"):
        AGREED.write_text(text)
    assert text.splitlines() == AGREED.read_text().splitlines(), "if that is meant: make snapshots"
