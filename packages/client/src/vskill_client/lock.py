"""`lock`: one file that names the version, digest and attestation of several skills, for `install --frozen` and
`verify --lock`."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from vskill_client.destination import current_destination, run_with_caller
from vskill_client.group import complete
from vskill_client.installed import RECORDS, folder_of
from vskill_client.output import print_json
from vskill_client.wire.skills import LOCK, LockedSkill, LockFile, LockSkills
from vskill_core.errors import AttestationInvalid, InvalidInput
from vskill_core.folders import read_installed_folder

if TYPE_CHECKING:
    from vskill_core.signing_keys import PublicKey


@click.command()
@click.argument("skills", metavar="[SKILL[@VERSION]]...", nargs=-1, shell_complete=complete)
@click.option("--collection", help="Every skill of this collection, instead of naming skills.")
def lock(*, skills: tuple[str, ...], collection: str | None) -> None:
    """Print a lock file: the version, digest and attestation of each skill.

    Keep it with your project. `install --frozen FILE` installs exactly these versions, and `verify --lock FILE FOLDER`
    checks that a folder holds them and nothing else.
    """
    if bool(skills) == (collection is not None):
        raise click.UsageError("name skills, or give --collection")
    wanted = LockSkills(skills=",".join(skills), collection=collection)
    made = run_with_caller(lambda caller: caller.call(LOCK, wanted))
    for one in made.left_out:
        click.echo(f"Warning: {one.skill} is left out: {one.reason}", err=True)
    print_json(made)


def read_lock(path: Path) -> LockFile:
    try:
        return msgspec.json.decode(path.read_bytes(), type=LockFile)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        fix = f"make one with `{current_destination().program} lock`"
        raise InvalidInput(f"{path} is not a lock file: {error}.", field="FILE", fix=fix) from error


def check_locked(one: LockedSkill, folder: Path, trusted: "Iterable[PublicKey]") -> None:
    """Raise AttestationInvalid unless the folder of a skill holds exactly what was locked."""
    from vskill_core.statement import CONTENT_DIGEST
    from vskill_core.verification import check_attestation

    place = folder / folder_of(one.skill)
    if place.is_symlink() or not place.is_dir():
        raise AttestationInvalid(f"{place} is missing: the lock names {one.skill} {one.version}.")
    envelope, files = msgspec.json.encode(one.attestation), read_installed_folder(place)
    checked = check_attestation(envelope, trusted, files=files, about=f"{one.skill}@{one.version}")
    if one.digest not in checked.statement.digest(CONTENT_DIGEST):
        raise AttestationInvalid(f"The lock and the attestation of {one.skill} name different contents.")


def require_nothing_else(lock_file: LockFile, folder: Path) -> None:
    """Raise AttestationInvalid where the folder holds something that the lock does not name."""
    known = {folder_of(one.skill) for one in lock_file.skills} | {RECORDS}
    others = sorted(path.name for path in folder.iterdir() if path.name not in known)
    if others:
        message = f"{folder} holds what the lock does not name: {', '.join(others[:10])}."
        raise AttestationInvalid(message, found=others)
