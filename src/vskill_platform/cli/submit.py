"""`submit`: put skills on the queue that a running server works: from repositories, local folders and archives."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from vskill_platform.cli.errors import one_line
from vskill_platform.cli.local_skills import read_file, read_folder, skills_at
from vskill_platform.cli.output import json_option, print_json
from vskill_platform.cli.process import run_in_env
from vskill_platform.domain.content import SkillFile
from vskill_platform.domain.errors import InvalidInput, PlatformError
from vskill_platform.domain.identity import SKILL_FILE

if TYPE_CHECKING:
    from vskill_platform.actions.submission_views import SubmissionView
    from vskill_platform.domain.submission import Submission
    from vskill_platform.intake.discover import Settled
    from vskill_platform.intake.submit import Submitted

#: How many targets are submitted at the same time.
AT_ONCE = 8

ARCHIVE_ENDINGS = (".zip", ".tar.gz", ".tgz", ".tar")


class Result(msgspec.Struct, frozen=True):
    """What became of one skill."""

    #: The target, and where that is a repository, the skill's folder in it.
    path: str
    #: As at every door; `refused` where nothing was written.
    outcome: str
    reason: str
    submission: "SubmissionView | None"


class Options(msgspec.Struct, frozen=True):
    """What the command line says beside the targets."""

    path: str
    every: bool
    namespace: str
    slug: str | None


class Done(msgspec.Struct, frozen=True):
    """One skill after its submission."""

    path: str
    submitted: "Submitted | None" = None
    error: PlatformError | None = None
    note: str = ""


@click.command()
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option("--path", default="", help="The skill's folder in the repository; the address may name it too.")
@click.option("--all", "every", is_flag=True, help="Also the skills below a folder that is one itself.")
@click.option("--namespace", default="local", show_default=True, help="Whose uploads they are.")
@click.option(
    "--name", "slug", help="The skill's name in the namespace; the folder's or file's name otherwise."
)
@click.option(
    "--watch/--no-watch",
    default=None,
    help="Follow each to its end, and say what became of it; exit code 1 unless all are published. "
    "By default where the output is a terminal.",
)
@json_option
def submit(
    *,
    targets: tuple[str, ...],
    path: str,
    every: bool,
    namespace: str,
    slug: str | None,
    watch: bool | None,
    as_json: bool,
) -> None:
    """Submit skills from repositories, local folders and archives.

    A TARGET is the address of a repository (https://github.com/owner/repo), a folder with a SKILL.md at its root or
    with skills below it, or a zip, tar or tar.gz of one. Of a repository every skill is submitted, or the one at
    --path. Exit code 1 if any was refused.
    """
    watched = (sys.stdout.isatty() and not as_json) if watch is None else watch
    if slug is not None and len(targets) > 1:
        raise click.UsageError("--name names one skill: give one TARGET with it")
    kinds = [_kind_of(target) for target in targets]
    options = Options(path, every, namespace, slug)

    async def submit_all() -> list[Done]:
        done = await _submit_all(targets, kinds, options, quiet=as_json)
        return await _followed(done, quiet=as_json) if watched else done

    results = [_result(one) for one in run_in_env(submit_all)]
    if as_json:
        print_json(results)
    refused = any(one.outcome == "refused" for one in results)
    unpublished = not all(one.submission and one.submission.category == "published" for one in results)
    if refused or (watched and unpublished):
        raise SystemExit(1)


def _kind_of(target: str) -> str:
    """`folder`, `archive` or `repository`; what exists on disk is never taken for an address."""
    path = Path(target)
    if path.is_dir():
        return "folder"
    if path.exists():
        return "archive"
    first, slash, _ = target.partition("/")
    named = slash and "." in first.strip(".") and target.count("/") > 1
    if "://" in target or target.startswith("git@") or named:
        return "repository"
    raise click.UsageError(f"{target!r} does not exist, and is not the address of a repository.")


async def _submit_all(
    targets: Sequence[str], kinds: Sequence[str], options: Options, *, quiet: bool
) -> list[Done]:
    """Some at a time, each told as it is done. A single one that is refused ends the command with its error."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(target: str, kind: str) -> list[Done]:
        async with slots:
            done = await _settled(target, kind, options, alone=len(targets) == 1)
        if not quiet:
            for skill in done:
                _tell(skill)
        return done

    work = [one(target, kind) for target, kind in zip(targets, kinds, strict=True)]
    return [skill for done in await _with_status(asyncio.gather(*work), quiet=quiet) for skill in done]


async def _with_status(working: "asyncio.Future[list[list[Done]]]", *, quiet: bool) -> list[list[Done]]:
    """Something moves while repositories are fetched, where there is a person to see it."""
    from vskill_platform.cli.output import console

    out = console()
    if quiet or not out.is_terminal:
        return await working
    with out.status("submitting"):
        return await working


async def _settled(target: str, kind: str, options: Options, *, alone: bool) -> list[Done]:
    try:
        done = await _DOORS[kind](target, options)
    except PlatformError as error:
        if alone:
            raise
        return [Done(target, error=error)]
    if alone and len(done) == 1 and done[0].error is not None:
        raise done[0].error
    return done


async def _from_repository(target: str, options: Options) -> list[Done]:
    from vskill_platform.domain.submission import Source
    from vskill_platform.intake.discover import submit_skills

    found = await submit_skills(target, options.path, every=options.every, source=Source.CLI)
    done = [_done(one) for one in found.results]
    left = len(found.not_submitted)
    notes = [
        f"{left} more skills are below it; --all submits them too" if left else "",
        "there are more skills than one command submits; use --path" if found.truncated else "",
        f"folders that no address can name: {', '.join(found.skipped[:5])}" if found.skipped else "",
    ]
    note = "; ".join(filter(None, notes))
    return [*done[:-1], msgspec.structs.replace(done[-1], note=note)] if done else []


def _done(settled: "Settled") -> Done:
    place = f"{settled.repo_url} {settled.skill_path}".strip()
    return Done(place, settled.submitted, settled.error)


async def _from_folder(target: str, options: Options) -> list[Done]:
    """The skill in a folder, or where it has no SKILL.md, every one below it."""
    folder = Path(target)
    here = await asyncio.to_thread((folder / SKILL_FILE).exists)
    places = [folder] if here else await asyncio.to_thread(skills_at, folder)
    if len(places) > 1 and options.slug is not None:
        raise InvalidInput(
            f"{target} holds {len(places)} skills.", field="--name", fix="leave it out, or name one folder"
        )
    return [await _from_skill_folder(place, options, alone=len(places) == 1) for place in places]


async def _from_skill_folder(folder: Path, options: Options, *, alone: bool) -> Done:
    try:
        files = await asyncio.to_thread(read_folder, folder)
        whole = await asyncio.to_thread(folder.resolve)
        return await _upload(str(folder), files, options, whole.name)
    except PlatformError as error:
        if alone:
            raise
        return Done(str(folder), error=error)


async def _from_archive(target: str, options: Options) -> list[Done]:
    files = await asyncio.to_thread(read_file, Path(target))
    name = Path(target).name
    ending = next((one for one in ARCHIVE_ENDINGS if name.lower().endswith(one)), "")
    return [await _upload(target, files, options, name[: len(name) - len(ending)])]


async def _upload(target: str, files: tuple[SkillFile, ...], options: Options, name: str) -> Done:
    from vskill_platform.intake.submit import submit_upload

    submitted = await submit_upload(files, namespace=options.namespace, slug=options.slug or name)
    return Done(target, submitted)


_DOORS = {"repository": _from_repository, "folder": _from_folder, "archive": _from_archive}


def _tell(done: Done) -> None:
    if done.error is not None:
        click.echo(f"{done.path}: {one_line(done.error)}", err=True)
    elif done.submitted is not None:
        submitted = done.submitted
        click.echo(_said(done.path, submitted.outcome.value, submitted.reason, submitted.submission))
    if done.note:
        click.echo(f"  {done.note}")


async def _followed(done: list[Done], *, quiet: bool) -> list[Done]:
    """The same with each record as it ended; where a person reads, a block for each says what became of it."""
    from vskill_platform.cli.submit_watch import follow_all, print_ends

    there = [(one, one.submitted, one.submitted.submission) for one in done if one.submitted]
    followed = [(one, submitted, record) for one, submitted, record in there if record is not None]
    ends = await follow_all([record for _, _, record in followed], quiet=quiet)
    if not quiet and ends:
        await print_ends([(one.path, end) for (one, _, _), end in zip(followed, ends, strict=True)])
    ended = {
        id(one): msgspec.structs.replace(one, submitted=msgspec.structs.replace(submitted, submission=end))
        for (one, submitted, _), end in zip(followed, ends, strict=True)
    }
    return [ended.get(id(one), one) for one in done]


def _result(done: Done) -> Result:
    from vskill_platform.actions.submission_views import submission_view
    from vskill_platform.actions.visibility import OPERATOR

    if done.submitted is None:
        return Result(done.path, "refused", str(done.error), None)
    record = done.submitted.submission
    view = submission_view(record, OPERATOR) if record else None
    return Result(done.path, done.submitted.outcome.value, done.submitted.reason, view)


def _said(path: str, outcome: str, reason: str, record: "Submission | None") -> str:
    place = f"{record.id}, run {record.run}, {record.state}" if record else "no submission"
    return f"{path}: {outcome} ({place}){': ' + reason if reason else ''}"
