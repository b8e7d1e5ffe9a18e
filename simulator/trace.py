"""What happened in one history, step by step: hashed to show that a replay is exact, printed when something broke."""

import hashlib
from collections import Counter
from collections.abc import Callable

Step = tuple[int, str, str, str]


class Trace:
    """Steps in order, and counts of everything worth counting."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self.steps: list[Step] = []
        self.counts: Counter[str] = Counter()

    def add(self, who: str, what: str, detail: str = "") -> None:
        self.steps.append((self._now_ms(), who, what, detail))

    def count(self, what: str) -> None:
        self.counts[what] += 1

    def digest(self) -> str:
        """The same for the same history, in every process."""
        return hashlib.sha256(repr(self.steps).encode()).hexdigest()

    def lines(self, last: int | None = None) -> list[str]:
        steps = self.steps if last is None else self.steps[-last:]
        return [f"{at / 1000:10.3f} s  {who:<8} {what:<13} {detail}" for at, who, what, detail in steps]


class TraceLog:
    """Stands where a structlog logger stands, and makes the product's log lines steps of the trace."""

    def __init__(self, trace: Trace, who: str) -> None:
        self._trace = trace
        self._who = who

    def _line(self, event: str, **fields: object) -> None:
        shown = " ".join(f"{name}={value}" for name, value in fields.items() if name != "exc_info")
        self._trace.add(self._who, "log", f"{event} {shown}")

    debug = info = warning = error = exception = critical = _line
