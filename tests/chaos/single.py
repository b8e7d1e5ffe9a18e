"""The world of one machine: a SQLite file that web processes and workers share. Processes are killed, another one holds
the file's lock, and the disk is full."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.chaos.crew import Crew, crew_on
from tests.chaos.world import Plan, World
from tests.processes.workers import workers_on
from tests.support.envs import active_env
from vskill_platform.bootstrap import env_for
from vskill_platform.settings import Settings
from vskill_platform.worker_context import Env

LOCKED = "file locked by another program"


class Single(World):
    """One file, and who else wants it."""

    refused_when_full = ("blob_unavailable", "store_full", "store_unavailable")

    def __init__(self, env: Env, crew: Crew, plan: Plan, file: Path) -> None:
        super().__init__(env, crew, plan)
        self._file = file
        self.faults |= {LOCKED: self._lock}

    async def _lock(self) -> None:
        """For longer than a writer waits, where the plan has the time."""
        other = await asyncio.to_thread(
            lambda: sqlite3.connect(self._file, isolation_level=None, check_same_thread=False, timeout=30)
        )
        try:
            await asyncio.to_thread(other.execute, "BEGIN IMMEDIATE")
            await asyncio.sleep(3 * self.plan.down_s)
            other.execute("ROLLBACK")
        finally:
            other.close()


@asynccontextmanager
async def single(folder: Path, plan: Plan) -> AsyncIterator[World]:
    """Everything up and running on one file; whatever was started ends with it."""
    file = folder / "vskill.db"
    settings = Settings(data_dir=str(folder), store=f"sqlite:{file}")
    variables = {"VSKILL_RATE_LIMITS": "off", "TEST_SCAN_S": "0.05-0.4"}
    async with (
        env_for(settings) as env,
        workers_on(settings, folder, **variables) as processes,
        crew_on(processes, folder, plan.chance) as crew,
    ):
        with active_env(env):
            yield Single(env, crew, plan, file)
    with sqlite3.connect(file) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
