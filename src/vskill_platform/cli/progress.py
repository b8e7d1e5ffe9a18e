"""A bar on stderr for work over many skills, where somebody watches."""

import sys
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn


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
