"""Company and solitude in one worker process: most work runs side by side, but a submission over which workers
have died repeatedly runs alone, so that it can take nothing else down with it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class WorkGate:
    """Many in company, or one alone; whoever wants to be alone is not overtaken by newcomers."""

    def __init__(self) -> None:
        self._inside = 0
        self._turnstile = asyncio.Lock()
        self._empty = asyncio.Event()
        self._empty.set()

    @asynccontextmanager
    async def company(self) -> AsyncIterator[None]:
        """Beside others, once nobody is alone inside or waits to be."""
        async with self._turnstile:
            self._enter()
        try:
            yield
        finally:
            self._leave()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """With nobody else inside."""
        async with self._turnstile:
            await self._empty.wait()
            yield

    def _enter(self) -> None:
        self._inside += 1
        self._empty.clear()

    def _leave(self) -> None:
        self._inside -= 1
        if not self._inside:
            self._empty.set()
