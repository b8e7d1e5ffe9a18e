"""Threads for one kind of work. The threads behind `asyncio.to_thread` are a handful for the whole process: where
content is written to a slow disk, they all wait for it, and whatever else needs one waits as long."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class WorkThreads:
    """So many threads at most, made when they are needed."""

    def __init__(self, name: str, most: int) -> None:
        self._executor = ThreadPoolExecutor(most, thread_name_prefix=name)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call it in one of the threads, in the caller's context."""
        call = partial(copy_context().run, work, *args, **kwargs)
        return await asyncio.wrap_future(self._executor.submit(call))

    def close(self) -> None:
        """Let go of the threads; what runs in them ends by itself."""
        self._executor.shutdown(wait=False)
