"""US-003: concurrent batches, jobs and requests in one process never see each other's environment.

In test names `-` is written `_`. Here are AC-US3-01, AC-US3-02, AC-US3-04, AC-US3-05, FR-002, FR-003, TC-058, TC-060,
TC-061, TC-062 and TC-063.
"""

import asyncio
import contextvars
import random
from collections.abc import AsyncIterator

import pytest

from tests.support.memory_env import named_env
from vskill_core.errors import NoEnvironment
from vskill_platform import worker_context
from vskill_platform.worker_context import (
    Env,
    get_worker_env,
    require_env,
    run_with_worker_env,
    worker_env_storage,
)

pytestmark = pytest.mark.anyio

A = named_env("a")
B = named_env("b")


def test_AC_US3_01_the_environment_is_held_in_a_context_variable_of_that_name():
    assert isinstance(worker_env_storage, contextvars.ContextVar)
    assert worker_env_storage.name == "worker_env_storage"


def test_TC_060_without_a_context_there_is_no_environment():
    """FR-003: the signature stays `Env | None`."""
    assert get_worker_env() is None
    assert get_worker_env.__annotations__["return"] == Env | None


async def test_TC_061_TC_062_inside_it_is_there_and_afterwards_it_is_gone():
    async def inside() -> Env | None:
        await asyncio.sleep(0)
        return get_worker_env()

    assert await run_with_worker_env(A, inside) is A
    assert get_worker_env() is None


async def test_AC_US3_02_takes_sync_and_async_functions():
    assert await run_with_worker_env(A, get_worker_env) is A
    assert await run_with_worker_env(A, lambda: 42) == 42


async def test_AC_US3_02_restores_what_was_there_when_the_function_raises():
    async def fails() -> None:
        raise ValueError("inside")

    async def outer() -> Env | None:
        with pytest.raises(ValueError, match="inside"):
            await run_with_worker_env(B, fails)
        return get_worker_env()

    assert await run_with_worker_env(A, outer) is A


async def test_AC_US3_02_restores_what_was_there_when_cancelled():
    seen: list[Env | None] = []

    async def outer() -> None:
        try:
            await run_with_worker_env(B, lambda: asyncio.sleep(60))
        finally:
            seen.append(get_worker_env())

    task = asyncio.create_task(run_with_worker_env(A, outer))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == [A]


async def test_AC_US3_02_a_coroutine_object_is_refused():
    async def work() -> None: ...

    with pytest.raises(TypeError, match="function"):
        await run_with_worker_env(A, work())  # type: ignore[call-overload]


def test_AC_US3_02_there_is_no_way_to_set_or_clear_it():
    assert not hasattr(worker_context, "set_worker_env")
    assert not hasattr(worker_context, "clear_worker_env")


async def test_TC_058_TC_063_two_at_once_each_see_their_own_and_nesting_restores_the_outer():
    async def watch(env: Env, seen: list[Env | None]) -> None:
        for _ in range(20):
            seen.append(get_worker_env())
            await asyncio.sleep(0)

    seen_a: list[Env | None] = []
    seen_b: list[Env | None] = []
    await asyncio.gather(
        run_with_worker_env(A, lambda: watch(A, seen_a)), run_with_worker_env(B, lambda: watch(B, seen_b))
    )
    assert set(map(id, seen_a)) == {id(A)}
    assert set(map(id, seen_b)) == {id(B)}

    async def outer() -> tuple[Env | None, Env | None, Env | None]:
        before = get_worker_env()
        inner = await run_with_worker_env(B, get_worker_env)
        return before, inner, get_worker_env()

    assert await run_with_worker_env(A, outer) == (A, B, A)


async def test_AC_US3_04_asking_for_a_binding_outside_names_it_and_says_where_it_is():
    with pytest.raises(NoEnvironment) as raised:
        require_env("kv")
    message = str(raised.value)
    assert "kv" in message
    assert "batch" in message and "job" in message and "request" in message


async def test_AC_US3_05_every_way_of_going_on_keeps_the_environment():
    """Awaits, child tasks, task groups, async generators, to_thread, and executors through copy_context."""

    async def generator() -> AsyncIterator[Env | None]:
        for _ in range(3):
            yield get_worker_env()
            await asyncio.sleep(0)

    async def look(env: Env) -> None:
        seen: list[Env | None] = []

        async def child() -> None:
            await asyncio.sleep(0)
            seen.append(get_worker_env())

        await asyncio.create_task(child())
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(child())
        seen.extend([item async for item in generator()])
        seen.append(await asyncio.to_thread(get_worker_env))
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        seen.append(await loop.run_in_executor(None, context.run, get_worker_env))
        assert set(map(id, seen)) == {id(env)}
        assert len(seen) == 9

    await asyncio.gather(*(run_with_worker_env(env, lambda env=env: look(env)) for env in (A, B) * 10))  # type: ignore[misc]


async def test_AC_US3_05_ten_thousand_interleaved_jobs_tasks_and_threads_leak_nothing():
    """FR-002: the standard library's contextvars carries it. Each job sets a variable of its own as well, and
    no other job ever sees it."""
    own: contextvars.ContextVar[int | None] = contextvars.ContextVar("own", default=None)
    chance = random.Random(11)
    envs = [named_env(f"env-{number}") for number in range(50)]
    leaks = 0

    async def job(number: int, env: Env) -> None:
        nonlocal leaks

        def check() -> int:
            return int(get_worker_env() is not env) + int(own.get() != number)

        leaks += own.get() is not None
        own.set(number)
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
            leaks += check()
        if number % 5 == 0:
            leaks += await asyncio.create_task(asyncio.sleep(0, check()))
        if number % 20 == 0:
            leaks += await asyncio.to_thread(check)

    def start(number: int) -> asyncio.Task[None]:
        env = envs[number % len(envs)]
        work = run_with_worker_env(env, lambda: job(number, env))
        return asyncio.create_task(work, context=contextvars.Context())

    for first in range(0, 10_000, 500):
        await asyncio.gather(*(start(number) for number in range(first, first + 500)))
    assert leaks == 0
    assert get_worker_env() is None
