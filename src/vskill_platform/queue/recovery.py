"""Recovery: finds every submission that is due without a live worker and requeues its message.

It reads records only and sends messages only, so running it twice, or on ten machines at once, is harmless.
The schedule calls it page by page, an admin all at once.
"""

from collections.abc import Callable

import msgspec

from vskill_core.identity import Identity
from vskill_platform.domain.messages import Send, submission_send, task_send
from vskill_platform.domain.operation.task import Task, TaskState, is_due
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions.attempts import (
    CLAIM_MS,
    CLOCK_SLACK_MS,
    UNAVAILABLE_MOST_MS,
    Interruptible,
    is_suspect,
)
from vskill_platform.domain.submissions.states import ACTIVE_STATES, LINE_STATES, State
from vskill_platform.domain.submissions.submission import Attempts, Claim, line_owner
from vskill_platform.ledger.kv.collections import SUBMISSIONS, TASKS, RecordKind
from vskill_platform.ledger.kv.entries import Entry
from vskill_platform.ledger.kv.query import Between, In
from vskill_platform.queue.control import current_pause
from vskill_platform.records import Skips
from vskill_platform.worker_context import require_env

#: Waiting submissions per run; the next run continues after them, so none is left out. Few enough not to delay other
#: reads of the process: 5,000 blocked it for 250 ms, 1,000 for 20 ms.
WAITING_AT_ONCE = 1_000
#: Tasks that are not due yet, per run.
AHEAD_AT_ONCE = 500

#: What stands in the line, or will: these can be many.
_LINE = tuple(sorted(LINE_STATES))
#: Everything else that is active: a worker has or had it, so there are only ever a few.
_HELD = tuple(sorted(ACTIVE_STATES - LINE_STATES))


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


class _OwedTask(msgspec.Struct, frozen=True):
    kind: str
    id: str
    run: int
    claim: Claim | None = None
    attempts: Attempts = Attempts()


async def recover_stuck_submissions(*, after: str | None = None, limit: int = WAITING_AT_ONCE) -> Recovered:
    """Send a message for each submission whose claim has expired or whose next attempt is due.

    Reads one page (`limit` records) of the waiting ones, after `after`, and all pages of the claimed ones.
    """
    if await current_pause() is not None:
        return Recovered(paused=True, after=after)
    recovery = _Recovery("recover_stuck_submissions", limit)
    await recovery.send_held()
    return recovery.finish(after=await recovery.send_page(recovery.due_submissions, after))


async def recover_tasks(
    *, after: str | None = None, ahead_after: str | None = None, limit: int = WAITING_AT_ONCE
) -> Recovered:
    """The same for tasks, claimed or waiting.

    If the clock went back, claims and attempts lie in its future, among delays of up to a day that are intended. No
    index tells them apart, so each run also reads a page of what lies ahead.
    """
    if await current_pause() is not None:
        return Recovered(paused=True, after=after, ahead_after=ahead_after)
    recovery = _Recovery("recover_tasks", limit)
    after = await recovery.send_page(recovery.due_tasks, after)
    ahead_after = await recovery.send_page(recovery.tasks_ahead, ahead_after, AHEAD_AT_ONCE)
    return recovery.finish(after=after, ahead_after=ahead_after)


async def recover_everything(*, limit: int = WAITING_AT_ONCE) -> Recovered:
    """Send a message for every due submission and task, page by page."""
    if await current_pause() is not None:
        return Recovered(paused=True)
    recovery = _Recovery("recover_everything", limit)
    await recovery.send_held()
    for part in (recovery.due_submissions, recovery.due_tasks, recovery.tasks_ahead):
        await recovery.send_all(part)
    return recovery.finish()


class _Part(msgspec.Struct, frozen=True):
    """Records of one kind in these states and due in this range, and how each becomes a message."""

    kind: RecordKind
    states: tuple[str, ...]
    due: Between
    send: Callable[[Entry], Send | None]


class _Recovery:
    """One run: what it looks for, and what it has found and sent so far."""

    def __init__(self, operation: str, limit: int) -> None:
        self._env = require_env("kv")
        self._now = self._env.kv.now()
        self._limit = limit
        self._skips = Skips(operation)
        self._found = self._sent = 0
        #: Times later than the end of a claim made now.
        self._ahead = Between(least=self._now + CLAIM_MS + CLOCK_SLACK_MS)
        past, active = Between(most=self._now), (TaskState.ACTIVE.value,)
        self.due_submissions = _Part(SUBMISSIONS, _LINE, past, self._send_submission)
        self.due_tasks = _Part(TASKS, active, past, self._send_task)
        self.tasks_ahead = _Part(TASKS, active, self._ahead, self._send_stray_task)

    async def send_held(self) -> None:
        """Requeue expired claims, and claims and attempts that lie too far ahead after the clock was set back."""
        stray = Between(least=self._now + UNAVAILABLE_MOST_MS + CLOCK_SLACK_MS)
        for states, due in (
            (_HELD, Between(most=self._now)),
            (_HELD, self._ahead),
            ((State.RECEIVED,), stray),
        ):
            await self.send_all(_Part(SUBMISSIONS, states, due, self._send_submission))

    async def send_all(self, part: _Part) -> None:
        after = await self.send_page(part, None)
        while after is not None:
            after = await self.send_page(part, after)

    async def send_page(self, part: _Part, after: str | None, limit: int | None = None) -> str | None:
        """Requeue one page; where the next one begins. Later runs repeat each message while its record is due."""
        page = await self._env.kv.select(
            part.kind.prefix,
            audiences=EVERYTHING,
            where={"state": In(part.states), "due_at": part.due},
            order_by="due_at",
            after=after,
            limit=limit or self._limit,
        )
        self._skips.failed(page.failed)
        sends = [
            msgspec.structs.replace(send, repeated=True)
            for entry in page.items
            if (send := part.send(entry)) is not None
        ]
        self._found += len(sends)
        self._sent += await self._env.broker.send_batch(sends) if sends else 0
        return page.after

    def _send_submission(self, entry: Entry) -> Send | None:
        owed = self._skips.decode(entry, _Owed)
        if owed is None:
            return None
        owner = line_owner(owed.submitter, owed.identity)
        return submission_send(owed.id, owed.run, owner=owner, first=_goes_first(owed))

    def _send_task(self, entry: Entry) -> Send | None:
        owed = self._skips.decode(entry, _OwedTask)
        return None if owed is None else task_send(owed.kind, owed.id, owed.run, first=_goes_first(owed))

    def _send_stray_task(self, entry: Entry) -> Send | None:
        """Only if its due time was set before the clock went back."""
        task = self._skips.decode(entry, Task)
        return self._send_task(entry) if task is not None and is_due(task, self._now) else None

    def finish(self, *, after: str | None = None, ahead_after: str | None = None) -> Recovered:
        self._skips.report(self._env)
        self._env.metrics.recovered.inc(self._sent)
        return Recovered(self._found, self._sent, after=after, ahead_after=ahead_after)


def _goes_first(owed: Interruptible) -> bool:
    """Whether it was interrupted, but not so often that it may be the cause itself; such work gets no priority."""
    return owed.claim is not None and not is_suspect(owed)
