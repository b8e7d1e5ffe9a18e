"""`submit`: put skills on the queue of this machine or of a registry: from repositories, local folders and archives."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from vskill_client.destination import Caller, Destination, current_destination, in_thread
from vskill_client.group import one_line
from vskill_client.output import StatusLine, json_option, print_json
from vskill_client.submit_outcomes import follow_all, print_ends
from vskill_client.wire.submissions import (
    SHOW,
    SUBMIT,
    UPLOAD,
    PlaceOutcome,
    SubmissionRequest,
    SubmissionView,
    SubmitSkill,
    UploadSkill,
)
from vskill_core.archives import tar_archive
from vskill_core.content import SkillFile
from vskill_core.errors import InvalidInput, NoSkillFound, PlatformError
from vskill_core.folders import is_plugin_folder, read_place, skill_name_at, skills_at
from vskill_core.identity import SKILL_FILE
from vskill_core.kind import Kind
from vskill_core.naming import slugify

#: How many targets are submitted at the same time.
AT_ONCE = 8
#: The entry point that the record names.
SOURCE = "cli"
#: The exit code after Ctrl-C, as of a shell.
INTERRUPTED = 130


class Result(msgspec.Struct, frozen=True):
    """What became of one skill."""

    #: The target, and where that is a repository, the skill's folder in it.
    path: str
    #: As at every door; `refused` where nothing was written.
    outcome: str
    reason: str
    submission: SubmissionView | None
    #: Where a browser follows what was submitted with it; empty where nothing was.
    page: str = ""


class Options(msgspec.Struct, frozen=True):
    """What the command line says beside the targets."""

    path: str
    every: bool
    namespace: str
    slug: str | None
    kind: Kind | None = None
    #: Whether what is submitted may wait for another run of the place, which is followed too.
    next_run: bool = False
    #: The uploads so far by name: a second one of a name would replace the first.
    uploads: dict[str, Path] = {}


class SubmittedSkill(msgspec.Struct, frozen=True):
    """One skill after its submission."""

    path: str
    outcome: PlaceOutcome | None = None
    view: SubmissionView | None = None
    error: PlatformError | None = None
    note: str = ""
    #: Where a browser follows what was submitted with it.
    page: str = ""


@click.command()
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option("--path", default="", help="The skill's folder in the repository; the address may name it too.")
@click.option(
    "--all", "every", is_flag=True, help="Also submit the skills below a folder that is a skill itself."
)
@click.option(
    "--namespace",
    default="",
    help="Upload namespace: one's own, which is the default, or one that a team shares. For the operator of this "
    "machine any, by default `local`.",
)
@click.option(
    "--name",
    "slug",
    help="The skill's name in the namespace; otherwise as SKILL.md says, or the folder's name.",
)
@click.option(
    "--kind",
    type=click.Choice([one.value for one in Kind]),
    help="What it is published as, for its maintainer to say: otherwise as it was, and at first a plugin where there "
    "is a manifest of one and no SKILL.md at its root.",
)
@click.option(
    "--watch/--no-watch",
    default=None,
    help="Follow each submission to its end and print the result; exit code 1 unless all are published. "
    "On by default if the output is a terminal.",
)
@json_option
def submit(
    *,
    targets: tuple[str, ...],
    path: str,
    every: bool,
    namespace: str,
    slug: str | None,
    kind: str | None,
    watch: bool | None,
    as_json: bool,
) -> None:
    """Submit skills and plugins from repositories, local folders and archives.

    A TARGET is the address of a repository (https://github.com/owner/repo), a folder with a SKILL.md or a plugin's
    manifest at its root or with skills below it, or a zip, tar or tar.gz of one. From a repository everything is
    submitted, or what is at --path. What is in a plugin is a part of it. Exit code 1 if any was refused.
    """
    watched = (sys.stdout.isatty() and not as_json) if watch is None else watch
    if slug is not None and len(targets) > 1:
        raise click.UsageError("--name names one skill: give one TARGET with it")
    for target in targets:
        _check_target(target)
    options = Options(path, every, namespace, slug, Kind(kind) if kind else None)
    submit_targets(current_destination(), targets, options, watched=watched, as_json=as_json)


def submit_targets(
    destination: Destination,
    targets: Sequence[str],
    options: Options,
    *,
    watched: bool,
    as_json: bool,
) -> None:
    """Submit them, and print what became of them; SystemExit with 1 unless all is well."""
    submitting = _Submitting(targets, options, quiet=as_json)

    async def submit_all(caller: Caller) -> list[SubmittedSkill]:
        done = await submitting.submit_all(caller)
        if not watched:
            return done
        return await _follow(caller, done, quiet=as_json, next_run=options.next_run)

    try:
        results = [_result(one) for one in destination.run(submit_all)]
    except KeyboardInterrupt:
        _tell_interrupted(submitting)
        raise SystemExit(INTERRUPTED) from None
    if as_json:
        print_json(results)
    refused = any(one.outcome == "refused" for one in results)
    unpublished = not all(one.submission and one.submission.category == "published" for one in results)
    if refused or (watched and unpublished):
        raise SystemExit(1)


def _tell_interrupted(submitting: "_Submitting") -> None:
    """What was submitted before Ctrl-C, and how to follow it."""
    submitted = {one.path: one.view.id for one in submitting.done if one.view is not None}
    if not submitted:
        click.echo("\nStopped. Nothing was submitted, as far as is known.", err=True)
        return
    click.echo("\nStopped watching. What was submitted stays on the queue; follow it with:", err=True)
    for path, submission_id in submitted.items():
        click.echo(f"  {current_destination().command_line('status', submission_id)}  # {path}", err=True)


def _check_target(target: str) -> None:
    """UsageError unless it is on disk or looks like the address of a repository."""
    first, slash, _ = target.partition("/")
    named = slash and "." in first.strip(".") and target.count("/") > 1
    is_address = "://" in target or target.startswith("git@") or named
    if not is_address and not Path(target).exists():
        raise click.UsageError(f"{target!r} does not exist, and is not the address of a repository.")


class _Submitting:
    """One run of the command, with what is done so far."""

    def __init__(self, targets: Sequence[str], options: Options, *, quiet: bool) -> None:
        # What exists on disk is never taken for an address.
        self._targets = {one: _from_disk if Path(one).exists() else _from_repository for one in targets}
        self._options = options
        self._quiet = quiet
        self.done: list[SubmittedSkill] = []

    async def submit_all(self, caller: Caller) -> list[SubmittedSkill]:
        """Submit several targets at once and print each result; a single refused target raises its error."""
        import asyncio

        slots = asyncio.Semaphore(AT_ONCE)

        async def submit_one(target: str) -> list[SubmittedSkill]:
            async with slots:
                done = await self._submit_target(caller, target)
            self.done += done
            if not self._quiet:
                _tell(done, status)
            return done

        with StatusLine("submitting", quiet=self._quiet) as status:
            done = await asyncio.gather(*map(submit_one, self._targets))
        return [skill for skills in done for skill in skills]

    async def _submit_target(self, caller: Caller, target: str) -> list[SubmittedSkill]:
        try:
            return await self._targets[target](caller, target, self._options)
        except PlatformError as error:
            if len(self._targets) == 1:
                raise
            return [SubmittedSkill(target, error=error)]


async def _from_repository(caller: Caller, target: str, options: Options) -> list[SubmittedSkill]:
    wanted = SubmitSkill(
        repo_url=target,
        skill_path=options.path or None,
        every=options.every,
        source=SOURCE,
        kind=options.kind,
    )
    try:
        found = await caller.call(SUBMIT, wanted)
    except NoSkillFound:
        if not options.path or options.every:
            raise
        # The folder is no skill itself: every one below it is meant.
        found = await caller.call(SUBMIT, msgspec.structs.replace(wanted, every=True))
    places = [
        (f"{one.repo_url or ''} {one.skill_path or ''}".strip(), one) for one in found.results or (found,)
    ]
    page = f"{caller.pages}{found.page}"
    done = [await _read_outcome(caller, place, one, page) for place, one in places]
    return [*done[:-1], msgspec.structs.replace(done[-1], note=_note(found))]


def _note(found: PlaceOutcome) -> str:
    left = len(found.not_submitted)
    notes = {
        f"{left} more skills are below it; --all submits them too": left,
        "not all skills were submitted; submit the others with --path": found.truncated,
        f"skipped, folder names that cannot be used in an address: {', '.join(found.skipped[:5])}": found.skipped,
        " ".join(found.elsewhere[:5]): found.elsewhere,
    }
    return "; ".join(note for note, applies in notes.items() if applies)


async def _read_outcome(caller: Caller, path: str, outcome: PlaceOutcome, page: str) -> SubmittedSkill:
    view = None
    if outcome.id is not None:
        view = await caller.call(SHOW, SubmissionRequest(submission_id=outcome.id))
    return SubmittedSkill(path, outcome, view, page=page)


async def _from_disk(caller: Caller, target: str, options: Options) -> list[SubmittedSkill]:
    """The skill in an archive or a folder, or where that has no SKILL.md, every one below it."""
    place = Path(target)
    here = await in_thread(
        lambda: place.is_file() or (place / SKILL_FILE).exists() or is_plugin_folder(place)
    )
    places = [place] if here else await in_thread(skills_at, place)
    if not here and places == [place]:
        message = f"There is no SKILL.md in {target} or below it; name the folder of a skill or plugin."
        raise NoSkillFound(message, field="TARGET")
    if len(places) > 1 and options.slug is not None:
        raise InvalidInput(
            f"{target} holds {len(places)} skills.", field="--name", fix="leave it out, or name one folder"
        )
    return [await _from_place(caller, one, options, alone=len(places) == 1) for one in places]


async def _from_place(caller: Caller, place: Path, options: Options, *, alone: bool) -> SubmittedSkill:
    try:
        return await _upload(caller, place, await in_thread(read_place, place), options)
    except PlatformError as error:
        if alone:
            raise
        return SubmittedSkill(str(place), error=error)


async def _upload(
    caller: Caller, place: Path, files: tuple[SkillFile, ...], options: Options
) -> SubmittedSkill:
    """An upload is called as its SKILL.md says, as on the page; where that gives no name, as its folder or archive. The
    registry reads the name; what can be told without YAML is looked at here, before anything is sent."""
    name = options.slug or _plain_name(files)
    if name:
        _require_other_name(options, name, place)
    archive = await in_thread(tar_archive, files)
    wanted = UploadSkill(archive=archive, name=options.slug or "", namespace=options.namespace, source=SOURCE)
    wanted = msgspec.structs.replace(wanted, kind=options.kind)
    try:
        outcome = await caller.call(UPLOAD, wanted)
    except InvalidInput as error:
        if options.slug or error.details.get("field") != "name":
            raise
        name = await in_thread(skill_name_at, place)
        _require_other_name(options, name, place)
        outcome = await caller.call(UPLOAD, msgspec.structs.replace(wanted, name=name))
    if outcome.skill_name:
        _require_other_name(options, outcome.skill_name, place)
    return await _read_outcome(caller, str(place), outcome, f"{caller.pages}{outcome.page}")


def _plain_name(files: Sequence[SkillFile]) -> str:
    """The name in the front matter, where it stands there as one plain line; empty elsewhere."""
    own = next((file for file in files if file.path == SKILL_FILE), None)
    text = own.data.decode("utf-8", "replace") if own else ""
    front, _, _ = text.lstrip("\ufeff").strip().removeprefix("---\n").partition("\n---")
    for line in front.splitlines():
        key, _, value = line.partition(":")
        if key == "name":
            name = value.partition(" #")[0].strip().strip("'\"")
            return slugify(name) if name.isascii() and name.replace("-", "").isalnum() else ""
    return ""


def _require_other_name(options: Options, name: str, place: Path) -> None:
    """A second upload of a name would replace the first."""
    other = options.uploads.setdefault(name, place)
    if other != place:
        message = f"{other} and {place} are both called {name}."
        raise InvalidInput(message, field="name", fix="rename one of them in its SKILL.md")


def _tell(done: Sequence[SubmittedSkill], status: StatusLine) -> None:
    """Print one line per skill; the status is hidden meanwhile, so that it does not mix with the text."""
    status.hide()
    for one in done:
        if one.error is not None:
            click.echo(f"{one.path}: {one_line(one.error)}", err=True)
        elif one.outcome is not None and one.outcome.error is not None:
            click.echo(f"{one.path}: Error: {one.outcome.error}", err=True)
        elif one.outcome is not None:
            click.echo(_outcome_line(one.path, one.outcome, one.view))
        if one.outcome is not None and one.outcome.version_note:
            click.echo(f"  {one.outcome.version_note}")
        if one.note:
            click.echo(f"  {one.note}")
    for page in dict.fromkeys(one.page for one in done if one.page):
        click.echo(f"  follow it at {page}")
    status.show()


async def _follow(
    caller: Caller, done: list[SubmittedSkill], *, quiet: bool, next_run: bool
) -> list[SubmittedSkill]:
    """Follow each run to its end and print its result, unless quiet."""
    views = {number: one.view for number, one in enumerate(done) if one.view is not None}
    ended = await follow_all(caller, list(views.values()), quiet=quiet)
    if next_run:
        now = [await caller.call(SHOW, SubmissionRequest(submission_id=one.id)) for one in ended]
        ended = await follow_all(caller, now, quiet=True) if now != ended else ended
    ends = dict(zip(views, ended, strict=True))
    if not quiet and ends:
        await print_ends(caller, [(done[number].path, end) for number, end in ends.items()])
    return [msgspec.structs.replace(one, view=ends.get(number)) for number, one in enumerate(done)]


def _result(done: SubmittedSkill) -> Result:
    if done.outcome is None:
        return Result(done.path, "refused", str(done.error), None)
    reason = done.outcome.error or done.outcome.reason or ""
    return Result(done.path, done.outcome.outcome, reason, done.view, done.page)


def _outcome_line(path: str, outcome: PlaceOutcome, view: SubmissionView | None) -> str:
    place = f"{view.id}, run {view.run}, {view.state}" if view else "no submission"
    return f"{path}: {outcome.outcome} ({place}){': ' + outcome.reason if outcome.reason else ''}"
