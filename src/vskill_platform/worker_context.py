"""The environment of the running batch, scheduled job or web request, carried by a context variable so that
concurrent ones in one process never see each other's (US-003)."""

import inspect
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, TypeVar, overload

from vskill_core.errors import NoEnvironment
from vskill_platform.env import Env

T = TypeVar("T")

worker_env_storage: ContextVar[Env | None] = ContextVar("worker_env_storage", default=None)


def get_worker_env() -> Env | None:
    """The environment of what is running here, or None outside of a batch, a job and a request."""
    return worker_env_storage.get()


def require_env(binding: str = "env") -> Env:
    """The environment, or one clear error that names the binding that was asked for."""
    env = worker_env_storage.get()
    if env is None:
        raise NoEnvironment(binding=binding)
    return env


@overload
async def run_with_worker_env(env: Env, fn: Callable[[], Awaitable[T]]) -> T: ...
@overload
async def run_with_worker_env(env: Env, fn: Callable[[], T]) -> T: ...
async def run_with_worker_env(env: Env, fn: Callable[[], Any]) -> Any:
    """Call `fn` with this environment, and restore what was there before, however it ends."""
    if inspect.iscoroutine(fn):
        fn.close()
        raise TypeError("run_with_worker_env takes a function without arguments, not a coroutine object")
    token = worker_env_storage.set(env)
    try:
        result = fn()
        return await result if inspect.isawaitable(result) else result
    finally:
        worker_env_storage.reset(token)
