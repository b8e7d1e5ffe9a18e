"""Keeping hold of work while it goes on: claim and lease are renewed side by side, and a claim that is lost ends
the work at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from vskill_platform.broker.contract import Message
from vskill_platform.domain.errors import ClaimLost, StoreError
from vskill_platform.domain.submission import RENEW_EVERY_MS
from vskill_platform.worker_context import require_env


class Renewable(Protocol):
    """A claim, whatever it is on."""

    async def renew(self) -> None:
        """Raises ClaimLost if it is not ours any more."""


class Keeper:
    """What is kept alive while a message is handled."""

    def __init__(self, message: Message, handling: "asyncio.Task[object]") -> None:
        self.message = message
        self.claim: Renewable | None = None
        self.handling = handling
        self.lost: ClaimLost | None = None

    async def run(self) -> None:
        """Renew claim and lease until stopped; a claim that is lost stops the work."""
        while True:
            await asyncio.sleep(RENEW_EVERY_MS / 1000)
            try:
                if self.claim is not None:
                    await self.claim.renew()
                await self.message.extend()
            except ClaimLost as error:
                self.lost = error
                self.handling.cancel()
                return
            except StoreError as error:
                require_env("log").log.warning("lease not extended", error=str(error))


@asynccontextmanager
async def kept_alive(message: Message) -> AsyncIterator[Keeper]:
    """Renew while the body runs. A claim that is lost ends the body with ClaimLost, and nothing around it."""
    keeper = Keeper(message, _current_task())
    renewals = asyncio.create_task(keeper.run())
    try:
        yield keeper
    except asyncio.CancelledError:
        if keeper.lost is None or keeper.handling.uncancel():
            raise
        raise keeper.lost from None
    finally:
        renewals.cancel()


def _current_task() -> "asyncio.Task[object]":
    task = asyncio.current_task()
    if task is None:  # pragma: no cover - a coroutine always runs in one
        raise RuntimeError("not in a task")
    return task
