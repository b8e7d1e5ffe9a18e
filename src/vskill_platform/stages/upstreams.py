"""Upstreams brought up to date: a daily task lists what each offers, and a task for each entry that is wanted fetches
its files, keeps them by digest and submits them as an upload of the upstream's own namespace.

The task of an entry is the one request for it, whoever asks and how often. From the moment that the files are kept the
upstream has no say: what is verified, reviewed and served are those bytes.
"""

import msgspec

from vskill_core.content import DEFAULT_LIMITS, check_files, digest_of_files, skill_file_of
from vskill_core.errors import (
    NotFound,
    PlatformError,
    QuotaExceeded,
    RateLimited,
    SourceUnavailable,
    StoreUnavailable,
)
from vskill_platform.domain.operation.task import Task, TaskState, task_key
from vskill_platform.domain.people.namespace import PUBLIC, namespace_audiences
from vskill_platform.domain.skills.upstream import (
    BROUGHT_PER_HOUR,
    MOST_NAMED,
    Brought,
    Intake,
    LeftOutEntry,
    Offer,
    Upstream,
    UpstreamEntries,
    UpstreamEntry,
    UpstreamState,
    settle,
)
from vskill_platform.domain.submissions.submission import EntryPoint
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.intake.discover import AT_ONCE
from vskill_platform.intake.submit import IntakeOutcome, Request, declared_name, submit
from vskill_platform.machine.slots import some_at_a_time
from vskill_platform.records import Skips
from vskill_platform.sources.contract import Place
from vskill_platform.stages.follow import held_back
from vskill_platform.stages.upstream_sources import source_of
from vskill_platform.store.review.reports import file_report
from vskill_platform.store.skills.follows import grant_runs
from vskill_platform.store.skills.quotas import HOUR_MS
from vskill_platform.store.skills.upstreams import (
    UPSTREAM_BRING,
    UPSTREAM_SYNC,
    find_upstream,
    keep_found,
    list_upstreams,
    read_upstream_entries,
)
from vskill_platform.store.stored_content import keep_content
from vskill_platform.store.tasks import TaskEnd, ask_for, read_task
from vskill_platform.worker_context import require_env

#: A whole marketplace may name a hundred repositories.
SYNC_BUDGET_MS = 600_000


async def ask_for_syncs() -> None:
    """Have every upstream synchronised that is due."""
    now = require_env("kv").kv.now()
    for upstream in await list_upstreams():
        task, _ = await read_task(UPSTREAM_SYNC, upstream.name)
        is_asked = task is not None and task.state.active
        if not upstream.paused and upstream.due_at() <= now and not is_asked:
            await ask_for_sync(upstream)


async def ask_for_sync(upstream: Upstream) -> None:
    """Have it synchronised now, and once more where that is under way: what was changed meanwhile counts."""
    await ask_for(UPSTREAM_SYNC, upstream.name, {"upstream": upstream.name})


async def ask_for_entry(upstream: Upstream, entry: UpstreamEntry) -> Task:
    """The request for one entry: asked again for the same state of it, it is the same."""
    subject = {"upstream": upstream.name, "name": entry.name, "mark": entry.mark}
    task_id = f"{upstream.name}/{entry.name}"
    known, _ = await read_task(UPSTREAM_BRING, task_id)
    is_same = known is not None and not must_bring(known, entry)
    return await ask_for(UPSTREAM_BRING, task_id, subject, again=not is_same)


def must_bring(task: Task | None, entry: UpstreamEntry) -> bool:
    """Whether an entry that somebody wants was not fetched in this state."""
    return task is None or task.subject.get("mark") != entry.mark or task.state is TaskState.FAILED


# Synchronising.


async def sync_upstream(task: Task) -> TaskEnd:
    """List what an upstream has, and ask for what is wanted of it."""
    upstream = await find_upstream(task.subject["upstream"])
    if upstream is None or upstream.paused:
        return TaskEnd("the upstream is paused" if upstream else "the upstream was removed")
    known = await read_upstream_entries(upstream.name)
    try:
        offer = await source_of(upstream.kind).list_entries(upstream)
        listed, left = settle(upstream, offer, known)
    except StoreUnavailable:
        raise
    except PlatformError as error:
        problem, now = error.in_words, require_env("kv").kv.now()

        def fail(state: UpstreamState) -> UpstreamState:
            return msgspec.structs.replace(state, checked_at=now, problem=problem, go_on_at=0)

        await keep_found(upstream, fail)
        return TaskEnd(problem)
    asked, go_on_at = await _ask(upstream, listed)
    gone = await _withdrawn(upstream, offer, known, listed)
    found = f"{len(listed)} listed, {asked} asked for"
    await _report(upstream, gone)
    at = known.at if known.entries == listed else require_env("kv").kv.now()
    await _keep(upstream, offer, UpstreamEntries(listed, at), left, gone, found, go_on_at)
    return TaskEnd(found)


async def _ask(upstream: Upstream, listed: tuple[UpstreamEntry, ...]) -> tuple[int, int]:
    """Ask for what is new and wanted, and for what changed since it came. How many, and when the rest goes on."""
    tasks = await tasks_of(upstream, listed)
    due = [one for one in listed if must_bring(tasks.get(one.name), one)]
    if upstream.intake is Intake.ON_REQUEST:
        due = [one for one in due if one.name in tasks]
    room, next_hour = await grant_runs(upstream.namespace, len(due), BROUGHT_PER_HOUR) if due else (0, 0)
    await some_at_a_time(lambda one: ask_for_entry(upstream, one), due[:room], AT_ONCE)
    return min(room, len(due)), next_hour if len(due) > room else 0


async def tasks_of(upstream: Upstream, entries: tuple[UpstreamEntry, ...]) -> dict[str, Task]:
    """Those that were asked for, by the entry's name."""
    wanted = {task_key(UPSTREAM_BRING, f"{upstream.name}/{one.name}"): one.name for one in entries}
    settled = await require_env("kv").kv.get_many(wanted)
    for error in settled.failed.values():
        raise error
    skips = Skips("upstream_tasks")
    tasks = {wanted[key]: skips.decode(entry, Task) for key, entry in settled.found.items()}
    skips.report(require_env("kv"))
    return {name: task for name, task in tasks.items() if task is not None}


async def _withdrawn(
    upstream: Upstream, offer: Offer, known: UpstreamEntries, listed: tuple[UpstreamEntry, ...]
) -> dict[str, str]:
    """What was brought here and is not offered any more, by name with the reason."""
    here = {one.name for one in listed}
    offered = {one.name for one in offer.entries}
    missing = tuple(one for one in known.entries if one.name not in here and one.name not in offered)
    gone = {name: why for name, why in upstream.state.withdrawn.items() if name not in here}
    if offer.whole:
        gone |= dict.fromkeys(await tasks_of(upstream, missing), "The upstream does not have it any more.")
    return dict(sorted(gone.items())[:MOST_NAMED])


async def _report(upstream: Upstream, gone: dict[str, str]) -> None:
    """What was withdrawn there since the last look, as reports that a reviewer decides about."""
    namespace = upstream.namespace
    for name in gone.keys() - upstream.state.withdrawn.keys():
        try:
            await file_report(
                f"{namespace}/{name}",
                reporter=f"upstream:{upstream.name}",
                reason=gone[name],
                audiences=namespace_audiences(namespace) | {PUBLIC},
            )
        except NotFound:
            continue  # nothing of it was published


async def _keep(
    upstream: Upstream,
    offer: Offer,
    entries: UpstreamEntries,
    left: tuple[LeftOutEntry, ...],
    gone: dict[str, str],
    found: str,
    go_on_at: int,
) -> None:
    now = require_env("kv").kv.now()
    state = UpstreamState(
        checked_at=now,
        good_at=now,
        found=" ".join(filter(None, (found, offer.found))),
        listed=len(entries.entries),
        left_out=left[:MOST_NAMED],
        withdrawn=gone,
        go_on_at=go_on_at,
    )
    await keep_found(upstream, lambda _: state, entries)


# Bringing one entry.


async def bring_entry(task: Task) -> TaskEnd:
    """Fetch the files of an entry, keep them and submit them. What is refused is asked for again when it changes."""
    upstream = await find_upstream(task.subject["upstream"])
    if upstream is None:
        return TaskEnd("the upstream was removed")
    now = require_env("kv").kv.now()
    if upstream.paused:
        return TaskEnd("the upstream is paused", again_at=now + HOUR_MS)
    entry = (await read_upstream_entries(upstream.name)).find(task.subject["name"])
    if entry is None:
        return TaskEnd("the upstream does not list it any more")
    try:
        if reason := await held_back(upstream.place_of(entry)):
            return TaskEnd(reason)
        return TaskEnd(await _submit(upstream, entry, await source_of(upstream.kind).fetch(upstream, entry)))
    except (StoreUnavailable, SourceUnavailable):
        raise
    except (RateLimited, QuotaExceeded) as error:
        return TaskEnd(error.in_words, again_at=now + HOUR_MS)
    except PlatformError as error:
        return TaskEnd(f"refused: {error.in_words}")


async def _submit(upstream: Upstream, entry: UpstreamEntry, brought: Brought) -> str:
    place = upstream.place_of(entry)
    check_files(brought.files, DEFAULT_LIMITS)
    text = skill_file_of(brought.files, "among the files of the upstream").data
    digest = digest_of_files(brought.files)
    await keep_content(digest, brought.files)
    seen = Place(place, brought.commit, text)
    namespace = upstream.namespace
    by = SubmittedBy(
        audiences=namespace_audiences(namespace) | {PUBLIC}, namespace=namespace, follow=place.repo_key
    )
    done = await submit(
        Request(place, EntryPoint.CRAWLER, by, upload=digest, declared_name=declared_name(seen), place=seen)
    )
    if done.outcome is IntakeOutcome.BLOCKED:
        return f"It is blocked: {done.reason}"
    return f"{done.outcome.value}: {digest}"
