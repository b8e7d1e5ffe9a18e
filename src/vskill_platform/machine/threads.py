"""Threads for one kind of work. `asyncio.to_thread` has only a few threads for the whole process: writes to a slow disk
would occupy all of them and block everything else that needs one."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class WorkThreads:
    """A bounded pool of threads, started on demand."""

    def __init__(self, name: str, most: int) -> None:
        self._executor = ThreadPoolExecutor(most, thread_name_prefix=name)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call it in one of the threads, in the caller's context."""
        call = partial(copy_context().run, work, *args, **kwargs)
        return await asyncio.wrap_future(self._executor.submit(call))

    def close(self) -> None:
        """Release the threads without waiting; what runs in them ends by itself."""
        self._executor.shutdown(wait=False)
