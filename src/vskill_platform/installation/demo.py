"""A first start that is not empty: the bundled examples, good and bad, submitted through intake like any others.

A server calls `load` in the background. It submits the examples' repositories commit by commit, so that skills get
several versions, and records its progress: a second start submits nothing. A store that holds other work is left alone.
"""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from vskill_core.errors import PlatformError, Unsupported
from vskill_core.identity import normalise, submission_id
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions.submission import EntryPoint
from vskill_platform.intake.discover import Wanted, submit_many
from vskill_platform.sources import examples
from vskill_platform.submission_store import count_submissions, read_submission
from vskill_platform.worker_context import Env, require_env, run_with_worker_env

#: A repository that newcomers are invited to submit themselves.
TOUR_URL = "https://github.com/vskill-examples/tour"
#: How long one commit's skills may take to be decided before the next commit follows.
PATIENCE_S = 60.0
LOOK_EVERY_S = 0.1
_PROGRESS_FILE = "progress.json"


class DemoProgress(msgspec.Struct, frozen=True):
    """How far the examples were submitted."""

    #: The last commit whose skills are all submitted and decided.
    commit: int = 0
    finished: bool = False


async def load(env: Env, patience_s: float = PATIENCE_S) -> None:
    """Submit the examples if the store is empty, or if that was begun. Errors are only logged: except for a
    cancellation, this never raises."""
    try:
        if await run_with_worker_env(env, _is_wanted):
            await run_with_worker_env(env, lambda: submit_examples(patience_s))
    except Exception as error:  # noqa: BLE001 - an error in the examples must not end a server
        env.log.warning("examples were not submitted", error=repr(error))


async def submit_examples(patience_s: float = PATIENCE_S) -> None:
    """Submit every commit of the demonstration, one after the other, from where the last start stopped."""
    env = require_env("kv")
    root = examples.examples_folder(env.settings)
    progress = await _begin(root)
    if progress.finished:
        return
    last = max(one.submit for one in examples.bundled_repositories())
    for commit in range(progress.commit + 1, last + 1):
        await _submit_commit(root, commit, patience_s)
        await asyncio.to_thread(_note, root, DemoProgress(commit))
    for repository in examples.bundled_repositories():
        await asyncio.to_thread(examples.write_commit, repository, root, repository.commits)
    await asyncio.to_thread(_note, root, DemoProgress(last, finished=True))
    env.log.info("examples submitted", repositories=len(examples.bundled_repositories()))


async def _is_wanted() -> bool:
    """Whether the store is empty, or the examples were begun and not finished."""
    root = examples.examples_folder(require_env("kv").settings)
    begun = await asyncio.to_thread((root / _PROGRESS_FILE).exists)
    return begun or (await count_submissions(audiences=EVERYTHING)).total == 0


async def _begin(root: Path) -> DemoProgress:
    """The progress of the last start. If the store was emptied meanwhile, start again, repositories too."""
    if (await count_submissions(audiences=EVERYTHING)).total == 0:
        await asyncio.to_thread(shutil.rmtree, root, ignore_errors=True)
    return await asyncio.to_thread(_read_progress, root)


async def _submit_commit(root: Path, commit: int, patience_s: float) -> None:
    """Bring the repositories to this commit, submit what it changes, and wait until it is decided."""
    wanted: list[Wanted] = []
    for repository in examples.bundled_repositories():
        if commit <= min(repository.commits, repository.submit):
            await _write(repository, root, commit)
            wanted += _changed_skills(repository, commit)
    for settled in await submit_many(wanted, source=EntryPoint.CLI):
        if settled.error is not None:
            _tell_refused(settled.repo_url, settled.skill_path, settled.error)
    await _until_decided(wanted, patience_s)


async def _write(repository: examples.ExampleRepository, root: Path, commit: int) -> None:
    try:
        await asyncio.to_thread(examples.write_commit, repository, root, commit)
    except OSError as error:
        raise Unsupported(f"the examples cannot be written to {root}: {error}") from error


def _changed_skills(repository: examples.ExampleRepository, commit: int) -> list[Wanted]:
    return [Wanted(repository.url, one.name) for one in repository.skills if one.changes_in(commit)]


def _tell_refused(repo_url: str, path: str, error: PlatformError) -> None:
    require_env("log").log.warning("an example was refused", place=f"{repo_url} {path}", reason=str(error))


async def _until_decided(wanted: Sequence[Wanted], patience_s: float) -> None:
    """Wait, with a timeout, until all are decided: the next version needs that, but there may be no worker."""
    waiting = {submission_id(normalise(one.repo_url, one.skill_path)) for one in wanted}
    try:
        async with asyncio.timeout(patience_s):
            while True:
                waiting = {one for one in waiting if not await _is_decided(one)}
                if not waiting:
                    return
                await asyncio.sleep(LOOK_EVERY_S)
    except TimeoutError:
        require_env("log").log.info("examples are not decided yet", waiting=len(waiting))


async def _is_decided(number: str) -> bool:
    entry = await read_submission(number)
    return entry is None or not entry[0].state.moving


def _read_progress(root: Path) -> DemoProgress:
    try:
        return msgspec.json.decode((root / _PROGRESS_FILE).read_bytes(), type=DemoProgress)
    except (FileNotFoundError, msgspec.DecodeError):
        return DemoProgress()


def _note(root: Path, progress: DemoProgress) -> None:
    root.mkdir(parents=True, exist_ok=True)
    (root / _PROGRESS_FILE).write_bytes(msgspec.json.encode(progress))
