"""How an error ends a command: one line on stderr that says what is wrong and what to do, and exit code 1.

A mistake in the command line itself is click's, with exit code 2. `--debug` shows the traceback.
"""

from importlib import import_module
from typing import Any

import click

from vskill_platform.cli.output import plain
from vskill_platform.domain.errors import PlatformError

#: Options of the executable itself, which people also write behind a command.
_BEFORE_THE_COMMAND = frozenset({"--registry", "--as", "--debug"})


class PlatformGroup(click.Group):
    """A group whose commands may raise the platform's own errors."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (PlatformError, BaseExceptionGroup) as error:
            known = first_known(error)
            if known is None or ctx.params.get("debug"):
                raise
            click.echo(one_line(known), err=True)
            ctx.exit(1)
        except click.NoSuchOption as error:
            if error.option_name not in _BEFORE_THE_COMMAND:
                raise
            message = f"{error.option_name} goes before the command's name."
            raise click.UsageError(message, error.ctx) from error


class ActionGroup(PlatformGroup):
    """A group whose commands are made from actions: the module that makes them is loaded when one is asked for, so that
    `--help` of the executable stays fast."""

    def __init__(self, *args: Any, commands_in: str, **options: Any) -> None:
        super().__init__(*args, **options)
        self._commands_in = commands_in

    def list_commands(self, ctx: click.Context) -> list[str]:
        self._load()
        return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        self._load()
        return super().get_command(ctx, cmd_name)

    def _load(self) -> None:
        for command in import_module(self._commands_in).COMMANDS:
            self.add_command(command)


def one_line(error: PlatformError) -> str:
    """The message, with field and fix where it does not say them itself."""
    text = " ".join(error.message.split())
    field, fix = error.details.get("field"), error.details.get("fix")
    if field and str(field) not in text:
        text = f"{field}: {text}"
    if fix and str(fix) not in text:
        text = f"{text.rstrip('.')}; {fix}."
    # A registry elsewhere may have written it.
    return plain(f"Error: {text}").plain


def first_known(error: BaseException) -> PlatformError | None:
    """The error itself, or the first of a group in which every one is the platform's own."""
    if isinstance(error, PlatformError):
        return error
    if isinstance(error, BaseExceptionGroup):
        known = [first_known(one) for one in error.exceptions]
        return known[0] if all(known) else None
    return None
