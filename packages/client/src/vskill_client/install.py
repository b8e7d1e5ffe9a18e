"""`install`: download a version of a skill from a registry, check it against its signed attestation, and put it into a
folder; and `lock`: one file that names the version, digest and attestation of several skills, for `install --frozen`
and `verify --lock`."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from vskill_client import installed
from vskill_client.destination import Caller, current_destination, in_thread, run_with_caller, tell_registries
from vskill_client.group import complete
from vskill_client.output import json_option, plain, print_json
from vskill_client.wire.base import NoParameters
from vskill_client.wire.skills import (
    ATTESTATION,
    COUNT_INSTALL,
    DOWNLOAD,
    KEYS,
    LOCK,
    SHOW_SKILL,
    AttestedVersion,
    DownloadVersion,
    LockedSkill,
    LockFile,
    LockSkills,
    SkillRequest,
    SkillState,
)
from vskill_core.content import SkillFile, digest_of_files
from vskill_core.errors import (
    AttestationInvalid,
    InvalidInput,
    NotFound,
    PlatformError,
    RegistryUnavailable,
)
from vskill_core.folders import read_installed_folder
from vskill_core.foreign_json import read_json
from vskill_core.plural import counted

if TYPE_CHECKING:
    from vskill_core.signing_keys import PublicKey
    from vskill_core.verification import Checked


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
        return read_json(path.read_bytes(), LockFile)
    except msgspec.DecodeError as error:
        fix = f"make one with `{current_destination().program} lock`"
        raise InvalidInput(f"{path} is not a lock file: {error}.", field="FILE", fix=fix) from error


def check_locked(one: LockedSkill, folder: Path, trusted: "Iterable[PublicKey]") -> "Checked":
    """The attestation; raise AttestationInvalid unless the folder of a skill holds exactly what was locked."""
    from vskill_core.statement import CONTENT_DIGEST
    from vskill_core.verification import check_attestation

    place = folder / installed.folder_of(one.skill)
    if place.is_symlink() or not place.is_dir():
        raise AttestationInvalid(f"{place} is missing: the lock names {one.skill} {one.version}.")
    envelope, files = msgspec.json.encode(one.attestation), read_installed_folder(place)
    checked = check_attestation(envelope, trusted, files=files, about=f"{one.skill}@{one.version}")
    if one.digest not in checked.statement.digest(CONTENT_DIGEST):
        raise AttestationInvalid(f"The lock and the attestation of {one.skill} name different contents.")
    return checked


def require_nothing_else(lock_file: LockFile, folder: Path) -> None:
    """Raise AttestationInvalid where the folder holds something that the lock does not name."""
    known = {installed.folder_of(one.skill) for one in lock_file.skills} | {installed.RECORDS}
    others = sorted(path.name for path in folder.iterdir() if path.name not in known)
    if others:
        message = f"{folder} holds what the lock does not name: {', '.join(others[:10])}."
        raise AttestationInvalid(message, found=others)


class InstallOutcome(msgspec.Struct, frozen=True):
    """What was installed, for programs."""

    skill: str
    version: str
    digest: str
    folder: str
    files: int
    key_id: str
    #: False: the folder held this content already.
    changed: bool


class Download(msgspec.Struct, frozen=True):
    """A version whose bytes are those that its attestation names."""

    record: installed.InstallRecord
    files: tuple[SkillFile, ...]
    key_id: str


@click.command()
@click.argument("skill", metavar="[SKILL[@VERSION]]", required=False, shell_complete=complete)
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    default=installed.DEFAULT_FOLDER,
    show_default=True,
    help="The folder that skills are installed into; the skill gets a folder of its own in it.",
)
@click.option(
    "--frozen",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A lock file: install exactly the versions that it names.",
)
@click.option("--force", is_flag=True, help="Replace a folder that was changed or holds something else.")
@json_option
def install(*, skill: str | None, into: Path, frozen: Path | None, force: bool, as_json: bool) -> None:
    """Install a skill: its current version, or the one after the @. With --frozen, all that a lock file names.

    SKILL is a full name (owner/repository/skill) or a short one that means exactly one skill. The download must be
    what the registry verified and signed; otherwise nothing is written. What was withdrawn or blocked is refused.
    """
    if (skill is None) == (frozen is None):
        raise click.UsageError("name a SKILL, or give --frozen")
    locked = None if frozen is None else read_lock(frozen).skills

    async def work(caller: Caller) -> list[InstallOutcome]:
        if locked is not None:
            found = [await _download_locked(caller, one) for one in locked]
        else:
            found = [await _download(caller, *split_version(str(skill)))]
        done = []
        for one in found:
            put = await in_thread(_put, one, into, force=force)
            done.append(put)
            if put.changed:
                await _count(caller, put.skill)
        return done

    try:
        outcomes = run_with_caller(work)
    except NotFound:
        tell_registries()
        raise
    if as_json:
        print_json(outcomes if locked is not None else outcomes[0])
        return
    for done in outcomes:
        said = "Installed" if done.changed else "Already installed:"
        text = f"{said} {done.skill} {done.version} in {done.folder} ({counted(done.files, 'file')})."
        click.echo(plain(text))
        click.echo(f"Verified: digest {done.digest}, signed with key {done.key_id}.")


async def _download_locked(caller: Caller, one: LockedSkill) -> Download:
    """The version that is locked. Nothing is written before all are here."""
    found = await _download(caller, one.skill, one.version)
    digest = found.record.digest
    if digest != one.digest:
        message = f"{one.skill} {one.version} was not installed: its digest is {digest}, the lock names {one.digest}."
        raise AttestationInvalid(message, found=digest, locked=one.digest)
    return found


def split_version(text: str) -> tuple[str, str | None]:
    name, at, version = text.strip().rpartition("@")
    if not at:
        return version, None
    if not name or not version:
        fix = "give a name such as owner/repository/skill, or name@1.2.0"
        raise InvalidInput(f"{text[:200]!r} is not SKILL or SKILL@VERSION.", field="SKILL", fix=fix)
    return name, version


async def _download(caller: Caller, name: str, version: str | None) -> Download:
    shown = await look_up_skill(caller, name)
    known = [one.version for one in shown.versions]
    wanted = version or shown.current_version or (known[0] if known else "")
    if wanted not in known:
        there = ", ".join(known[:10]) or "none"
        raise NotFound(f"{shown.skill} has no version {wanted[:80]!r}; its versions: {there}.", skill=name)
    asked = DownloadVersion(skill=shown.skill, version=wanted, format="tar.gz")
    archive = await caller.call(DOWNLOAD, asked)
    envelope = await caller.call(ATTESTATION, AttestedVersion(skill=shown.skill, version=wanted))
    keys = await fetch_keys(caller)
    files, key_id = await in_thread(_check, shown.skill, wanted, archive, envelope, keys)
    digest = digest_of_files(files)
    record = installed.InstallRecord(shown.skill, wanted, digest, caller.registry, msgspec.Raw(envelope))
    return Download(record, files, key_id)


async def look_up_skill(caller: Caller, name: str) -> SkillState:
    shown = await caller.call(SHOW_SKILL, SkillRequest(skill=name))
    if name.count("/") == 2 and shown.skill.lower() != name.lower():
        raise RegistryUnavailable(f"The registry answered about {shown.skill!r} instead of {name!r}.")
    return shown


async def fetch_keys(caller: Caller) -> "tuple[PublicKey, ...]":
    from vskill_core.signing_keys import public_from_jwks

    return public_from_jwks(msgspec.json.encode(await caller.call(KEYS, NoParameters())))


def _check(
    skill: str, version: str, archive: bytes, envelope: bytes, keys: "tuple[PublicKey, ...]"
) -> tuple[tuple[SkillFile, ...], str]:
    """The files of the archive, and which key has signed for them."""
    from vskill_core.archive_reading import SERVED_LIMITS, read_archive
    from vskill_core.verification import check_attestation

    try:
        files = read_archive(archive, SERVED_LIMITS)
        checked = check_attestation(envelope, keys, archive=archive, files=files, about=f"{skill}@{version}")
    except PlatformError as error:
        message = f"{skill} {version} was not installed: {error.message}"
        raise AttestationInvalid(message, skill=skill, version=version) from error
    return files, checked.key.key_id


def _put(found: Download, into: Path, *, force: bool) -> InstallOutcome:
    record = found.record
    skill, digest = record.skill, record.digest
    target = into / installed.folder_of(skill)
    changed = not installed.is_installed(target, digest)
    if changed and not force:
        installed.check_replaceable(target, skill)
    if changed or not installed.is_recorded(target, record):
        installed.write_install(target, found.files, record)
    return InstallOutcome(skill, record.version, digest, str(target), len(found.files), found.key_id, changed)


async def _count(caller: Caller, skill: str) -> None:
    """As other clients do. The skill is installed by now, so a registry that does not count is worth a note only."""
    try:
        await caller.call(COUNT_INSTALL, SkillRequest(skill=skill))
    except PlatformError as error:
        click.echo(f"The install was not counted: {error.message}", err=True)
