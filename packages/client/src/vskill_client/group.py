"""A group of commands, and how an error ends one: one line on stderr that says what is wrong and what to do, and exit
code 1.

A mistake in the command line itself is click's, with exit code 2. `--debug` shows the traceback.
"""

from typing import Any

import click
from click.shell_completion import CompletionItem

from vskill_client.output import plain
from vskill_core.errors import PlatformError

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

    def offer(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """What a shell offers for the name of a skill or the id of a submission, where the executable can tell."""
        return []


def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ask the executable what a shell offers."""
    root = ctx.find_root().command
    return root.offer(ctx, param, incomplete) if isinstance(root, PlatformGroup) else []


def one_line(error: PlatformError) -> str:
    """The message, with field and fix where it does not say them itself."""
    text = " ".join(error.message.split())
    field, fix = error.details.get("field"), error.details.get("fix")
    if field and str(field) not in text:
        text = f"{field}: {text}"
    if fix and str(fix) not in text:
        text = f"{text.rstrip('.')}; {fix}."
    # A registry elsewhere may have written it.
    return plain(f"Error: {text}")


def first_known(error: BaseException) -> PlatformError | None:
    """The error itself, or the first of a group in which every one is the platform's own."""
    if isinstance(error, PlatformError):
        return error
    if isinstance(error, BaseExceptionGroup):
        known = [first_known(one) for one in error.exceptions]
        return known[0] if all(known) else None
    return None
