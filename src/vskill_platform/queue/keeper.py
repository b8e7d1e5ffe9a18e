"""Takes a claim, renews it with the lease while a message is handled, and ends each attempt in one of the ways that the
record can tell. A lost claim cancels the work at once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

from vskill_core.errors import BlobUnavailable, ClaimLost, PlatformError, SourceUnavailable, StoreError
from vskill_platform.ledger.broker.contract import Message
from vskill_platform.ledger.clock import TimeLimit
from vskill_platform.machine.shortages import shortage_of
from vskill_platform.store.claims import NotClaimed
from vskill_platform.worker_context import require_env

T = TypeVar("T")


async def take_claim(
    claiming: Coroutine[Any, Any, T | NotClaimed], hand_back: Callable[[T], Awaitable[None]]
) -> T | NotClaimed:
    """The claim, or why there is none. A worker that is stopped meanwhile waits for the write and hands the claim back:
    cancelling a write does not undo it, and the work would wait until the claim expires."""
    task = asyncio.ensure_future(claiming)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        try:
            claim = await task
            if not isinstance(claim, NotClaimed):
                await hand_back(claim)
        except PlatformError as error:
            require_env("log").log.info("claim not handed back; it will end", reason=str(error))
        raise


async def attempt(
    work: Callable[[], Awaitable[T]],
    budget_ms: int,
    *,
    done: Callable[[T], Awaitable[None]],
    later: Callable[[PlatformError], Awaitable[None]],
    failed: Callable[[str, Exception | None], Awaitable[None]],
    hand_back: Callable[[], Awaitable[None]],
) -> None:
    """Work within a budget, and write the outcome: `done`, `later` (a dependency was unavailable) or `failed` (with the
    error if it was unexpected). A worker that is stopped hands the work back, even while it writes the outcome."""
    timer = TimeLimit(budget_ms / 1000)
    try:
        try:
            async with timer:
                result = await work()
            await done(result)
        except TimeoutError as error:
            over = f"it took longer than its budget of {budget_ms // 1000} s"
            await failed(over if timer.expired() else str(error) or "a step timed out", None)
        except (SourceUnavailable, BlobUnavailable, StoreError) as error:
            await later(error)
        except ClaimLost:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the record tells of it
            if (shortage := shortage_of(error)) is not None:
                await later(shortage)
            else:
                await failed(str(error) or repr(error), error)
    except asyncio.CancelledError:
        await asyncio.shield(hand_back())
        raise


class Renewable(Protocol):
    """A claim, whatever it is on."""

    async def renew(self) -> None:
        """Extend the claim; ClaimLost if another worker has it."""


class Keeper:
    """The claim and the lease of a message that is being handled."""

    def __init__(self, message: Message, handling: "asyncio.Task[object]") -> None:
        self.message = message
        self.claim: Renewable | None = None
        self.handling = handling
        self.lost: ClaimLost | None = None
        self._every_s = require_env("pace").pace.renew_every_ms / 1000
        self._loop = asyncio.get_running_loop()
        self._renewing: asyncio.Task[None] | None = None
        # Most work ends before its first renewal, so only a timer is set for it, not a task.
        self._timer = self._loop.call_later(self._every_s, self._start)

    def _start(self) -> None:
        self._renewing = self._loop.create_task(self._run())

    def stop(self) -> None:
        self._timer.cancel()
        if self._renewing is not None:
            self._renewing.cancel()

    async def _run(self) -> None:
        """Renew claim and lease until stopped; a claim that is lost stops the work."""
        while True:
            began = self._loop.time()
            # Concurrently: on a slow store two writes in sequence would take half of a claim's length.
            renewals = [self.message.extend(), *([self.claim.renew()] if self.claim is not None else [])]
            for error in await asyncio.gather(*renewals, return_exceptions=True):
                if isinstance(error, ClaimLost):
                    self.lost = error
                    self.handling.cancel()
                    return
                if isinstance(error, StoreError):
                    require_env("log").log.warning("lease not extended", error=str(error))
                elif isinstance(error, BaseException):
                    raise error
            # Measured from start to start, so a slow write does not delay the next renewal.
            await asyncio.sleep(max(0.0, began + self._every_s - self._loop.time()))


@asynccontextmanager
async def kept_alive(message: Message) -> AsyncIterator[Keeper]:
    """Renew while the body runs. A lost claim cancels the body, which then raises ClaimLost."""
    handling = asyncio.current_task()
    assert handling is not None  # noqa: S101 - a coroutine always runs in a task
    keeper = Keeper(message, handling)
    try:
        yield keeper
    except asyncio.CancelledError:
        if keeper.lost is None or keeper.handling.uncancel():
            raise
        raise keeper.lost from None
    finally:
        keeper.stop()
