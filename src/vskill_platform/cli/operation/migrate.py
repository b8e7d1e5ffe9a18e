"""`migrate`: copy an installation's records into another store, beside the processes that use it."""

from typing import TYPE_CHECKING

import click

from vskill_client.output import json_option, print_json
from vskill_platform.cli.process import run_async

if TYPE_CHECKING:
    from vskill_platform.installation.migrate import Migrated


@click.command()
@click.option("--from", "source", required=True, help="The store to copy, such as sqlite:data/vskill.db.")
@click.option("--to", "target", required=True, help="An empty store, such as postgresql://me@host/vskill.")
@json_option
def migrate(*, source: str, target: str, as_json: bool) -> None:
    """Copy every record of one store into another, and compare them by count and hash.

    The old processes may go on meanwhile. Then stop them and run it once more: it copies only what changed since. An
    interrupted run is taken up where it stopped. Exit code 1 says that the stores differ. Content stays where it is.
    """
    import vskill_platform.installation.migrate as moving
    from vskill_platform.cli.progress import Stages

    with Stages() as stages:
        done = run_async(moving.migrate(source, target, stages))
    if as_json:
        print_json(done)
    else:
        _show(done)
    if not done.equal:
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
