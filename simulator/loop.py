"""An event loop without time or threads: when nothing is ready, its clock jumps to the next timer, and what is
ready runs in an order drawn from a seed. The same seed runs the same steps, in any process on any machine."""

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from contextvars import Context
from itertools import count
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")


class NothingLeft(Exception):
    """Every task waits for something that can never happen."""


class VirtualTask(asyncio.Task[Any]):
    """A task whose hash is its number: sets of tasks then have the same order in every process."""

    def __init__(
        self, coro: Coroutine[Any, Any, Any], *, loop: "VirtualLoop", context: Context | None
    ) -> None:
        self._number = next(loop.numbers)
        super().__init__(coro, loop=loop, context=context)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs one world to its end, as fast as the processor allows."""

    def __init__(self, rng: Random) -> None:
        super().__init__()
        self.numbers = count(1)
        self._random = rng.random
        self._seconds = 0.0
        self._callbacks: list[asyncio.Handle] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self.set_task_factory(_new_task)  # type: ignore[arg-type]

    def time(self) -> float:
        return self._seconds

    def jump(self, seconds: float) -> None:
        """As if every machine had been suspended: timers that were due meanwhile fire now."""
        self._seconds += seconds

    # Where asyncio would wait for sockets, this loop only keeps lists.

    def call_soon(
        self, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._callbacks.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._seconds + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self.numbers), timer))
        return timer

    def run_in_executor(self, executor: object, func: Callable[..., T], *args: object) -> "asyncio.Future[T]":
        """Here and now: in which order threads get on is nothing that a seed could decide."""
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to whoever awaits it
            done.set_exception(error)
        return done

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A cancelled timer is dropped when its time comes."""

    def _process_events(self, events: object) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """No other thread waits to be woken."""

    def _run_once(self) -> None:
        timers = self._timers
        if not self._callbacks:
            self._advance()
        while timers and timers[0][0] <= self._seconds:
            self._callbacks.append(heapq.heappop(timers)[2])
        ready, self._callbacks = self._callbacks, []
        while ready:
            place = int(self._random() * len(ready)) if len(ready) > 1 else 0
            handle = ready[place]
            ready[place] = ready[-1]
            ready.pop()
            if not handle.cancelled():
                handle._run()  # noqa: SLF001 - what asyncio's own loop calls

    def _advance(self) -> None:
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heapq.heappop(timers)
        if not timers:
            raise NothingLeft
        self._seconds = max(self._seconds, timers[0][0])


def _new_task(
    loop: VirtualLoop, coro: Coroutine[Any, Any, T], context: Context | None = None
) -> "asyncio.Task[T]":
    return VirtualTask(coro, loop=loop, context=context)
