"""Bars on stderr for long work, where somebody watches."""

import sys
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn


class Advance:
    """Counts what is done; calling it counts one more."""

    def __init__(self, what: str, total: int) -> None:
        hidden = total < 2 or not sys.stderr.isatty()
        columns = (what, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True, disable=hidden)
        self._task = self._progress.add_task(what, total=total)

    def __call__(self) -> None:
        self._progress.advance(self._task)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


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
