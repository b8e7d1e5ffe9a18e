"""A clock that stands still until a test moves it."""

from itertools import count

from vskill_platform.ledger.clock import sortable_id

START = 1_700_000_000_000


class ManualClock:
    """Time and ids that a test owns: ids count up, so they are the same in every run."""

    def __init__(self, start: int = START) -> None:
        self._now = start
        self._ids = count(1)

    def now(self) -> int:
        return self._now

    def monotonic(self) -> float:
        return (self._now - START) / 1000

    def new_id(self) -> str:
        return sortable_id(self._now, next(self._ids))

    def advance(self, ms: int) -> None:
        self._now += ms
