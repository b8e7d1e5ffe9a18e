"""The clocks of the contract suites: one that stands still until a test moves it, for engines that ask us for the
time, and one that really waits, for an engine whose server keeps its own."""

import time

from tests.support.manual_clock import ManualClock

#: How much faster a waiting clock runs than what the tests say: a lease of 15 s is half a second.
SPEED = 30
#: What a server may be late by.
MARGIN_S = 0.08


class ContractClock(ManualClock):
    """Exact to the millisecond."""

    def approach(self, ms: int) -> None:
        """To the last moment before something that is due in so many milliseconds."""
        self.advance(ms - 1)
        self._left = 1

    def arrive(self) -> None:
        """To the moment that was approached."""
        self.advance(self._left)

    def told(self, at: int, by: int) -> bool:
        """Whether a time that the engine gave is this one."""
        return at == by


class WaitingClock(ContractClock):
    """Half of the way counts as nearly there, since nobody can stop a server one millisecond before."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def advance(self, ms: int) -> None:
        assert ms >= 0, "nobody can set the server's clock back"
        time.sleep(ms / SPEED / 1000 + (MARGIN_S if ms > 100 else 0))

    def approach(self, ms: int) -> None:
        time.sleep(ms / SPEED / 1000 / 2)
        self._left = ms

    def told(self, at: int, by: int) -> bool:
        return abs(at - by) < 2_000
