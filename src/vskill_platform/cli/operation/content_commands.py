"""The commands about stored content."""

import sys
from typing import Any

import click

from vskill_client.output import UNKNOWN, print_table
from vskill_platform.actions.operation.content import (
    COLLECT_CONTENT,
    REPAIR_CONTENT,
    SHOW_CONTENT,
    CollectedView,
    ContentAnswer,
    DamageView,
)
from vskill_platform.cli.action_commands import command_for
from vskill_platform.cli.output import show_text_time


def show_content(found: ContentAnswer) -> None:
    rows = [
        (one.digest, one.kind, show_text_time(one.since), one.repair or UNKNOWN, " ".join(one.named_by))
        for one in found.damaged
    ]
    columns = ("content", "is", "since (UTC)", "repair", "named by")
    print_table(f"{found.total} pieces of content are missing or damaged", columns, rows)
    if found.verified_at is None:
        click.echo("The content has not been verified as a whole yet.")
    else:
        click.echo(
            f"All content was last verified at {show_text_time(found.verified_at)}: {found.verified_pieces} pieces, "
            f"{found.verified_bytes} bytes."
        )
    if found.pieces:
        click.echo(f"Since then {found.pieces} pieces, {found.bytes} bytes.")
    if found.unread:
        click.echo(f"{found.unread} pieces could not be read; the log says why.")


def show_repair(asked: DamageView) -> None:
    click.echo(f"Asked for the repair of {asked.digest}; 'content show' tells how it ended.")


def show_collected(done: CollectedView) -> None:
    rows = [
        ("pieces of content", done.pieces),
        ("set aside: no record names them", done.set_aside),
        ("brought back: a record names them", done.brought_back),
        ("deleted: set aside a day ago", done.deleted),
    ]
    print_table("Content that no record names", ("", ""), rows)


def _show_command() -> click.Command:
    command = command_for(SHOW_CONTENT, show_content, about="Exit code 1 where something is damaged.")
    look = command.callback

    def look_and_tell(**given: Any) -> None:
        if look is not None and look(**given).total:
            sys.exit(1)

    command.callback = look_and_tell
    return command


COMMANDS = (
    _show_command(),
    command_for(REPAIR_CONTENT, show_repair),
    command_for(COLLECT_CONTENT, show_collected),
)
