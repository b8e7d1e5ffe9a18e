"""Installed skills: each is a folder below the one that skills are installed into, and a record beside it says which
version it is. A folder appears or is replaced as a whole."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec

from vskill_core.content import SkillFile, check_path, digest_of_files
from vskill_core.errors import InvalidInput, PlatformError
from vskill_core.folders import read_installed_folder
from vskill_core.foreign_json import read_json

#: Where skills are installed unless `--into` says otherwise: where Claude Code looks for a project's skills.
DEFAULT_FOLDER = Path(".claude/skills")
#: The folder of the records, beside the skills.
RECORDS = ".vskill-platform"


class InstallRecord(msgspec.Struct, frozen=True, rename="camel"):
    """What was installed, with what it takes to verify it later."""

    #: The full name.
    skill: str
    version: str
    #: Names exactly the files as they were installed.
    digest: str
    #: The address of the registry; empty is this machine's own.
    registry: str
    #: The signed envelope.
    attestation: msgspec.Raw


def folder_of(skill: str) -> str:
    """The name of a skill's folder: the last part of its full name. A registry or a file could hold any text."""
    name = skill.rpartition("/")[2]
    check_path(name)
    if name.startswith("."):
        raise InvalidInput(
            f"{name!r} cannot be the name of a skill's folder.", field="SKILL", fix="rename it"
        )
    return name


def read_record(target: Path) -> InstallRecord | None:
    """What is known about an installed skill's folder; None where nothing is, or it cannot be read."""
    try:
        return read_json(_record_path(target).read_bytes(), InstallRecord)
    except (OSError, ValueError):
        return None


def is_installed(target: Path, digest: str) -> bool:
    """Whether the folder holds exactly this content already."""
    return target.is_dir() and not target.is_symlink() and _digest_at(target) == digest


def is_recorded(target: Path, record: InstallRecord) -> bool:
    """Whether the record beside the folder names the same version of the same registry."""
    known = read_record(target)
    return known is not None and msgspec.structs.replace(known, attestation=record.attestation) == record


def check_replaceable(target: Path, skill: str) -> None:
    """Raise InvalidInput where installing the skill would lose something that is there."""
    if not os.path.lexists(target):
        return
    record = read_record(target)
    if record is None:
        problem = f"{target} is there already and was not installed by this command"
    elif record.skill != skill:
        problem = f"{target} holds another skill, {record.skill}"
    elif _digest_at(target) != record.digest:
        problem = f"{target} was changed since {record.version} was installed"
    else:
        return
    fix = "use --force to replace it, or --into to install elsewhere"
    raise InvalidInput(f"{problem}; {fix}.", field="--into", fix=fix)


def write_install(target: Path, files: Iterable[SkillFile], record: InstallRecord) -> None:
    """Put the files at the folder, and the record beside it. The folder is prepared elsewhere on the same file system
    and then renamed, so it is never seen half-written, and an error leaves what was there."""
    if os.path.lexists(target) and (target.is_symlink() or not target.is_dir()):
        raise InvalidInput(
            f"{target} is not a folder.", field="--into", fix="remove it, or install elsewhere"
        )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=".installing-", dir=target.parent, ignore_cleanup_errors=True
        ) as name:
            place = Path(name)
            _write_files(place / "new", files)
            (place / "record").write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
            _swap(place, target)
            _record_path(target).parent.mkdir(exist_ok=True)
            (place / "record").replace(_record_path(target))
    except OSError as error:
        message = f"{error.filename or target} cannot be written: {error.strerror}."
        raise InvalidInput(message, field="--into", fix="install into a folder that you may write") from error


def _write_files(folder: Path, files: Iterable[SkillFile]) -> None:
    """The files have passed `check_files`: their paths stay inside of the folder, and no two are the same."""
    folder.mkdir()
    for file in files:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = 0o777 if file.mode == "100755" else 0o666
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as written:
            written.write(file.data)


def _swap(place: Path, target: Path) -> None:
    if not target.exists():
        (place / "new").rename(target)
        return
    target.rename(place / "old")
    try:
        (place / "new").rename(target)
    except BaseException:
        (place / "old").rename(target)
        raise


def _record_path(target: Path) -> Path:
    # `.` and `..` have names only once they are resolved.
    whole = target.absolute() if target.name not in ("", "..") else target.resolve()
    return whole.parent / RECORDS / f"{whole.name}.json"


def _digest_at(target: Path) -> str | None:
    """The digest of what a folder holds; None where it holds what no skill does."""
    try:
        return digest_of_files(read_installed_folder(target))
    except PlatformError:
        return None
