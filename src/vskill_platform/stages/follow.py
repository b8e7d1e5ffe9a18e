"""Taking in the folders of a followed repository, as part of its check: a new folder is submitted, a changed one gets
another run, and one that has gone is marked. Nothing is taken down.

Folders are submitted as the namespace and by nobody in particular, so no maintainer decides about them as about
somebody else's work. What was not taken in is tried again by the next check.
"""

from collections.abc import Collection

import msgspec

from vskill_core.errors import NoSkillFound, PlatformError, RateLimited, StoreUnavailable, Unsupported
from vskill_core.identity import Identity
from vskill_platform.domain.operation.task import Task
from vskill_platform.domain.people.namespace import PUBLIC, namespace_audiences, namespace_of
from vskill_platform.domain.skills.skill import VersionStatus
from vskill_platform.domain.submissions.submission import EntryPoint
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.intake.discover import AT_ONCE
from vskill_platform.intake.submit import IntakeOutcome, Request, declared_name, submit
from vskill_platform.machine.slots import some_at_a_time
from vskill_platform.sources.contract import Place, Repositories, Survey
from vskill_platform.store.people.source_credentials import sources_for
from vskill_platform.store.repo_health import Observation, Reach
from vskill_platform.store.skills.follows import (
    MOST_FOLDERS,
    MOST_NAMED,
    RUNS_PER_HOUR,
    Follow,
    FollowState,
    Untaken,
    grant_runs,
    keep_state,
)
from vskill_platform.store.skills.quotas import HOUR_MS
from vskill_platform.store.skills.skills import place_of
from vskill_platform.worker_context import require_env


class Taking(msgspec.Struct, frozen=True):
    """What one look at a repository's folders is about to do."""

    #: By path.
    present: dict[str, Place]
    #: New or changed, and within the limits.
    chosen: tuple[Place, ...]
    #: When those go on that are left for the next hour; 0: none.
    go_on_at: int
    untaken: tuple[Untaken, ...]
    #: Paths that were there before.
    missing: frozenset[str]


async def take_in(follow: Follow, seen: Observation) -> frozenset[str]:
    """Bring a followed repository up to date with what its check found. The paths that were looked at: nothing else
    has to start their runs."""
    commit, state = seen.facts.commit, follow.state
    problem = seen.detail if commit is None or seen.status is not Reach.REACHABLE else ""
    if seen.status is Reach.REACHABLE and seen.facts.moved_to:
        problem = f"The repository moved to {seen.facts.moved_to}. Follow it there."
    if problem:
        is_empty = seen.status is Reach.REACHABLE and commit is None
        await _keep_problem(follow, problem, all_gone=is_empty)
        return frozenset()
    if commit == state.commit and not state.untaken:
        await keep_state(follow, _looked)
        return frozenset(state.taken)
    try:
        survey = await (await _repositories(follow)).survey(follow.identity, commit)
    except StoreUnavailable:
        raise
    except PlatformError as error:
        await _keep_problem(follow, error.message, all_gone=isinstance(error, NoSkillFound))
        return frozenset()
    if survey.identity.repo_key != follow.identity.repo_key:
        # Only the fetch was redirected: what lies there is somebody else's to submit.
        await _keep_problem(
            follow, f"The repository moved to {survey.identity.url}. Follow it there.", all_gone=False
        )
        return frozenset()
    taking = await _choose(follow, survey)
    results = await some_at_a_time(lambda place: _take(follow, place), taking.chosen, AT_ONCE)
    refused = tuple(one for one in results if one is not None)
    await keep_state(follow, lambda known: _renew(known, taking, refused, commit or ""))
    return frozenset(taking.present)


async def _repositories(follow: Follow) -> Repositories:
    sources = await sources_for(follow.identity, with_credential=True)
    if not isinstance(sources, Repositories):
        raise Unsupported("The configured source cannot look into repositories.")
    return sources


async def _keep_problem(follow: Follow, problem: str, *, all_gone: bool) -> None:
    now = require_env("kv").kv.now()

    def change(known: FollowState) -> FollowState:
        gone = _gone(known, {*known.taken, *known.gone}, now) if all_gone else known.gone
        taken = {} if all_gone else known.taken
        return msgspec.structs.replace(
            known, commit="", checked_at=now, problem=problem, gone=gone, taken=taken, go_on_at=0
        )

    await keep_state(follow, change)


def _looked(known: FollowState) -> FollowState:
    now = require_env("kv").kv.now()
    return msgspec.structs.replace(known, checked_at=now, problem="")


def _gone(known: FollowState, missing: Collection[str], now: int) -> dict[str, int]:
    """Since when which folders are missing, those that went last first."""
    since = {path: known.gone.get(path, now) for path in sorted(missing)}
    return dict(sorted(since.items(), key=lambda one: -one[1])[:MOST_NAMED])


async def _choose(follow: Follow, survey: Survey) -> Taking:
    """Which folders to take in now."""
    state, namespace = follow.state, namespace_of(follow.identity)
    # A skill in a plugin is a part of it, but one that was taken in on its own stays.
    parts = survey.parts()
    found = {
        path: one
        for one in survey.places
        if follow.wants(path := one.identity.path)
        and (path in state.taken or path in state.gone or path not in parts)
    }
    ordered = sorted(found, key=lambda path: (path not in state.taken, path))
    present = {path: found[path] for path in sorted(ordered[:MOST_FOLDERS])}
    wanted = [place for path, place in present.items() if state.taken.get(path) != place.files]
    room, next_hour = await grant_runs(namespace, len(wanted)) if wanted else (0, 0)
    over = f"A followed repository has at most {MOST_FOLDERS} skills, and this is one more."
    odd = "No address can hold the folder's name."
    later = f"What {namespace} follows starts {RUNS_PER_HOUR} runs an hour; this one waits for the next."
    untaken = [
        *(Untaken(path, over) for path in ordered[MOST_FOLDERS:]),
        *(Untaken(path, odd) for path in survey.skipped),
        *(Untaken(place.identity.path, later) for place in wanted[room:]),
    ]
    if survey.truncated:
        untaken.append(
            Untaken("", "The repository has more skills than are listed, so some may be missing here.")
        )
    missing = () if survey.truncated else {*state.taken, *state.gone}.difference(found)
    go_on_at = next_hour if len(wanted) > room else 0
    return Taking(present, tuple(wanted[:room]), go_on_at, tuple(untaken), frozenset(missing))


async def _take(follow: Follow, place: Place) -> Untaken | None:
    """Submit one folder; what is returned was refused."""
    waits = False
    try:
        reason = await held_back(place.identity) or await hand_in(place, follow.identity)
    except StoreUnavailable:
        raise
    except PlatformError as error:
        reason, waits = error.in_words, isinstance(error, RateLimited)
    return Untaken(place.identity.path, reason, waits) if reason else None


async def held_back(place: Identity) -> str:
    """What was taken down is not brought back by a change at its source: that is a reviewer's to do."""
    skill = (await place_of(place)).skill
    if skill is None:
        return ""
    last = skill.versions[-1].status if skill.versions else None
    is_down = skill.withdrawn or last is VersionStatus.TAKEN_DOWN
    return "It was taken down or deleted here, so somebody has to restore it first." if is_down else ""


async def hand_in(
    place: Place, followed: Identity, upload: str | None = None, task: Task | None = None
) -> str:
    """Submit a place as its namespace and by nobody in particular, with the files that are kept already, if they are.
    Why not; empty where it was done. ClaimLost where the task that brought them is another worker's by now."""
    namespace = namespace_of(followed)
    readable = namespace_audiences(namespace) | {PUBLIC}
    by = SubmittedBy(audiences=readable, namespace=namespace, follow=followed.repo_key)
    name = declared_name(place)
    done = await submit(
        Request(place.identity, EntryPoint.CRAWLER, by, upload, declared_name=name, place=place, task=task)
    )
    return f"It is blocked: {done.reason}" if done.outcome is IntakeOutcome.BLOCKED else ""


def _renew(known: FollowState, taking: Taking, refused: tuple[Untaken, ...], commit: str) -> FollowState:
    """The state after a look."""
    now, refused_paths = require_env("kv").kv.now(), {one.path for one in refused}
    done = [one for one in taking.chosen if one.identity.path not in refused_paths]
    taken = {path: files for path, files in known.taken.items() if path not in taking.missing}
    new = sum(one.identity.path not in taken for one in done)
    gone = _gone(known, taking.missing, now)
    counts = {"new": new, "changed": len(done) - new, "gone": len(gone.keys() - known.gone.keys())}
    told = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    taken |= {one.identity.path: one.files for one in done}
    waits = now + HOUR_MS if any(one.waits for one in refused) else 0
    for what, count in {**counts, "refused": len(refused)}.items():
        require_env("metrics").metrics.followed_folders.labels(what).inc(count)
    return FollowState(
        commit=commit,
        checked_at=now,
        found=f"{told or 'nothing new'} at {commit[:12]}",
        taken=taken,
        gone=gone,
        untaken=(*taking.untaken, *refused)[:MOST_NAMED],
        go_on_at=taking.go_on_at or waits,
    )
