"""Queue health: the invariant of the platform, checked against the records themselves and shown to everyone.

Every submission is in a terminal state, or waits for a person, or is claimed by a live worker until a deadline,
or has a next attempt time. `violations` lists what breaks that, and the list is empty. That no worker is alive breaks
it too: then nothing that waits has a next attempt. So does a store whose file was taken away under this
process. Nothing here needs a worker: the web side computes it from the store.

Everybody may know whether the queue is healthy and moves. Records, numbers and times cover only what the reader may
read; texts that could hold a name are left out for readers who may not read everything.
"""

import asyncio
from collections.abc import Iterable, Sequence

import msgspec

from vskill_core.errors import QueueUnavailable, RecordMalformed, StoreReplaced
from vskill_platform.domain import keys
from vskill_platform.domain.operation.task import Task, TaskState
from vskill_platform.domain.people.namespace import EVERYTHING, PUBLIC, Audiences, Everything, may_read
from vskill_platform.domain.submissions.attempts import CLAIM_MS, owed_violation, violation
from vskill_platform.domain.submissions.states import ACTIVE_STATES, LINE_STATES, State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.kv.collections import SUBMISSIONS, TASKS, RecordKind
from vskill_platform.ledger.kv.entries import Entry
from vskill_platform.ledger.kv.query import Between, Condition, In, Is
from vskill_platform.machine.disk_space import filling, look_at_disks
from vskill_platform.queue.alerts import (
    Alert,
    CooldownState,
    DeadLetters,
    QueueState,
    WorkState,
    count_dead_letters,
    find_alerts,
)
from vskill_platform.queue.control import current_pause
from vskill_platform.queue.job_health import JobHealth, job_health
from vskill_platform.records import audience_of, decode, entries_of
from vskill_platform.store.operation.workers import WorkersSeen, look_at_workers, silence_ms
from vskill_platform.store.recall.first_management import longest_preparing_ms
from vskill_platform.store.stored_content import list_damage
from vskill_platform.store.submissions.statistics import last_end_at, latest_ends
from vskill_platform.store.verdicts.brake import read_brake
from vskill_platform.store.verdicts.policy_figures import find_failing_rules
from vskill_platform.submission_store import SubmissionCounts, count_submissions, iter_unreadable_pages
from vskill_platform.worker_context import Env, require_env

#: An expired claim is taken up within a recovery interval and a receive; longer than this is a violation.
EXPIRED_GRACE_MS = 2 * CLAIM_MS
#: The most frequent job runs every two seconds: where none has started for this long, nobody runs them.
SCHEDULE_SILENT_MS = 60_000
#: The list is cut here, and says so.
MOST_VIOLATIONS = 100

#: Keys of violations that are not about a record.
STORE_FILES, WORKERS = "store", "workers"

_RESTING = frozenset(State) - ACTIVE_STATES


class Violation(msgspec.Struct, frozen=True):
    """What breaks the invariant, and how."""

    #: The record's key, or `workers` or `store`.
    key: str
    problem: str
    #: Whose readers may hear of it; None: only those who read everything.
    audience: str | None = None


class QueueHealth(QueueState, frozen=True, kw_only=True):
    """Is anything stuck, and is the queue moving?"""

    #: Nothing breaks the invariant, and the queue moves.
    healthy: bool
    violations: tuple[Violation, ...]
    truncated: bool
    counts: SubmissionCounts
    #: What an operator must look at, the gravest first.
    alerts: tuple[Alert, ...]

    @property
    def stalled(self) -> bool:
        return self.work.stalled


async def queue_health() -> QueueHealth:
    """Health of the whole queue, computed by index on each call. A failed read raises; it is never an empty list."""
    return await queue_health_for(EVERYTHING)


async def queue_health_for(audiences: Audiences) -> QueueHealth:
    """Queue health, limited to what a reader of these audiences may know."""
    env = require_env("kv")
    now = env.kv.now()
    # First: if a file was replaced, other reads work only after the writer knows.
    replaced = await _find_replacement(env)
    # Concurrently: in sequence, each of about twenty reads would wait for its turn in a busy process.
    (counts, broken), damage, look = await asyncio.gather(
        _find_broken(env, now), list_damage(), _look(env, audiences, replaced, now)
    )
    work = look.work
    of_processes = {STORE_FILES: replaced, WORKERS: work.deserted or (work.lacking if work.idle else None)}
    violations = [
        *(
            Violation(about, problem, PUBLIC)
            for about, problem in of_processes.items()
            if problem is not None
        ),
        *broken,
        *(Violation(keys.damage(one.digest), f"its stored files are {one.kind}") for one in damage),
    ]
    env.metrics.queue_violations.set(len(violations))
    healthy = not violations and not work.stalled
    if isinstance(audiences, Everything):
        look = msgspec.structs.replace(look, damaged=len(damage))
    else:
        counts = await count_submissions(audiences=audiences)
        violations = [one for one in violations if may_read(one.audience, audiences)]
    if cooling := counts.by_state[State.COOLDOWN]:
        next_at = await _first_due(env, audiences, (State.COOLDOWN,), Between())
        look = msgspec.structs.replace(look, cooldown=CooldownState(cooling, next_at))
    return QueueHealth(
        **msgspec.structs.asdict(look),
        healthy=healthy,
        violations=tuple(violations[:MOST_VIOLATIONS]),
        truncated=len(violations) > MOST_VIOLATIONS,
        counts=counts,
        alerts=find_alerts(look),
    )


async def _look(env: Env, audiences: Audiences, replaced: str | None, now: int) -> QueueState:
    oldest, last, ends, dead_letters, spaces = await asyncio.gather(
        _first_due(env, EVERYTHING, LINE_STATES, Between(most=now)),
        last_end_at(audiences=EVERYTHING),
        latest_ends(audiences=audiences),
        _look_at_dead_letters(audiences),
        asyncio.to_thread(look_at_disks, env.settings),
    )
    pause, jobs, workers = await asyncio.gather(current_pause(), job_health(), look_at_workers())
    overdue = None if pause is not None else oldest
    work = _state_of_work(workers, jobs, overdue, last, now, env.settings.stuck_threshold_ms)
    preparing_ms, brake = None, None
    failing: tuple[str, ...] = ()
    if isinstance(audiences, Everything):
        preparing_ms, (brake, _), failing = await asyncio.gather(
            longest_preparing_ms(), read_brake(), find_failing_rules()
        )
    else:
        oldest = await _first_due(env, audiences, LINE_STATES, Between(most=now))
        # A job's error text can name a record.
        jobs = tuple(msgspec.structs.replace(job, last_error=None) for job in jobs)
    letters, queue_away = dead_letters
    return QueueState(
        at=now,
        stuck_threshold_ms=env.settings.stuck_threshold_ms,
        oldest_waiting_ms=None if oldest is None else max(now - oldest, 0),
        last_ended_at=ends.last_at,
        pause=pause,
        jobs=jobs,
        workers=workers,
        work=work,
        store_replaced=replaced,
        filling=filling(spaces, env.settings),
        dead_letters=letters,
        queue_away=queue_away,
        judge=ends.judge,
        preparing_ms=preparing_ms,
        brake=brake,
        failing_rules=failing,
    )


async def _find_replacement(env: Env) -> str | None:
    """Why this process's writes would be lost (the store's file was replaced); None if they last."""
    try:
        await env.kv.check_files()
    except StoreReplaced as error:
        return error.public_message
    return None


async def _look_at_dead_letters(audiences: Audiences) -> tuple[DeadLetters | None, str | None]:
    """Return the error instead of raising it: an unreachable queue must not hide the health of the records."""
    try:
        return await count_dead_letters(audiences), None
    except QueueUnavailable as error:
        return None, error.public_message


def _state_of_work(
    workers: WorkersSeen,
    jobs: Sequence[JobHealth],
    oldest_due: int | None,
    last_ended: int | None,
    now: int,
    stuck_threshold_ms: int,
) -> WorkState:
    """In a registry that never had a worker, a missing worker matters only while work waits."""

    def is_still(for_ms: int) -> bool:
        """Whether work has been overdue and nothing has ended for this long: all workers may be dead."""
        since = now - for_ms
        return oldest_due is not None and oldest_due <= since and (last_ended is None or last_ended <= since)

    schedule_stopped = max((job.last_start or 0 for job in jobs), default=0) < now - SCHEDULE_SILENT_MS
    rest = f"{' Scheduled jobs do not run either.' if schedule_stopped else ''} Start one: vskill-platform worker."
    deserted = lacking = None
    if workers.gone and workers.last_sign_at is not None:
        seconds = (now - workers.last_sign_at) // 1000
        deserted = f"No worker is alive; the last one was there {seconds} s ago.{rest}"
    elif workers.last_sign_at is None and is_still(silence_ms()):
        deserted = f"No worker is alive, and work waits.{rest}"
    if workers.lacks:
        who = f"{len(workers.lacks)} of {workers.alive} workers" if workers.alive > 1 else "The worker"
        lacking = f"{who} cannot work, and submissions wait. {workers.lacks[0]}"
    idle = deserted is not None or (lacking is not None and len(workers.lacks) == workers.alive)
    return WorkState(is_still(stuck_threshold_ms), schedule_stopped, deserted, lacking, idle)


async def _find_broken(env: Env, now: int) -> tuple[SubmissionCounts, list[Violation]]:
    """Submission counts, and what breaks the invariant, found by index: active without a due time, expired claims, at
    rest with a due time, and unreadable records."""
    counts = await count_submissions(audiences=EVERYTHING)
    unreadable = await _unreadable(env) if counts.unreadable else []
    lately = Between(most=now - EXPIRED_GRACE_MS)
    *found, tasks, late_tasks = await asyncio.gather(
        _ask(env, SUBMISSIONS, ACTIVE_STATES, Is(None)),
        _ask(env, SUBMISSIONS, ACTIVE_STATES - LINE_STATES, lately),
        _ask(env, SUBMISSIONS, _RESTING, Between()),
        _ask(env, TASKS, (TaskState.ACTIVE,), Is(None)),
        _ask(env, TASKS, (TaskState.ACTIVE,), lately),
    )
    broken: dict[str, Violation] = {}
    for entry in (*unreadable, *(entry for entries in found for entry in entries)):
        if (problem := _problem(entry, Submission, now)) is not None:
            broken[entry.key] = Violation(entry.key, problem, audience_of(entry))
    for entry in (*tasks, *late_tasks):
        if (problem := _problem(entry, Task, now)) is not None:
            # No audience: a task's key can name a skill or a repository.
            broken[entry.key] = Violation(entry.key, problem)
    return counts, [broken[key] for key in sorted(broken)]


async def _ask(
    env: Env, kind: RecordKind, states: Iterable[State | TaskState], due: Condition
) -> list[Entry]:
    page = await env.kv.select(
        kind.prefix,
        audiences=EVERYTHING,
        where={"state": In(tuple(sorted(state.value for state in states))), "due_at": due},
        order_by="key" if isinstance(due, Is) else "due_at",
        limit=MOST_VIOLATIONS + 1,
    )
    return list(entries_of(page))


async def _unreadable(env: Env) -> list[Entry]:
    """Records without a state, and records in a state that this version does not know."""
    found: list[Entry] = []
    async for page in iter_unreadable_pages(env):
        found.extend(entries_of(page))
        if len(found) > MOST_VIOLATIONS:
            break
    return found


def _problem(entry: Entry, kind: type[Submission] | type[Task], now: int) -> str | None:
    try:
        record = decode(entry, kind)
    except RecordMalformed as error:
        return f"the record cannot be read: {error.details['reason']}"
    if isinstance(record, Task):
        return owed_violation(record, record.state, now, EXPIRED_GRACE_MS)
    return violation(record, now, EXPIRED_GRACE_MS)


async def _first_due(env: Env, audiences: Audiences, states: Iterable[State], due: Between) -> int | None:
    """When the first submission in these states is due, in this range; None where there is none."""
    page = await env.kv.select(
        SUBMISSIONS.prefix,
        audiences=audiences,
        where={"state": In(tuple(sorted(states))), "due_at": due},
        order_by="due_at",
        limit=1,
    )
    dues = [SUBMISSIONS.fields["due_at"].read(entry.value) for entry in entries_of(page)]
    return next((at for at in dues if isinstance(at, int)), None)
