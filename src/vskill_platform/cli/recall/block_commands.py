"""The commands of the blocklist: block, lift a block, and list what is blocked."""

import click

from vskill_client.output import print_table
from vskill_core.plural import counted
from vskill_platform.actions.recall.blocklist import (
    BLOCK,
    BLOCKS,
    LIFT,
    BlockAdded,
    BlockEntryList,
    BlockLifted,
)
from vskill_platform.cli.action_commands import command_for


def show_block(done: BlockAdded) -> None:
    click.echo(f"Blocked: {done.entry.kind} {done.entry.target}")
    if not done.submissions and not done.skills:
        click.echo("It hits nothing yet.")
        return
    for submission_id in done.submissions:
        click.echo(f"  submission {submission_id}")
    for name in done.skills:
        click.echo(f"  skill {name}")
    click.echo(f"  versions: {done.versions}")


def show_lift(done: BlockLifted) -> None:
    click.echo(f"No longer blocked: {done.kind} {done.target}")
    for name in done.skills:
        click.echo(f"  back: {name}")


def show_entries(found: BlockEntryList) -> None:
    rows = [
        (f"{one.kind} {one.target}", one.severity, one.since, one.by, one.reason) for one in found.entries
    ]
    print_table(
        counted(len(rows), "entry", "entries"),
        ("target", "severity", "since (UTC)", "by", "reason"),
        rows,
    )


COMMANDS = (
    command_for(BLOCK, show_block, arguments=("kind", "target")),
    command_for(LIFT, show_lift, arguments=("kind", "target")),
    command_for(BLOCKS, show_entries),
)
