"""Two clocks: the store's, which all processes share and which may jump, and each process's own, which is off."""

from itertools import count

from simulator.faults import Process
from simulator.loop import VirtualLoop

#: Some morning; the store's clock begins here.
EPOCH_MS = 1_800_000_000_000


class StoreClock:
    """What the store and the queue go by."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.offset_ms = 0
        #: The latest time that it ever told.
        self.highest = EPOCH_MS
        self._numbers = count(1)

    def now(self) -> int:
        now = EPOCH_MS + int(self._loop.time() * 1000) + self.offset_ms
        self.highest = max(self.highest, now)
        return now

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
