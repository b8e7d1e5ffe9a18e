"""Upstreams brought up to date: a daily task lists what each offers, and a task for each entry that is wanted fetches
its files, keeps them by digest and submits them as an upload of the upstream's own namespace.

The task of an entry is the one request for it, whoever asks and how often. From the moment that the files are kept the
upstream has no say: what is verified, reviewed and served are those bytes.
"""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from vskill_core.content import DEFAULT_LIMITS, SkillFile, check_files, digest_of_files, skill_file_of
from vskill_core.errors import (
    BlobUnavailable,
    ClaimLost,
    NotFound,
    PlatformError,
    QuotaExceeded,
    RateLimited,
    SourceUnavailable,
    StoreUnavailable,
)
from vskill_core.identity import Identity
from vskill_platform.domain import keys
from vskill_platform.domain.operation.task import Task, TaskState, task_key
from vskill_platform.domain.people.namespace import PUBLIC, namespace_audiences
from vskill_platform.domain.skills.upstream import (
    BROUGHT_PER_HOUR,
    MOST_NAMED,
    Brought,
    Intake,
    Offer,
    Upstream,
    UpstreamEntries,
    UpstreamEntry,
    settle,
)
from vskill_platform.intake.discover import AT_ONCE
from vskill_platform.ledger.kv.entries import Delete, Put
from vskill_platform.machine.slots import some_at_a_time
from vskill_platform.records import decode_readable, iter_entries, persist, read_entries
from vskill_platform.sources.contract import Place
from vskill_platform.stages.follow import hand_in, held_back
from vskill_platform.stages.upstream_sources import SOURCES
from vskill_platform.store.review.reports import file_report
from vskill_platform.store.skills.follows import grant_runs, keep_state
from vskill_platform.store.skills.quotas import HOUR_MS
from vskill_platform.store.skills.upstreams import (
    UPSTREAM_BRING,
    UPSTREAM_REMEMBER,
    UPSTREAM_SYNC,
    find_upstream,
    list_upstreams,
    read_upstream_entries,
)
from vskill_platform.store.stored_content import keep_content
from vskill_platform.store.tasks import TaskEnd, ask_for, read_task
from vskill_platform.store.verdicts.memory import RememberedSkill, refresh_memory
from vskill_platform.worker_context import require_env
from vskill_scan.memory.making import facts_of

#: A whole marketplace may name a hundred repositories.
SYNC_BUDGET_MS = 600_000
#: How the outcome of a request begins that has to be made again.
_NOT_FETCHED = "not fetched: "


async def ask_for_syncs() -> None:
    """Have every upstream synchronised that is due."""
    now = require_env("kv").kv.now()
    for upstream in await list_upstreams():
        task, _ = await read_task(UPSTREAM_SYNC, upstream.name)
        is_asked = task is not None and task.state.active
        if not upstream.paused and upstream.due_at() <= now and not is_asked:
            await ask_for_sync(upstream)


async def ask_for_sync(upstream: Upstream) -> Task:
    """Have it synchronised now, and once more where that is under way: what was changed meanwhile counts."""
    return await ask_for(UPSTREAM_SYNC, upstream.name, {"upstream": upstream.name})


async def ask_for_entry(upstream: Upstream, entry: UpstreamEntry) -> Task:
    """The request for one entry: asked again for the same state of it, it is the same."""
    subject = {"upstream": upstream.name, "name": entry.name, "mark": entry.mark}
    kind, task_id = _kind_of(upstream), f"{upstream.name}/{entry.name}"
    known, _ = await read_task(kind, task_id)
    is_same = known is not None and not must_bring(known, entry)
    return await ask_for(kind, task_id, subject, again=not is_same)


def _kind_of(upstream: Upstream) -> str:
    """What was only remembered was asked for by nobody, so it has tasks of its own."""
    return UPSTREAM_REMEMBER if upstream.intake is Intake.REMEMBERED else UPSTREAM_BRING


def must_bring(task: Task | None, entry: UpstreamEntry) -> bool:
    """Whether an entry that somebody wants was not fetched in this state."""
    if task is None or task.subject.get("mark") != entry.mark:
        return True
    return task.state is TaskState.FAILED or task.outcome.startswith(_NOT_FETCHED)


# Synchronising.


async def sync_upstream(task: Task) -> TaskEnd:
    """List what an upstream has, and ask for what is wanted of it."""
    upstream = await find_upstream(task.subject["upstream"])
    if upstream is None or upstream.paused:
        return TaskEnd("the upstream is paused" if upstream else "the upstream was removed")
    now = require_env("kv").kv.now()
    try:
        found = await _look(upstream, now, task)
    except (BlobUnavailable, ClaimLost, StoreUnavailable):
        raise
    except PlatformError as error:
        found = {"problem": error.in_words, "go_on_at": 0}
    if found is None:
        return TaskEnd("the upstream was changed meanwhile")
    checked = {"checked_at": now, **found}
    await keep_state(upstream, lambda state: msgspec.structs.replace(state, **checked), held=task)
    return TaskEnd(found["problem"] or found["found"])


async def _look(upstream: Upstream, now: int, task: Task) -> dict[str, Any] | None:
    """Read what it has, and ask for what is wanted. What that changes in its state; None where an admin changed it
    meanwhile."""
    known, is_remembered = await read_upstream_entries(upstream.name), upstream.intake is Intake.REMEMBERED
    offer = await SOURCES[upstream.kind].list_entries(upstream)
    listed, left = await asyncio.to_thread(settle, upstream, offer, known)
    shown: dict[str, Any] = {"listed": len(listed), "left_out": left[:MOST_NAMED], "keys": offer.keys}
    shown["withdrawn"] = await _withdrawn(upstream, offer, known, listed)
    entries = UpstreamEntries(listed, known.at if known.entries == listed else now)
    written = Put(keys.upstream_entries(upstream.name), msgspec.json.encode(entries))
    stale = await _stale_facts(upstream, listed if is_remembered else ()) if offer.whole else []
    # Before anything is asked for: whoever fetches an entry looks for it there.
    if not await keep_state(
        upstream,
        lambda state: msgspec.structs.replace(state, **shown),
        written,
        *map(Delete, stale),
        held=task,
    ):
        return None
    asked, go_on_at = await _ask(upstream, listed)
    found = f"{len(listed)} listed, {asked} asked for"
    if is_remembered or stale:
        memory = await refresh_memory(f"upstream:{upstream.name}", "the upstream was read")
        found = f"{found}; submissions are compared with {memory.memory.words}"
    if is_remembered and asked:
        # It is in the memory after the next look.
        go_on_at = go_on_at or now + HOUR_MS
    found = " ".join(filter(None, (found, offer.found)))
    return {"problem": "", "good_at": now, "go_on_at": go_on_at, "found": found}


async def _stale_facts(upstream: Upstream, listed: tuple[UpstreamEntry, ...]) -> list[str]:
    """The facts of what an upstream has no longer, by their keys."""
    here = {keys.upstream_facts(upstream.name, one.name) for one in listed}
    known = [one.key async for one in iter_entries(keys.upstream_facts.under(upstream.name))]
    return [key for key in known if key not in here]


async def _ask(upstream: Upstream, listed: tuple[UpstreamEntry, ...]) -> tuple[int, int]:
    """Ask for what is new and wanted, and for what changed since it came. How many, and when the rest goes on."""
    if upstream.intake is Intake.REMEMBERED:
        # Other rules find other facts.
        rules = require_env("scanner").scanner.ruleset
        listed = tuple(msgspec.structs.replace(one, mark=f"{one.mark} {rules}") for one in listed)
    tasks = await tasks_of(upstream, listed)
    due = [one for one in listed if must_bring(tasks.get(one.name), one)]
    if upstream.intake is Intake.ON_REQUEST:
        due = [one for one in due if one.name in tasks]
    room, next_hour = await grant_runs(upstream.namespace, len(due), BROUGHT_PER_HOUR) if due else (0, 0)
    await some_at_a_time(lambda one: ask_for_entry(upstream, one), due[:room], AT_ONCE)
    return min(room, len(due)), next_hour if len(due) > room else 0


async def tasks_of(upstream: Upstream, entries: tuple[UpstreamEntry, ...], kind: str = "") -> dict[str, Task]:
    """Those that were asked for, by the entry's name."""
    wanted = (task_key(kind or _kind_of(upstream), f"{upstream.name}/{one.name}") for one in entries)
    found = (await read_entries(wanted)).values()
    return {task.subject["name"]: task for task in decode_readable(found, Task, "upstream_tasks")}


async def _withdrawn(
    upstream: Upstream, offer: Offer, known: UpstreamEntries, listed: tuple[UpstreamEntry, ...]
) -> dict[str, str]:
    """What was brought here and is not offered any more, by name with the reason. What went since the last look is a
    report that a reviewer decides about."""
    here = {one.name for one in listed}
    offered = {one.name for one in offer.entries}
    missing = tuple(one for one in known.entries if one.name not in here and one.name not in offered)
    gone = {name: why for name, why in upstream.state.withdrawn.items() if name not in here}
    if offer.whole:
        brought = await tasks_of(upstream, missing, UPSTREAM_BRING)
        gone |= dict.fromkeys(brought, "The upstream does not have it any more.")
    gone = dict(sorted(gone.items())[:MOST_NAMED])
    readers = namespace_audiences(upstream.namespace) | {PUBLIC}
    for name in gone.keys() - upstream.state.withdrawn.keys():
        # Of some nothing was published.
        with suppress(NotFound):
            skill, by = f"{upstream.namespace}/{name}", f"upstream:{upstream.name}"
            await file_report(skill, reporter=by, reason=gone[name], audiences=readers)
    return gone


# Bringing one entry.


async def bring_entry(task: Task) -> TaskEnd:
    """Fetch the files of an entry, keep them and submit them, or only remember what they are. What is refused is asked
    for again when it changes."""
    upstream = await find_upstream(task.subject["upstream"])
    if upstream is None:
        return TaskEnd(f"{_NOT_FETCHED}the upstream was removed")
    now = require_env("kv").kv.now()
    if upstream.paused:
        return TaskEnd("the upstream is paused", again_at=now + HOUR_MS)
    if task.kind != _kind_of(upstream):
        return TaskEnd(f"{_NOT_FETCHED}its skills come another way now: {upstream.intake.value}")
    entry = (await read_upstream_entries(upstream.name)).find(task.subject["name"])
    if entry is None:
        return TaskEnd(f"{_NOT_FETCHED}the upstream does not list it any more")
    try:
        place, source = upstream.place_of(entry), SOURCES[upstream.kind]
        if upstream.intake is Intake.REMEMBERED:
            return await _remember(upstream, entry, (await source.fetch(upstream, entry)).files)
        if reason := await held_back(place):
            return TaskEnd(reason)
        return TaskEnd(await _submit(place, await source.fetch(upstream, entry), task))
    except (BlobUnavailable, ClaimLost, StoreUnavailable, SourceUnavailable):
        raise
    except (RateLimited, QuotaExceeded) as error:
        return TaskEnd(error.in_words, again_at=now + HOUR_MS)
    except PlatformError as error:
        return TaskEnd(f"refused: {error.in_words}")


async def _submit(place: Identity, brought: Brought, task: Task) -> str:
    check_files(brought.files, DEFAULT_LIMITS)
    text = skill_file_of(brought.files, "among the files of the upstream").data
    digest = digest_of_files(brought.files)
    await keep_content(digest, brought.files)
    if brought.origin is not None:
        put = Put(keys.brought(place.owner, digest), msgspec.json.encode(brought.origin))
        await persist(lambda: require_env("kv").kv.commit([put]))
    seen = Place(place, brought.commit, text)
    return await hand_in(seen, place, digest, task) or f"submitted: {digest}"


async def _remember(upstream: Upstream, entry: UpstreamEntry, files: tuple[SkillFile, ...]) -> TaskEnd:
    """Write the facts about an entry, of which nothing is kept or served."""
    check_files(files, DEFAULT_LIMITS)
    skill_file_of(files, "among the files of the upstream")
    report = await require_env("scanner").scanner.scan(files)
    facts = facts_of(files, report, entry.slug, upstream.name)
    day = datetime.fromtimestamp(require_env("kv").kv.now() / 1000, UTC).date().isoformat()
    record = RememberedSkill(**msgspec.structs.asdict(facts), day=day)
    put = Put(keys.upstream_facts(upstream.name, entry.name), msgspec.json.encode(record))
    return TaskEnd("remembered", (put,))
