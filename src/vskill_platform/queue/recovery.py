"""Recovery: finds every submission that is due without a live worker and requeues its message.

It reads records only and sends messages only, so running it twice, or on ten machines at once, is harmless.
The schedule calls it page by page, an admin all at once.
"""

from collections.abc import Sequence

import msgspec

from vskill_core.identity import Identity
from vskill_platform.domain.audience import EVERYTHING
from vskill_platform.domain.messages import Send, submission_send, task_send
from vskill_platform.domain.operation.task import Task, TaskState, is_due
from vskill_platform.domain.submissions.attempts import (
    CLAIM_MS,
    CLOCK_SLACK_MS,
    UNAVAILABLE_MOST_MS,
    Interruptible,
    is_suspect,
)
from vskill_platform.domain.submissions.states import ACTIVE_STATES, State
from vskill_platform.domain.submissions.submission import Attempts, Claim, line_owner
from vskill_platform.env import Env
from vskill_platform.ledger.kv.collections import SUBMISSIONS, TASKS
from vskill_platform.ledger.kv.entries import EntryPage
from vskill_platform.ledger.kv.query import Between, Condition, In, Is
from vskill_platform.queue.control import current_pause
from vskill_platform.records import Skips
from vskill_platform.worker_context import require_env

#: Waiting submissions per run; the next run continues after them, so none is left out. Few enough that whoever reads
#: from the same process does not notice: 5,000 held it up for a quarter of a second, 1,000 for a fiftieth.
WAITING_AT_ONCE = 1_000
#: Tasks that are not due yet, per run.
AHEAD_AT_ONCE = 500

#: Everything active but RECEIVED: a worker has or had it, so there are only ever a few.
_HELD = tuple(sorted(ACTIVE_STATES - {State.RECEIVED}))


class Recovered(msgspec.Struct, frozen=True):
    """What one run of recovery did."""

    #: Submissions and tasks that were due.
    found: int = 0
    #: Messages that were not on the queue already.
    sent: int = 0
    #: The queue is paused, so nothing was looked at.
    paused: bool = False
    #: Where the next run goes on among the waiting ones; None: from the beginning.
    after: str | None = None
    #: The same among the tasks that are not due yet.
    ahead_after: str | None = None


class _Owed(msgspec.Struct, frozen=True):
    id: str
    run: int
    identity: Identity
    submitter: str | None = None
    claim: Claim | None = None
    attempts: Attempts = Attempts()


async def recover_stuck_submissions(*, after: str | None = None, limit: int = WAITING_AT_ONCE) -> Recovered:
    """Send a message for each submission whose claim has expired or whose next attempt is due.

    Of the waiting ones it reads one page, after `after`; what was claimed is read whole, page after page. A page
    has `limit` records.
    """
    env = require_env("kv")
    if await current_pause() is not None:
        return Recovered(paused=True, after=after)
    now = env.kv.now()
    skips = Skips("recover_stuck_submissions")
    held = await _send_held(env, skips, now, limit)
    waiting = await _select(env, (State.RECEIVED,), Between(most=now), after, limit)
    overdue = await _send_page(env, skips, waiting)
    return _finish(env, skips, [*held, overdue], after=waiting.after)


async def recover_everything(*, limit: int = WAITING_AT_ONCE) -> Recovered:
    """Send a message for every due submission and task, page by page."""
    env = require_env("kv")
    if await current_pause() is not None:
        return Recovered(paused=True)
    now = env.kv.now()
    skips = Skips("recover_everything")
    counts = await _send_held(env, skips, now, limit)
    counts.append(await _send_all(env, skips, (State.RECEIVED,), Between(most=now), limit))
    after: str | None = None
    while True:
        waiting = await _select_tasks(env, Between(most=now), after, limit)
        counts.append(await _send_owed_tasks(env, skips, waiting))
        after = waiting.after
        if after is None:
            break
    while True:
        ahead = await _select_tasks(env, _ahead_of(now), after, limit)
        counts.append(await _send_stray_tasks(env, skips, ahead, now))
        after = ahead.after
        if after is None:
            return _finish(env, skips, counts)


def _finish(
    env: Env,
    skips: Skips,
    counts: Sequence[tuple[int, int]],
    *,
    after: str | None = None,
    ahead_after: str | None = None,
) -> Recovered:
    skips.report(env)
    found, sent = (sum(column) for column in zip(*counts, strict=True))
    env.metrics.recovered.inc(sent)
    return Recovered(found, sent, after=after, ahead_after=ahead_after)


async def _send_held(env: Env, skips: Skips, now: int, limit: int) -> list[tuple[int, int]]:
    """Requeue expired claims, and claims and attempts that lie too far ahead after the clock was set back."""
    stray = Between(least=now + UNAVAILABLE_MOST_MS + CLOCK_SLACK_MS)
    return [
        await _send_all(env, skips, _HELD, Between(most=now), limit),
        await _send_all(env, skips, _HELD, _ahead_of(now), limit),
        await _send_all(env, skips, (State.RECEIVED,), stray, limit),
    ]


def _ahead_of(now: int) -> Between:
    """Times later than the end of a claim made now."""
    return Between(least=now + CLAIM_MS + CLOCK_SLACK_MS)


async def _send_all(
    env: Env, skips: Skips, states: tuple[State, ...], due: Between, limit: int
) -> tuple[int, int]:
    found = sent = 0
    after: str | None = None
    while True:
        page = await _select(env, states, due, after, limit)
        more = await _send_page(env, skips, page)
        found, sent = found + more[0], sent + more[1]
        after = page.after
        if after is None:
            return found, sent


async def _select(
    env: Env, states: tuple[State, ...], due: Between, after: str | None, limit: int
) -> EntryPage:
    state = Is(states[0].value) if len(states) == 1 else In(tuple(state.value for state in states))
    return await env.kv.select(
        SUBMISSIONS.prefix,
        audiences=EVERYTHING,
        where={"state": state, "due_at": due},
        order_by="due_at",
        after=after,
        limit=limit,
    )


async def _send_page(env: Env, skips: Skips, page: EntryPage) -> tuple[int, int]:
    skips.failed(page.failed)
    owed = [skips.decode(entry, _Owed) for entry in page.items]
    sends = [
        submission_send(
            one.id, one.run, owner=line_owner(one.submitter, one.identity), first=_goes_first(one)
        )
        for one in owed
        if one is not None
    ]
    return len(sends), await _send_again(env, sends)


async def _send_again(env: Env, sends: Sequence[Send]) -> int:
    """How many are new. Each comes again in a later round, for as long as it is owed."""
    again = [msgspec.structs.replace(send, repeated=True) for send in sends]
    return await env.broker.send_batch(again) if again else 0


def _goes_first(owed: Interruptible) -> bool:
    """Whether it was interrupted, and not so often that it might be its own fault: then others come before it."""
    return owed.claim is not None and not is_suspect(owed)


# Tasks.


class _OwedTask(msgspec.Struct, frozen=True):
    kind: str
    id: str
    run: int
    claim: Claim | None = None
    attempts: Attempts = Attempts()


async def recover_tasks(
    *, after: str | None = None, ahead_after: str | None = None, limit: int = WAITING_AT_ONCE
) -> Recovered:
    """The same for every other kind of queued work, whether it was claimed or waits.

    A clock that went back leaves claims and attempts ahead of it, among delays that are as long as a day and
    meant. No index tells them apart, so a page of what lies ahead is read in each run.
    """
    env = require_env("kv")
    if await current_pause() is not None:
        return Recovered(paused=True, after=after, ahead_after=ahead_after)
    now = env.kv.now()
    skips = Skips("recover_tasks")
    waiting = await _select_tasks(env, Between(most=now), after, limit)
    owed = await _send_owed_tasks(env, skips, waiting)
    ahead = await _select_tasks(env, _ahead_of(now), ahead_after, AHEAD_AT_ONCE)
    stray = await _send_stray_tasks(env, skips, ahead, now)
    return _finish(env, skips, [owed, stray], after=waiting.after, ahead_after=ahead.after)


async def _send_owed_tasks(env: Env, skips: Skips, page: EntryPage) -> tuple[int, int]:
    skips.failed(page.failed)
    return await _send_tasks(env, [skips.decode(entry, _OwedTask) for entry in page.items])


async def _send_stray_tasks(env: Env, skips: Skips, page: EntryPage, now: int) -> tuple[int, int]:
    """Requeue tasks whose time was set before the clock was set back."""
    skips.failed(page.failed)
    tasks = [skips.decode(entry, Task) for entry in page.items]
    return await _send_tasks(env, [task for task in tasks if task is not None and is_due(task, now)])


async def _select_tasks(env: Env, due: Between, after: str | None, limit: int) -> EntryPage:
    where: dict[str, Condition] = {"state": Is(TaskState.ACTIVE.value), "due_at": due}
    return await env.kv.select(
        TASKS.prefix, audiences=EVERYTHING, where=where, order_by="due_at", after=after, limit=limit
    )


async def _send_tasks(env: Env, tasks: Sequence[_OwedTask | Task | None]) -> tuple[int, int]:
    sends = [task_send(one.kind, one.id, one.run, first=_goes_first(one)) for one in tasks if one is not None]
    return len(sends), await _send_again(env, sends)
