"""`submit`: pack local folders, keep them, and put them on the queue that a running server works."""

import asyncio
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
import msgspec

from vskill_platform.cli.output import json_option, print_json
from vskill_platform.cli.process import run_in_env
from vskill_platform.domain.content import DEFAULT_LIMITS, ContentLimits, Mode, SkillFile
from vskill_platform.domain.errors import InvalidInput, LimitExceeded

if TYPE_CHECKING:
    from vskill_platform.domain.submission import Submission
    from vskill_platform.web.api import SubmissionView

#: How often `--watch` looks at the record.
LOOK_EVERY_S = 0.3

#: What a checkout holds beside the skill itself.
LEFT_OUT = frozenset({".git"})


class Result(msgspec.Struct, frozen=True):
    """What became of one folder."""

    path: str
    outcome: str
    reason: str
    submission: "SubmissionView | None"


@click.command()
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--namespace", default="local", show_default=True, help="Whose uploads they are.")
@click.option("--name", "slug", help="The skill's name in the namespace; the folder's name otherwise.")
@click.option("--watch", is_flag=True, help="Follow each to its end; exit code 1 unless all are published.")
@json_option
def submit(*, paths: tuple[Path, ...], namespace: str, slug: str | None, watch: bool, as_json: bool) -> None:
    """Submit the skills in local folders, each with a SKILL.md at its root."""
    if slug is not None and len(paths) > 1:
        raise click.UsageError("--name names one skill: give one PATH with it")

    names = [slug or path.resolve().name for path in paths]

    async def submit_all() -> list[Result]:
        return [
            await _submit_one(path, namespace, name, watch=watch, quiet=as_json)
            for path, name in zip(paths, names, strict=True)
        ]

    results = run_in_env(submit_all)
    if as_json:
        print_json(results)
    if watch and not all(one.submission and one.submission.category == "published" for one in results):
        raise SystemExit(1)


async def _submit_one(path: Path, namespace: str, name: str, *, watch: bool, quiet: bool) -> Result:
    from vskill_platform.intake.submit import submit_upload
    from vskill_platform.web.api import submission_view

    files = await asyncio.to_thread(read_folder, path)
    submitted = await submit_upload(files, namespace=namespace, slug=name)
    record = submitted.submission
    if not quiet:
        click.echo(_said(path, submitted.outcome.value, submitted.reason, record))
    if watch and record is not None:
        record = await _follow(record, quiet=quiet)
    return Result(
        str(path), submitted.outcome.value, submitted.reason, submission_view(record) if record else None
    )


def _said(path: Path, outcome: str, reason: str, record: "Submission | None") -> str:
    place = f"{record.id}, run {record.run}, {record.state}" if record else "no submission"
    return f"{path}: {outcome} ({place}){': ' + reason if reason else ''}"


async def _follow(record: "Submission", *, quiet: bool) -> "Submission":
    """Print each step as it is written, until the run is over."""
    from vskill_platform.cli.output import console, plain, show_time
    from vskill_platform.submission_store import get_run

    out = console()
    shown = 0
    with out.status("waiting for a worker") as status:
        while True:
            record = await get_run(record.id, record.run)
            for event in record.history:
                if event.seq > shown and not quiet:
                    out.print(plain(f"  {show_time(event.at)}  {event.to:<15} {event.reason}"))
                shown = max(shown, event.seq)
            if record.state.ends_run:
                return record
            status.update(plain(record.state.meaning))
            await asyncio.sleep(LOOK_EVERY_S)


def read_folder(folder: Path, limits: ContentLimits = DEFAULT_LIMITS) -> tuple[SkillFile, ...]:
    """Every file below the folder. A link is refused: what it points to may be outside.

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


def _paths(folder: Path) -> Iterator[Path]:
    for current, folders, names in os.walk(folder, onerror=_unreadable):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        links = [name for name in folders if (Path(current) / name).is_symlink()]
        yield from (Path(current) / name for name in (*names, *links) if name not in LEFT_OUT)


def _file(folder: Path, path: Path, room: int, limits: ContentLimits) -> SkillFile:
    info = path.lstat()
    if not stat.S_ISREG(info.st_mode):
        message = f"{path} is a link or a special file."
        raise InvalidInput(message, field="PATH", fix="replace it by a plain file")
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
