"""Each incident runs on the real engines: in memory, and on a SQLite file."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.support.envs import ENGINES, open_test_env
from tests.support.manual_clock import ManualClock
from vskill_platform.worker_context import Env

Opener = Callable[..., AbstractAsyncContextManager[Env]]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def open_here(engine: str, tmp_path: Path, clock: ManualClock) -> Opener:
    """Open an environment on this test's engine, file and clock; overrides as in `open_test_env`."""

    def opener(**overrides: Any) -> AbstractAsyncContextManager[Env]:
        return open_test_env(engine, tmp_path, **{"clock": clock, **overrides})

    return opener


@pytest.fixture
async def env(open_here: Opener) -> AsyncIterator[Env]:
    """An open environment that is also the active one."""
    async with open_here() as opened:
        yield opened
