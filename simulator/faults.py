"""Where faults happen: every call of a dependency passes through `Weather.around`, which may delay it, fail it,
apply it and say that it failed, or kill the calling process before or after it."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

from simulator.loop import VirtualLoop
from simulator.plan import Dependency, Fault, Plan
from simulator.trace import Trace
from vskill_core.errors import (
    BlobUnavailable,
    PlatformError,
    SourceUnavailable,
    StoreBusy,
    StoreUnavailable,
)

T = TypeVar("T")

#: How often a call lets others run first, even in good weather.
YIELD = 0.25


class Process:
    """One simulated operating system process. What is dead calls nothing and hears nothing any more."""

    def __init__(self, name: str, on_crash: Callable[[], None]) -> None:
        self.name = name
        self.dead = False
        #: Nothing of it gets on before this moment of the loop's clock.
        self.stalled_until = 0.0
        #: By how many milliseconds its own clock, and its idea of the store's, are off.
        self.skew = 0
        self.store_skew = 0
        self._on_crash = on_crash

    def crash(self) -> None:
        if not self.dead:
            self.dead = True
            self._on_crash()


class Weather:
    """The faults of one history, while its bad time lasts."""

    def __init__(self, plan: Plan, rng: Random, loop: VirtualLoop, trace: Trace) -> None:
        self.plan = plan
        self.rng = rng
        self.loop = loop
        self.trace = trace
        self.chaos = True
        self.closing = False
        #: Writes that were reported as failed and are still to be applied.
        self.late = 0
        self._graveyard: list[asyncio.Future[None]] = []

    def happened(self, fault: Fault, who: str, detail: str = "") -> None:
        self.trace.count(fault)
        self.trace.add(who, "FAULT", f"{fault}: {detail}")

    def draws(self, rate: float) -> bool:
        """Whether something of this rate happens now; never after the bad time."""
        return self.chaos and rate > 0 and self.rng.random() < rate

    async def around(
        self,
        process: Process,
        dependency: Dependency,
        name: str,
        do: Callable[[], Awaitable[T]],
        *,
        writes: bool = False,
    ) -> T:
        """Make a call as this process, in this weather."""
        if process.dead or self.closing:
            await self.never()
        if not self.chaos:
            if self.rng.random() < YIELD:
                await asyncio.sleep(0)
            return await do()
        await self._before(process, dependency, name)
        result = await self._apply(process, dependency, name, do, writes)
        # The answer may be slow, and what it says may be old when it arrives.
        if self.rng.random() < self.plan.delay:
            await self._delay(process)
        if process.dead:
            await self.never()
        return result

    async def never(self) -> None:
        """A call of a dead process does not return; when the world is taken down, it is cancelled."""
        if self.closing:
            raise asyncio.CancelledError
        grave: asyncio.Future[None] = self.loop.create_future()
        self._graveyard.append(grave)
        await grave

    async def pause(self, process: Process, seconds: float) -> None:
        """Time passes for this process, which may not live to see its end."""
        await asyncio.sleep(seconds)
        if process.stalled_until > self.loop.time():
            await asyncio.sleep(process.stalled_until - self.loop.time())
        if process.dead:
            await self.never()

    def down(self, dependency: Dependency) -> bool:
        now = self.loop.time()
        return self.chaos and any(
            outage.dependency is dependency and outage.begins <= now < outage.ends
            for outage in self.plan.outages
        )

    async def _before(self, process: Process, dependency: Dependency, name: str) -> None:
        if self.draws(self.plan.stall):
            process.stalled_until = self.loop.time() + self.rng.uniform(1, 45)
            self.happened(Fault.STALL, process.name, f"for {process.stalled_until - self.loop.time():.1f} s")
        if process.stalled_until > self.loop.time():
            await self.pause(process, 0)
        if self.rng.random() < self.plan.delay:
            await self._delay(process)
        elif self.rng.random() < YIELD:
            await self.pause(process, 0)
        if self.down(dependency):
            self.happened(Fault.OUTAGE, process.name, name)
            raise self._error(dependency, name)

    async def _apply(
        self,
        process: Process,
        dependency: Dependency,
        name: str,
        do: Callable[[], Awaitable[T]],
        writes: bool,  # noqa: FBT001
    ) -> T:
        plan, drawn = self.plan, self.rng.random()
        crash = plan.crash * (4 if writes else 0.25)
        if (drawn := drawn - crash) < 0:
            await self._crash(process, name, do if self.rng.random() < 0.5 else None)
        if (drawn := drawn - plan.failed) < 0:
            self.happened(Fault.FAILED, process.name, name)
            raise self._error(dependency, name)
        if not writes:
            return await do()
        if (drawn := drawn - plan.reply_lost) < 0:
            self.happened(Fault.REPLY_LOST, process.name, name)
            await self._quietly(do)
            raise self._error(dependency, name)
        if (drawn := drawn - plan.late) < 0:
            self.happened(Fault.LATE, process.name, name)
            self.late += 1
            self.loop.call_later(self.rng.expovariate(1.0), self._apply_late, do)
            raise self._error(dependency, name)
        return await do()

    async def _delay(self, process: Process) -> None:
        self.trace.count(Fault.DELAY)
        most = self.plan.delay_most * (10 if self.rng.random() < 0.02 else 1)
        await self.pause(process, self.rng.random() ** 3 * most)

    async def _crash(self, process: Process, name: str, do: Callable[[], Awaitable[object]] | None) -> None:
        if do is not None:
            await self._quietly(do)
        self.happened(Fault.CRASH_BEFORE if do is None else Fault.CRASH_AFTER, process.name, name)
        process.crash()
        await self.never()

    async def _quietly(self, do: Callable[[], Awaitable[object]]) -> None:
        try:
            await do()
        except PlatformError:
            return

    def _apply_late(self, do: Callable[[], Awaitable[object]]) -> None:
        async def apply() -> None:
            await self._quietly(do)
            self.late -= 1

        if not self.closing:
            self._graveyard.append(self.loop.create_task(apply()))

    def _error(self, dependency: Dependency, name: str) -> Exception:
        match dependency:
            case Dependency.BLOBS:
                return BlobUnavailable(f"simulated: {name}")
            case Dependency.SOURCE | Dependency.LISTENER:
                return SourceUnavailable(f"simulated: {name}", host="example.org")
            case Dependency.SCANNER | Dependency.JUDGE:
                return RuntimeError(f"simulated: {name}")
            case _:
                kind = StoreBusy if self.rng.random() < 0.3 else StoreUnavailable
                return kind(f"simulated: {name}")


class Line:
    """One process's way to one dependency."""

    def __init__(self, process: Process, weather: Weather, dependency: Dependency) -> None:
        self._process = process
        self._weather = weather
        self._dependency = dependency

    async def call(self, name: str, do: Callable[[], Awaitable[T]], *, writes: bool = False) -> T:
        return await self._weather.around(self._process, self._dependency, name, do, writes=writes)
