"""Two clocks: the store's, which all processes share and which may jump, and each process's own, which is off."""

from itertools import count

from simulator.faults import Process
from simulator.loop import VirtualLoop

#: Some morning; the store's clock begins here.
EPOCH_MS = 1_800_000_000_000
#: Whoever looked at the clock has acted on what it said after this many seconds, however slow it is.
MEMORY_S = 300
#: Between the first sight of a content and the first commit that names it.
SEEN_S = 900
#: Between a look at a record and the write that follows from it.
LOOKED_S = 120


class StoreClock:
    """What the store and the queue go by."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._offset_ms = 0
        #: When it jumped, on the loop's clock, and what it said before and after.
        self._jumps: list[tuple[float, int, int]] = []
        self._numbers = count(1)

    def now(self) -> int:
        return EPOCH_MS + int(self._loop.time() * 1000) + self._offset_ms

    def jump(self, by_ms: int) -> None:
        before = self.now()
        self._offset_ms += by_ms
        self._jumps.append((self._loop.time(), before, self.now()))

    @property
    def highest(self) -> int:
        """The latest time that anybody can still act on."""
        since = self._loop.time() - MEMORY_S
        return max([self.now(), *(before for at, before, _ in self._jumps if at >= since)])

    @property
    def earliest(self) -> int:
        """The earliest time that the clock has shown lately, and a while before that: nothing that is written now was
        seen before it."""
        since = self._loop.time() - SEEN_S
        shown = [time for at, before, after in self._jumps if at >= since for time in (before, after)]
        return min([self.now(), *shown]) - SEEN_S * 1000

    @property
    def lowest(self) -> int:
        """Where the clock went back a while ago, what it said then: who looked at it may be writing only now."""
        since = self._loop.time() - LOOKED_S
        back = (after for at, before, after in self._jumps if at >= since and after < before)
        return min([self.now(), *back])

    def monotonic(self) -> float:
        return self._loop.time()

    def new_id(self) -> str:
        return f"id-{next(self._numbers)}"


class ProcessClock:
    """What one process believes; its ids are as unique as random ones."""

    def __init__(self, store: StoreClock, process: Process) -> None:
        self._store = store
        self._process = process

    def now(self) -> int:
        return self._store.now() + self._process.skew

    def monotonic(self) -> float:
        return self._store.monotonic()

    def new_id(self) -> str:
        return self._store.new_id()
