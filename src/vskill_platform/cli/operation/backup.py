"""`backup` and `restore`: one file with everything that an installation keeps, taken while it runs."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vskill_client.output import json_option, print_json, print_table
from vskill_platform.cli.process import run_async, shared_settings

if TYPE_CHECKING:
    from vskill_platform.installation.backup import BackupManifest

FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("file", type=FILE)
@click.option(
    "--with-keys",
    is_flag=True,
    help="Include the private signing keys; protect the file like the keys themselves.",
)
@click.option("--verify", is_flag=True, help="Restore the file into a fresh store beside it, and compare.")
@json_option
def backup(*, file: Path, with_keys: bool, verify: bool, as_json: bool) -> None:
    """Write all records, dead letters and content to FILE.

    The backup is a consistent snapshot; the registry keeps running. Every piece of content is verified by its digest;
    what is missing or damaged is named, and the exit code is 1.
    """
    import vskill_platform.installation.backup as keeping
    from vskill_platform.cli.progress import Stages

    async def work(stages: Stages) -> "BackupManifest":
        manifest = await keeping.back_up(shared_settings(), file, with_keys=with_keys, progress=stages)
        return await keeping.verify(file, manifest.damaged, stages) if verify else manifest

    with Stages() as stages:
        manifest = run_async(work(stages))
    _tell(manifest, "backed up", as_json=as_json)
    if verify and not as_json:
        equal = "its records are equal, its content is not whole" if manifest.damaged else "found equal"
        click.echo(f"Restored into a fresh store: {equal}.")
    sys.exit(1 if manifest.damaged else 0)


@click.command()
@click.argument("file", type=FILE)
@json_option
def restore(*, file: Path, as_json: bool) -> None:
    """Fill an empty store and its folders from FILE.

    The settings name them. Records are compared by count and hash, content by its digest; what is missing or damaged
    is named, and the exit code is 1.
    """
    import vskill_platform.installation.backup as keeping
    from vskill_platform.cli.progress import Stages

    with Stages() as stages:
        manifest = run_async(keeping.restore(shared_settings(), file, stages))
    _tell(manifest, "restored" if manifest.damaged else "restored and found equal", as_json=as_json)
    sys.exit(1 if manifest.damaged else 0)


def _tell(manifest: "BackupManifest", done: str, *, as_json: bool) -> None:
    if as_json:
        print_json(manifest)
        return
    totals = manifest.totals
    click.echo(
        f"{totals.records} records, {totals.dead_letters} dead letters, {manifest.blobs} pieces of content and "
        f"{manifest.keys} key files {done}."
    )
    click.echo(f"SHA-256 of the records: {totals.digest}")
    if manifest.damaged:
        rows = [(piece.digest, piece.kind, " ".join(piece.named_by)) for piece in manifest.damaged]
        print_table(f"{len(rows)} pieces of content are not whole", ("content", "is", "named by"), rows)
