"""Queue health: the invariant of the platform, checked against the records themselves and shown to everyone.

Every submission is in a terminal state, or waits for a person, or is claimed by a live worker until a deadline,
or has a next attempt time. `violations` lists what breaks that, and the list is empty. That no worker is alive breaks
it too: then nothing that waits has a next attempt. So does a store whose file was taken away under this
process. Nothing here needs a worker: the web side computes it from the store.

Whether the queue is healthy and moves is said to everybody. Every record, number and time in the answer is of what its
reader may read, and texts that could hold a name are left out for all who may not read everything.
"""

import asyncio
from collections.abc import Iterable

import msgspec

from vskill_core.errors import PlatformError, RecordMalformed, StoreReplaced
from vskill_platform.domain import keys
from vskill_platform.domain.audience import EVERYTHING, PUBLIC, Audiences, Everything, may_read
from vskill_platform.domain.operation.task import Task, TaskState
from vskill_platform.domain.submissions.attempts import CLAIM_MS, owed_violation, violation
from vskill_platform.domain.submissions.states import ACTIVE_STATES, State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.env import Env
from vskill_platform.ledger.kv.collections import SUBMISSIONS, TASKS
from vskill_platform.ledger.kv.entries import Entry
from vskill_platform.ledger.kv.query import Between, Condition, In, Is
from vskill_platform.machine.disk_space import filling, look_at_disks
from vskill_platform.queue.alerts import Alert, AlertFacts, DeadLetters, find_alerts, look_at_dead_letters
from vskill_platform.queue.control import Pause, current_pause
from vskill_platform.queue.job_health import JobHealth, job_health
from vskill_platform.records import audience_of, decode
from vskill_platform.store.damage import list_damage
from vskill_platform.store.operation.workers import WorkersSeen, look_at_workers, silence_ms
from vskill_platform.store.recall.first_management import longest_preparing_ms
from vskill_platform.store.submissions.statistics import JudgeWatch, last_end_at, latest_ends
from vskill_platform.store.verdicts.brake import read_brake
from vskill_platform.submission_store import SubmissionCounts, count_submissions, iter_unreadable_pages
from vskill_platform.worker_context import require_env

#: An expired claim is taken up within a recovery interval and a receive; longer than this is a violation.
EXPIRED_GRACE_MS = 2 * CLAIM_MS
#: The most frequent job runs every two seconds: where none has started for this long, nobody runs them.
SCHEDULE_SILENT_MS = 60_000
#: The list is cut here, and says so.
MOST_VIOLATIONS = 100

#: What a violation is about that is none of a record.
STORE_FILES, WORKERS = "store", "workers"

_RESTING = frozenset(State) - ACTIVE_STATES


class Violation(msgspec.Struct, frozen=True):
    """What breaks the invariant, and how."""

    #: The record's key, or `workers` or `store`.
    key: str
    problem: str
    #: Whose readers may hear of it; None: only those who read everything.
    audience: str | None = None


class QueueHealth(msgspec.Struct, frozen=True):
    """Is anything stuck, and is the queue moving?"""

    #: Nothing breaks the invariant, and the queue moves.
    healthy: bool
    violations: tuple[Violation, ...]
    truncated: bool
    counts: SubmissionCounts
    #: Milliseconds since the submission that waits longest was due; None where none waits.
    oldest_waiting_ms: int | None
    #: When a run last ended, by the records; None where none has.
    last_ended_at: int | None
    #: Something has waited for the stuck threshold, nothing has ended for as long, and nobody paused it (B7).
    stalled: bool
    pause: Pause | None
    jobs: tuple[JobHealth, ...]
    at: int
    workers: WorkersSeen
    #: What an operator must look at, the gravest first.
    alerts: tuple[Alert, ...] = ()
    #: None where the queue could not be asked; an alert says so.
    dead_letters: DeadLetters | None = None
    judge: JudgeWatch | None = None
    #: Pieces of stored content that are missing or damaged; each is a violation too.
    damaged: int = 0


async def queue_health() -> QueueHealth:
    """Of the whole queue. Computed anew each time, by index; a failed read raises and is never an empty list."""
    return await queue_health_for(EVERYTHING)


async def queue_health_for(audiences: Audiences) -> QueueHealth:
    """As a reader of these audiences may know it."""
    env = require_env("kv")
    now = env.kv.now()
    # Before everything else: where a file was replaced, others can be read only once the writer has been told.
    replaced = await _find_replacement(env)
    # Side by side: one after the other, each of some twenty reads would wait for its turn in a busy process.
    counts, damage, oldest, last, dead_letters, spaces = await asyncio.gather(
        count_submissions(audiences=EVERYTHING),
        list_damage(),
        _oldest_due(env, EVERYTHING),
        last_end_at(audiences=EVERYTHING),
        look_at_dead_letters(audiences),
        asyncio.to_thread(look_at_disks, env.settings),
    )
    violations, pause, jobs, workers, ends = await asyncio.gather(
        _violations(env, counts, now),
        current_pause(),
        job_health(),
        look_at_workers(),
        latest_ends(audiences=audiences),
    )
    violations += [Violation(keys.damage(one.digest), f"its stored files are {one.kind}") for one in damage]
    stalled = pause is None and _is_stalled(oldest, last, now - env.settings.stuck_threshold_ms)
    still = pause is None and _is_stalled(oldest, last, now - silence_ms())
    schedule_stopped = max((job.last_start or 0 for job in jobs), default=0) < now - SCHEDULE_SILENT_MS
    deserted = _desertion(workers, stalled=still, schedule_stopped=schedule_stopped, now=now)
    lacking = _lack(workers)
    idle = deserted is not None or (lacking is not None and len(workers.lacks) == workers.alive)
    of_processes = {STORE_FILES: replaced, WORKERS: deserted or (lacking if idle else None)}
    violations = [
        *(
            Violation(about, problem, PUBLIC)
            for about, problem in of_processes.items()
            if problem is not None
        ),
        *violations,
    ]
    healthy = not violations and not stalled
    env.metrics.queue_violations.set(len(violations))
    if not isinstance(audiences, Everything):
        counts, oldest = await asyncio.gather(
            count_submissions(audiences=audiences), _oldest_due(env, audiences)
        )
        violations = [one for one in violations if may_read(one.audience, audiences)]
        # What a job failed with can name a record.
        jobs = tuple(msgspec.structs.replace(job, last_error=None) for job in jobs)
    facts = AlertFacts(
        stuck_threshold_ms=env.settings.stuck_threshold_ms,
        store_replaced=replaced,
        deserted=deserted,
        lacking=lacking,
        idle=idle,
        schedule_stopped=schedule_stopped,
        write_ms=workers.write_ms,
        oldest_waiting_ms=None if oldest is None else max(now - oldest, 0),
        stalled=stalled,
        paused=pause is not None,
        jobs=jobs,
        dead_letters=dead_letters,
        judge=ends.judge,
        preparing_ms=await longest_preparing_ms() if audiences is EVERYTHING else None,
        brake=(await read_brake())[0] if audiences is EVERYTHING else None,
        damaged=len(damage) if audiences is EVERYTHING else 0,
        filling=filling(spaces, env.settings),
    )
    return QueueHealth(
        healthy=healthy,
        violations=tuple(violations[:MOST_VIOLATIONS]),
        truncated=len(violations) > MOST_VIOLATIONS,
        counts=counts,
        oldest_waiting_ms=facts.oldest_waiting_ms,
        last_ended_at=ends.last_at,
        stalled=stalled,
        pause=pause,
        jobs=facts.jobs,
        at=now,
        workers=workers,
        alerts=find_alerts(facts),
        dead_letters=facts.dead_letters if isinstance(facts.dead_letters, DeadLetters) else None,
        judge=facts.judge,
        damaged=facts.damaged,
    )


async def _find_replacement(env: Env) -> str | None:
    """Why nothing that this process writes would last; None where it does."""
    try:
        await env.kv.check_files()
    except StoreReplaced as error:
        return error.public_message
    return None


def _desertion(workers: WorkersSeen, *, stalled: bool, schedule_stopped: bool, now: int) -> str | None:
    """Why work would not be done: nobody is there to do it. Where nobody ever was, only while work waits."""
    jobs = " Scheduled jobs do not run either." if schedule_stopped else ""
    if workers.gone and workers.last_sign_at is not None:
        seconds = (now - workers.last_sign_at) // 1000
        return f"No worker is alive; the last one was there {seconds} s ago.{jobs} Start one: vskill-platform worker."
    if stalled and workers.last_sign_at is None:
        return f"No worker is alive, and work waits.{jobs} Start one: vskill-platform worker."
    return None


def _lack(workers: WorkersSeen) -> str | None:
    """What keeps workers from working."""
    if not workers.lacks:
        return None
    who = f"{len(workers.lacks)} of {workers.alive} workers" if workers.alive > 1 else "The worker"
    return f"{who} cannot work, and submissions wait. {workers.lacks[0]}"


def _is_stalled(oldest_due: int | None, last_ended: int | None, since: int) -> bool:
    """Whether work is long overdue while nothing has ended lately: perhaps all workers are dead."""
    return oldest_due is not None and oldest_due <= since and (last_ended is None or last_ended <= since)


async def _violations(env: Env, counts: SubmissionCounts, now: int) -> list[Violation]:
    found = {
        entry.key: Violation(entry.key, problem, audience_of(entry))
        for entry in await _suspects(env, counts, now)
        if (problem := _problem(entry, now)) is not None
    }
    # The key of a task can name a skill or a repository.
    found |= {
        entry.key: Violation(entry.key, problem)
        for entry in await _suspect_tasks(env, now)
        if (problem := _task_problem(entry, now)) is not None
    }
    return [found[key] for key in sorted(found)]


async def _suspects(env: Env, counts: SubmissionCounts, now: int) -> list[Entry]:
    """What could break the invariant, found by index: active without a due time, expired, or at rest with one."""
    unreadable = await _unreadable(env) if counts.unreadable else []
    found = await asyncio.gather(
        _ask(env, ACTIVE_STATES, Is(None)),
        _ask(env, ACTIVE_STATES - {State.RECEIVED}, Between(most=now - EXPIRED_GRACE_MS)),
        _ask(env, _RESTING, Between()),
    )
    return [*unreadable, *(entry for entries in found for entry in entries)]


async def _ask(env: Env, states: Iterable[State], due: Condition) -> list[Entry]:
    page = await env.kv.select(
        SUBMISSIONS.prefix,
        audiences=EVERYTHING,
        where={"state": _any_of(states), "due_at": due},
        order_by="key" if isinstance(due, Is) else "due_at",
        limit=MOST_VIOLATIONS + 1,
    )
    _raise_failed(page.failed)
    return list(page.items)


def _any_of(states: Iterable[State]) -> In:
    return In(tuple(sorted(state.value for state in states)))


async def _unreadable(env: Env) -> list[Entry]:
    """Records without a state, and records in a state that this version does not know."""
    found: list[Entry] = []
    async for page in iter_unreadable_pages(env):
        _raise_failed(page.failed)
        found.extend(page.items)
        if len(found) > MOST_VIOLATIONS:
            break
    return found


def _problem(entry: Entry, now: int) -> str | None:
    try:
        return violation(decode(entry, Submission), now, EXPIRED_GRACE_MS)
    except RecordMalformed as error:
        return f"the record cannot be read: {error.details['reason']}"


async def _suspect_tasks(env: Env, now: int) -> list[Entry]:
    """Tasks that are owed work and have no time for it, or whose time is long past."""
    found: list[Entry] = []
    for due in (Is(None), Between(most=now - EXPIRED_GRACE_MS)):
        order = "key" if isinstance(due, Is) else "due_at"
        where: dict[str, Condition] = {"state": Is(TaskState.ACTIVE.value), "due_at": due}
        page = await env.kv.select(
            TASKS.prefix, audiences=EVERYTHING, where=where, order_by=order, limit=MOST_VIOLATIONS + 1
        )
        _raise_failed(page.failed)
        found.extend(page.items)
    return found


def _task_problem(entry: Entry, now: int) -> str | None:
    try:
        task = decode(entry, Task)
    except RecordMalformed as error:
        return f"the record cannot be read: {error.details['reason']}"
    return owed_violation(task, task.state, now, EXPIRED_GRACE_MS)


async def _oldest_due(env: Env, audiences: Audiences) -> int | None:
    page = await env.kv.select(
        SUBMISSIONS.prefix,
        audiences=audiences,
        where={"state": Is(State.RECEIVED.value)},
        order_by="due_at",
        limit=1,
    )
    _raise_failed(page.failed)
    due = [SUBMISSIONS.fields["due_at"].read(entry.value) for entry in page.items]
    return next((at for at in due if isinstance(at, int)), None)


def _raise_failed(failed: dict[str, PlatformError]) -> None:
    for error in failed.values():
        raise error
