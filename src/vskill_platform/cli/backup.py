"""`backup` and `restore`: one file with everything that an installation keeps, taken while it runs."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vskill_platform.cli.output import json_option, print_json
from vskill_platform.cli.process import check_shared, run_async

if TYPE_CHECKING:
    from vskill_platform.backup import BackupManifest
    from vskill_platform.settings import Settings

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

    The backup is a consistent snapshot; the registry keeps running.
    """
    import vskill_platform.backup as keeping

    async def work() -> "BackupManifest":
        manifest = await keeping.back_up(_settings(), file, with_keys=with_keys)
        return await keeping.verify(file) if verify else manifest

    manifest = run_async(work())
    if as_json:
        print_json(manifest)
        return
    _show(manifest, "backed up")
    if verify:
        click.echo("Restored into a fresh store and found equal.")


@click.command()
@click.argument("file", type=FILE)
@json_option
def restore(*, file: Path, as_json: bool) -> None:
    """Fill an empty store and its folders from FILE.

    The settings name them. What was written is compared by count and hash.
    """
    import vskill_platform.backup as keeping

    manifest = run_async(keeping.restore(_settings(), file))
    if as_json:
        print_json(manifest)
    else:
        _show(manifest, "restored and found equal")


def _settings() -> "Settings":
    from vskill_platform.settings import process_settings

    settings = process_settings()
    check_shared(settings)
    return settings


def _show(manifest: "BackupManifest", done: str) -> None:
    totals = manifest.totals
    click.echo(
        f"{totals.records} records, {totals.dead_letters} dead letters, {manifest.blobs} pieces of content and "
        f"{manifest.keys} key files {done}."
    )
    click.echo(f"SHA-256 of the records: {totals.digest}")
