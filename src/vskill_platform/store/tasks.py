"""Tasks: queued work other than submissions, under the same claims, attempts and recovery. The list of all kinds is
`queue.tasks`."""

from collections.abc import Awaitable, Callable

import msgspec

from vskill_core.errors import ClaimLost, Conflict
from vskill_platform.domain.messages import Send, task_send
from vskill_platform.domain.operation import task as domain
from vskill_platform.domain.operation.task import Task, TaskState, task_key
from vskill_platform.ledger.kv.entries import ABSENT, Assert, Operation, Put
from vskill_platform.machine.shortages import MACHINE
from vskill_platform.records import persist, read_record
from vskill_platform.store.claims import RAN_OUT, NotClaimed, store_failed_under
from vskill_platform.worker_context import require_env


class TaskEnd(msgspec.Struct, frozen=True):
    """The outcome of a task, and what is committed together with it."""

    outcome: str
    operations: tuple[Operation, ...] = ()
    #: It is not over, and due again at this time.
    again_at: int | None = None


class TaskKind(msgspec.Struct, frozen=True):
    """A kind of task."""

    name: str
    #: One line for people.
    purpose: str
    #: Raises for a failed attempt; SourceUnavailable and its like for a dependency that is down.
    run: Callable[[Task], Awaitable[TaskEnd]]
    budget_ms: int = 55_000
    #: Between failed attempts; after the last one it has failed.
    delays_ms: tuple[int, ...] = (10_000, 60_000, 300_000)


async def read_task(kind: str, task_id: str) -> tuple[Task | None, int]:
    """The record and its version; a task that was never asked for has the version ABSENT."""
    return await read_record(task_key(kind, task_id), Task)


async def ask_for(
    kind: str, task_id: str, subject: dict[str, str], *, delay_ms: int = 0, again: bool = True
) -> Task:
    """Request a task; repeated requests make one task. `again=False` leaves an existing task unchanged."""

    async def write() -> Task:
        env = require_env("kv")
        known, version = await read_task(kind, task_id)
        if known is None:
            asked = domain.create(kind, task_id, subject, now=env.kv.now(), delay_ms=delay_ms)
        elif again:
            asked = domain.ask_again(known, subject, env.kv.now())
        else:
            return known
        send = task_send(kind, task_id, asked.run, delay_ms=delay_ms)
        await env.kv.commit([Put(asked.key, msgspec.json.encode(asked), version), send])
        return asked

    return await persist(write)


def task_writes(
    kind: str, task_id: str, subject: dict[str, str], *, now: int, delay_ms: int = 0
) -> tuple[Put, Send]:
    """A new task and its message, to commit with what it is about."""
    asked = domain.create(kind, task_id, subject, now=now, delay_ms=delay_ms)
    put = Put(asked.key, msgspec.json.encode(asked), ABSENT)
    return put, task_send(kind, task_id, asked.run, delay_ms=delay_ms)


async def claim_task(kind: str, task_id: str, run: int) -> "HeldTask | NotClaimed":
    """Claim it, if it is due and no live worker holds it. Each try has its own token: one with an unknown outcome may
    have succeeded, and another worker may have taken over since."""
    env = require_env("kv")
    tried: list[str] = []

    async def write() -> HeldTask | NotClaimed:
        task, version = await read_task(kind, task_id)
        if task is None or task.run > run or not task.state.active:
            failed = task is not None and task.run == run and task.state is TaskState.FAILED
            return NotClaimed(task.outcome if task and failed else "it is over", exhausted=failed)
        if task.claim is not None and task.claim.token in tried:
            return HeldTask(task, version, task.claim.token)
        now = env.kv.now()
        if not domain.is_due(task, now):
            due = task.claim.until if task.claim else task.next_attempt_at
            return NotClaimed("it is held or not due yet", again_in_ms=max((due or now) - now, 0))
        token = env.clock.new_id()
        tried.append(token)
        died = not store_failed_under(task)
        claimed = domain.claim(task, token=token, worker=env.worker_id, now=now, died=died)
        version = await env.kv.commit([Put(task.key, msgspec.json.encode(claimed), version)])
        if not claimed.held_by(token):
            return NotClaimed(claimed.outcome, exhausted=True)
        return HeldTask(claimed, version, token)

    return await persist(write)


async def assert_held(task: Task) -> Assert:
    """To commit with what a task's function writes before its end. ClaimLost where its worker stood still, and another
    one has it by now: what the first one found is older than what that one wrote."""
    known, version = await read_task(task.kind, task.id)
    if known is None or task.claim is None or not known.held_by(task.claim.token):
        raise ClaimLost(f"{task.key} is not held by this worker any more")
    return Assert(task.key, version)


class HeldTask:
    """A worker's hold on a task; it owns the record's version."""

    def __init__(self, task: Task, version: int, token: str) -> None:
        self.task = task
        self._version = version
        self._token = token

    async def renew(self) -> None:
        """Extend the claim. Raises ClaimLost."""
        if self.task.claim is not None:
            await self.write(lambda task: domain.renew(task, require_env("kv").kv.now()), quiet=True)

    async def write(
        self, change: Callable[[Task], Task], operations: tuple[Operation, ...] = (), *, quiet: bool = False
    ) -> None:
        """Change the record, together with what the task found. Raises ClaimLost, even if the claim merely expired:
        then the task is handed back instead."""
        now = require_env("kv").kv.now()
        has_run_out = not quiet and self.task.claim is not None and self.task.claim.until <= now
        if has_run_out:
            change, operations = (lambda task: domain.record_unavailable(task, RAN_OUT, MACHINE, now)), ()

        async def attempt() -> None:
            changed = change(self.task)
            put = Put(changed.key, msgspec.json.encode(changed), self._version, quiet=quiet)
            sends = (
                () if changed.run == self.task.run else (task_send(changed.kind, changed.id, changed.run),)
            )
            try:
                self._version = await require_env("kv").kv.commit([put, *sends, *operations])
            except Conflict as conflict:
                await self._read_again()
                raise conflict from None
            self.task = changed

        await persist(attempt)
        if has_run_out:
            raise ClaimLost(RAN_OUT, task=self.task.key)

    async def _read_again(self) -> None:
        task, version = await read_task(self.task.kind, self.task.id)
        if task is None or not task.held_by(self._token):
            raise ClaimLost(f"{self.task.key} is not held by this worker any more")
        self.task, self._version = task, version
