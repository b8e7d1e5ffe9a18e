"""Every scheduled job, in one visible list. Each has its own interval, budget and record, so a slow or broken job does
not block the others."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import msgspec

from vskill_core.errors import BlobUnavailable, CursorGone
from vskill_platform.external_scan.due import LookPosition, request_due_scans
from vskill_platform.notifications.deliveries import find_notices, find_owed, find_recalls, find_reports
from vskill_platform.queue.firings import look_at_alerts
from vskill_platform.queue.job_health import JOB_SPECS, JobSpec
from vskill_platform.queue.recovery import recover_stuck_submissions, recover_tasks
from vskill_platform.stages import rescan
from vskill_platform.stages.repo_check import RepoCheckProgress, ask_for_checks
from vskill_platform.stages.upstreams import ask_for_syncs
from vskill_platform.store.people.source_credentials import seal_again
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.store.recall.first_management import finish_preparations
from vskill_platform.store.review.change_requests import end_unanswered
from vskill_platform.store.skills.names import name_shown_skills
from vskill_platform.store.skills.reputation import follow_installs, refresh_standing
from vskill_platform.store.skills.vocabulary import VocabularyProgress, follow_words
from vskill_platform.store.verdicts.cooldowns import reapply_policy
from vskill_platform.upkeep import collector
from vskill_platform.upkeep import scrub as scrubbing
from vskill_platform.worker_context import require_env

#: How long changes can be followed back.
CHANGES_KEPT_MS = 7 * 24 * 3_600_000
#: A commit can be later than the times in it, by less than this. A notice found twice is delivered once.
OWED_SLACK_MS = 600_000
#: Steps that each part of the notices takes in one run; the next run goes on.
NOTICE_STEPS = 10

Place = TypeVar("Place", str, int)

Progress = TypeVar("Progress", bound=msgspec.Struct)

JobState = dict[str, str | int | None]
RunJob = Callable[[JobState], Awaitable[JobState]]


class Job(JobSpec, frozen=True):
    """Work that is due again and again."""

    #: Gets the state of the last run and returns the next one. Changes that it makes to the state that it was given
    #: are kept even if it fails.
    run: RunJob


async def recover(state: JobState) -> JobState:
    """Requeue the next page of waiting submissions and tasks, from where the last run stopped."""
    submissions = await recover_stuck_submissions(after=_text(state.get("after")))
    tasks = await recover_tasks(
        after=_text(state.get("tasks_after")), ahead_after=_text(state.get("tasks_ahead_after"))
    )
    return {
        "after": submissions.after,
        "tasks_after": tasks.after,
        "tasks_ahead_after": tasks.ahead_after,
    }


def _text(value: str | int | None) -> str | None:
    return value if isinstance(value, str) else None


async def reapply(state: JobState) -> JobState:
    """Bring submissions and skills in line with the blocklist, until a pass changes nothing."""
    applied = state.get("applied")
    known = applied if isinstance(applied, int) else None
    return {"applied": await reapply_blocklist(known, judge_again=rescan.request_rescan)}


async def follow_policy(state: JobState) -> JobState:
    """Have what waits by a rule decided again if the policy has changed."""
    return {"applied": await reapply_policy(_text(state.get("applied")))}


async def notify(state: JobState) -> JobState:
    """Tell of what was decided, reported, withdrawn or restored since the last run, a bounded number per run.

    Each part keeps its own progress, even if another part fails or the budget ends.
    """
    began, serial = require_env("kv").kv.now(), state.get("serial")
    parts = await asyncio.gather(
        _take_steps(state, "cursor", _text(state.get("cursor")), find_notices),
        _take_steps(state, "serial", serial if isinstance(serial, int) else None, find_recalls),
        _take_steps(state, "reports", _text(state.get("reports")), find_reports),
        return_exceptions=True,
    )
    # After the others: a part whose cursor is gone adds to what is owed.
    ended = (*parts, *await asyncio.gather(_tell_owed(state), return_exceptions=True))
    errors = [error for error in ended if isinstance(error, BaseException)]
    for error in errors[1:]:
        require_env("log").log.error("another part of the notices failed", error=str(error))
    for error in errors:
        raise error
    if all(ended):
        state["told_until"] = began
    return state


async def _take_steps(
    state: JobState, name: str, place: Place | None, look: Callable[[Place | None], Awaitable[Place]]
) -> bool:
    """Take up to NOTICE_STEPS steps; whether nothing is left. If the store does not know the cursor (another store's,
    or too old), start from now and note what was written since the last run as owed."""
    for _ in range(NOTICE_STEPS):
        before = place
        try:
            place = await look(place)
        except CursorGone:
            place = await look(None)
            _owe(state)
        state[name] = place
        if place == before:
            return True
    return False


def _owe(state: JobState) -> None:
    told_until = state.get("told_until")
    if isinstance(told_until, int):
        require_env("log").log.info("notices go on by the records", told_until=told_until)
        state |= {"owed_since": told_until - OWED_SLACK_MS, "owed_after": None}


async def _tell_owed(state: JobState) -> bool:
    """Find owed notices by the records; whether nothing is left."""
    for _ in range(NOTICE_STEPS):
        since = state.get("owed_since")
        if not isinstance(since, int):
            return True
        state["owed_after"] = await find_owed(since, _text(state.get("owed_after")))
        if state["owed_after"] is None:
            del state["owed_since"], state["owed_after"]
    return False


async def watch_alerts(state: JobState) -> JobState:
    return {"firing": await look_at_alerts(_text(state.get("firing")) or "[]")}


async def request_rescans(state: JobState) -> JobState:
    """Ask for rescans until the current rules have judged every live version, then apply what is held.
    Rescans by the policy may hold more after that."""
    finished = _text(state.get("finished"))
    asked = await rescan.request_due_rescans(_text(state.get("asked")) or finished)
    is_due = asked is not None and (asked != finished or await rescan.holds_take_downs())
    if is_due and await rescan.release_take_downs():
        finished = asked
    return {"asked": asked, "finished": finished}


async def look_after(state: JobState) -> JobState:
    """Ask for the checks of repositories that are due, a few at a time."""
    outstanding = tuple((_text(state.get("outstanding")) or "").split())
    follows_after = _text(state.get("follows_after"))
    progress = await ask_for_checks(RepoCheckProgress(_text(state.get("after")), outstanding, follows_after))
    return {
        "after": progress.after,
        "outstanding": " ".join(progress.outstanding),
        "follows_after": progress.follows_after,
    }


async def follow(state: JobState) -> JobState:
    return {"cursor": await follow_installs(_text(state.get("cursor")))}


async def scrub(state: JobState) -> JobState:
    """Read and verify content, from where the last run stopped. That place is kept also where this run fails."""
    progress = await scrubbing.scrub(msgspec.convert(state, scrubbing.ScrubProgress))
    state |= msgspec.structs.asdict(progress)
    if progress.unread_in_a_row >= scrubbing.MOST_UNREAD:
        raise BlobUnavailable("stored content cannot be read, several pieces in a row; the log says why")
    return state


async def sweep() -> None:
    """Remove expired caches and changes that nobody can ask for any more."""
    kv = require_env("kv").kv
    while await kv.sweep(changes_before=kv.now() - CHANGES_KEPT_MS):
        pass


def _begin_anew(work: Callable[[], Awaitable[object]]) -> RunJob:
    """Work that keeps nothing for its next run."""

    async def run(_: JobState) -> JobState:
        await work()
        return {}

    return run


def _go_on(kind: type[Progress], work: Callable[[Progress], Awaitable[Progress]]) -> RunJob:
    """Work that goes on from its own progress, whose fields are the job's state."""

    async def run(state: JobState) -> JobState:
        return msgspec.structs.asdict(await work(msgspec.convert(state, kind)))

    return run


#: What each job does, by its name.
_RUNS: dict[str, RunJob] = {
    "recovery": recover,
    "blocklist": reapply,
    "policy": follow_policy,
    "notices": notify,
    "alerts": watch_alerts,
    "rescans": request_rescans,
    "repositories": look_after,
    "upstreams": _begin_anew(ask_for_syncs),
    "external-scans": _go_on(LookPosition, request_due_scans),
    "namespaces": _begin_anew(partial(finish_preparations, rescan.request_rescan)),
    "names": _begin_anew(name_shown_skills),
    "standing": _begin_anew(refresh_standing),
    "installs": follow,
    "vocabulary": _go_on(VocabularyProgress, follow_words),
    "answers": _begin_anew(end_unanswered),
    "scrub": scrub,
    "collector": _begin_anew(collector.collect),
    "credentials": _begin_anew(seal_again),
    "sweep": _begin_anew(sweep),
}

JOBS = tuple(Job(**msgspec.structs.asdict(spec), run=_RUNS[spec.name]) for spec in JOB_SPECS)
