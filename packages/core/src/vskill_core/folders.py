"""Skills on this machine: finds them below a folder and reads their files, within a skill's limits. `scan`, `submit`
and `verify` all use it."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from vskill_core.archive_reading import read_archive
from vskill_core.content import DEFAULT_LIMITS, ContentLimits, Mode, SkillFile
from vskill_core.errors import AttestationInvalid, InvalidInput, LimitExceeded
from vskill_core.identity import SKILL_FILE, upload_identity
from vskill_core.kind import OLDER, STANDARD, STANDARD_SIGN
from vskill_core.naming import slugify

#: What a checkout holds beside the skill itself.
BESIDE_THE_SKILL = frozenset({".git"})
ARCHIVE_ENDINGS = (".zip", ".tar.gz", ".tgz", ".tar")
#: A longer manifest is no plugin's.
_MANIFEST_BYTES = 256 * 1024
#: Folders that are not searched for skills.
WITHOUT_SKILLS = BESIDE_THE_SKILL | {"node_modules", ".venv", "__pycache__"}


def skills_at(path: Path) -> list[Path]:
    """The skills and plugins at or below a folder; the path itself where there is none, or it is a file. What is in a
    plugin is a part of it."""
    if path.is_file():
        return [path]
    return sorted(_skill_folders(path)) or [path]


def _skill_folders(folder: Path) -> Iterator[Path]:
    for current, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in WITHOUT_SKILLS]
        here = Path(current)
        if SKILL_FILE in names:
            yield here
        elif is_plugin_folder(here):
            folders.clear()
            yield here


def is_plugin_folder(folder: Path) -> bool:
    """Whether a manifest makes this folder a plugin."""
    if (folder / OLDER).is_file():
        return True
    try:
        with (folder / STANDARD).open("rb") as file:
            return STANDARD_SIGN in file.read(_MANIFEST_BYTES)
    except OSError:
        return False


def skill_name_at(place: Path) -> str:
    """The skill's name in its namespace: its folder's, or its archive's without the extension; as a slug if a URL
    cannot hold that name."""
    name = place.resolve().name
    if place.is_file():
        ending = next((one for one in ARCHIVE_ENDINGS if name.lower().endswith(one)), "")
        name = name[: len(name) - len(ending)]
    try:
        return upload_identity("local", name).path
    except InvalidInput:
        return slugify(name)


def read_place(place: Path) -> tuple[SkillFile, ...]:
    """The skill in a folder or in an archive."""
    return read_file(place) if place.is_file() else read_folder(place)


def read_folder(folder: Path, limits: ContentLimits = DEFAULT_LIMITS) -> tuple[SkillFile, ...]:
    """Every file below the folder. Links are refused, since they may point outside.

    It stops at the limits of a skill, so that a wrong folder does not fill the memory.
    """
    files: list[SkillFile] = []
    room = limits.bytes_total
    for path in _paths(folder):
        file = _file(folder, path, room, limits)
        room -= len(file.data)
        files.append(file)
        if len(files) > limits.files:
            raise _too_much(folder, f"{limits.files} files")
    return tuple(sorted(files, key=lambda file: file.path))


def read_installed_folder(folder: Path) -> tuple[SkillFile, ...]:
    """Every file below a folder, to compare with an attestation. Even what a checkout holds beside a skill (`.git`)
    counts, because nobody verified it."""
    for current, folders, names in os.walk(folder, onerror=_unreadable):
        for name in sorted(BESIDE_THE_SKILL.intersection((*folders, *names))):
            place = (Path(current) / name).relative_to(folder).as_posix()
            message = f"{folder} is not what was verified: {place} is not in the attestation."
            raise AttestationInvalid(message, path=place)
    return read_folder(folder)


def read_file(path: Path, limits: ContentLimits = DEFAULT_LIMITS) -> tuple[SkillFile, ...]:
    """The skill in an archive."""
    try:
        if path.stat().st_size > limits.bytes_total:
            raise _too_much(path, f"{limits.bytes_total} bytes")
        data = path.read_bytes()
    except OSError as error:
        _unreadable(error)
    return read_archive(data, limits)


def _paths(folder: Path) -> Iterator[Path]:
    for current, folders, names in os.walk(folder, onerror=_unreadable):
        folders[:] = [name for name in folders if name not in BESIDE_THE_SKILL]
        links = [name for name in folders if (Path(current) / name).is_symlink()]
        yield from (Path(current) / name for name in (*names, *links) if name not in BESIDE_THE_SKILL)


def _file(folder: Path, path: Path, room: int, limits: ContentLimits) -> SkillFile:
    info = path.lstat()
    if not stat.S_ISREG(info.st_mode):
        message = f"{path} is a link or a special file."
        place = path.relative_to(folder).as_posix()
        raise InvalidInput(message, field="PATH", fix="replace it by a plain file", path=place)
    if info.st_size > room:
        raise _too_much(folder, f"{limits.bytes_total} bytes")
    mode: Mode = "100755" if info.st_mode & stat.S_IXUSR else "100644"
    try:
        return SkillFile(path.relative_to(folder).as_posix(), mode, path.read_bytes())
    except OSError as error:
        _unreadable(error)


def _unreadable(error: OSError) -> NoReturn:
    fix = "make it readable, or leave it out"
    raise InvalidInput(
        f"{error.filename} cannot be read: {error.strerror}.", field="PATH", fix=fix
    ) from error


def _too_much(folder: Path, limit: str) -> LimitExceeded:
    return LimitExceeded(f"{folder} holds more than {limit}; submit the folder of one skill.", field="PATH")
