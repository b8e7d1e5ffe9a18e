"""What a kind of task is: its name, what it does, and how patient it is. The list of all kinds is `queue.tasks`."""

from collections.abc import Awaitable, Callable

import msgspec

from vskill_platform.domain.operation.task import Task
from vskill_platform.ledger.kv.entries import Operation


class TaskEnd(msgspec.Struct, frozen=True):
    """What a task came to, and what is committed together with its end."""

    outcome: str
    operations: tuple[Operation, ...] = ()
    #: It is not over: its time comes then.
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
