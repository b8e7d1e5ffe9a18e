"""Bars on stderr for long work, where somebody watches."""

import sys
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import Self, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from vskill_platform.machine.slots import some_at_a_time

A = TypeVar("A")
T = TypeVar("T")


class Stages:
    """One bar for each stage of a work, with what is done of it; a stage may not know how much there is."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        hidden = not sys.stderr.isatty()
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True, disable=hidden)
        self._stages: dict[str, TaskID] = {}

    def __call__(self, stage: str, done: int, total: int | None = None) -> None:
        if stage not in self._stages:
            self._stages[stage] = self._progress.add_task(stage, total=total)
        self._progress.update(self._stages[stage], completed=done)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


async def work_visibly(
    stage: str, work: Callable[[A], Awaitable[T]], items: Sequence[A], at_once: int
) -> list[T]:
    """The results in the order of the items, with a bar where there are several."""
    done = count(1)

    async def finish(item: A) -> T:
        result = await work(item)
        if len(items) > 1:
            stages(stage, next(done), len(items))
        return result

    with Stages() as stages:
        return await some_at_a_time(finish, items, at_once)
