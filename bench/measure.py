"""Taking times: a round that does not count first, then several that do."""

import gc
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager

#: A measurement that takes longer than this hangs, and the run ends with an error instead.
PATIENCE_S = 300.0


class Stopwatch:
    """Seconds from its start to its end."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.seconds = 0.0

    def stop(self) -> None:
        self.seconds = time.perf_counter() - self.started


@contextmanager
def timed() -> Iterator[Stopwatch]:
    """Time the body; garbage of whatever ran before is collected outside of it."""
    gc.collect()
    watch = Stopwatch()
    try:
        yield watch
    finally:
        if not watch.seconds:
            watch.stop()


def repeat(rounds: int, once: Callable[[], float]) -> list[float]:
    """The samples of `rounds` rounds, after one that does not count."""
    once()
    return [once() for _ in range(rounds)]


def take_turns(rounds: int, rivals: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Samples of several rivals in turns, after one round that does not count, so that what disturbs the machine for a
    while disturbs them all."""
    samples: dict[str, list[float]] = {name: [] for name in rivals}
    for number in range(rounds + 1):
        for name, once in rivals.items():
            sample = once()
            if number:
                samples[name].append(sample)
    return samples


async def timed_calls(calls: int, call: Callable[[], Awaitable[object]]) -> float:
    """Seconds that one call takes, over many in a row."""
    await call()
    with timed() as watch:
        for _ in range(calls):
            await call()
    return watch.seconds / calls
