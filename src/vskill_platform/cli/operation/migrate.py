"""`migrate`: copy an installation's records or its content to another place, beside the processes that use them."""

from typing import TYPE_CHECKING

import click

from vskill_client.output import json_option, print_json
from vskill_platform.cli.process import run_async

if TYPE_CHECKING:
    from vskill_platform.installation.content import MovedContent
    from vskill_platform.installation.migrate import Migrated


@click.command()
@click.option(
    "--from",
    "source",
    required=True,
    help="The store to copy, such as sqlite:data/vskill.db, or content, such as files:data/blobs.",
)
@click.option(
    "--to",
    "target",
    required=True,
    help="An empty store, such as postgresql://me@host/vskill, or a place for content, such as s3://skills/registry.",
)
@click.option(
    "--verify", is_flag=True, help="Of content, compare every piece after the copy. Records always are."
)
@json_option
def migrate(*, source: str, target: str, verify: bool, as_json: bool) -> None:
    """Copy every record of one store into another, and compare them by count and hash; or all content.

    The old processes may go on meanwhile. Then stop them and run it once more: it copies only what changed since. An
    interrupted run is taken up where it stopped. Exit code 1 says that the two differ.

    Records and content are moved one at a time. Content stays where it is until it is named here.
    """
    import vskill_platform.installation.migrate as moving
    from vskill_platform.cli.progress import Stages
    from vskill_platform.installation import content

    with Stages() as stages:
        if content.is_content(source) or content.is_content(target):
            moved = run_async(content.move_content(source, target, stages, verify=verify))
            _show_content(moved, as_json=as_json)
            return
        done = run_async(moving.migrate(source, target, stages))
    if as_json:
        print_json(done)
    else:
        _show(done)
    if not done.equal:
        raise SystemExit(1)


def _show_content(moved: "MovedContent", *, as_json: bool) -> None:
    if as_json:
        print_json(moved)
    else:
        compared = f"{moved.verified} compared byte by byte" if moved.verified else "none compared (--verify)"
        click.echo(f"{moved.pieces} pieces of content, {moved.copied} copied, {compared}.")
        for address in moved.differ:
            click.echo(f"{address} differs after it was written again.")
        for address in moved.missing:
            click.echo(f"{address} was not copied or compared: the source lists it and does not have it.")
    if moved.differ or moved.missing:
        raise SystemExit(1)


def _show(done: "Migrated") -> None:
    click.echo(f"{done.compared} records compared, {done.written} written, {done.removed} removed.")
    if done.equal:
        letters = done.target.dead_letters
        click.echo(
            f"Both stores hold {done.target.records} records and {letters} dead letters, equal by hash."
        )
        click.echo(f"SHA-256 of the records: {done.target.digest}")
    else:
        click.echo(
            "The stores differ: the old one has changed since. Stop its processes and run this again; "
            "it copies only what changed."
        )
