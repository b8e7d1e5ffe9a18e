"""What was acknowledged is there after a failover of PostgreSQL, if its primary waits for a standby: shown with a real
standby, a primary that is killed while work comes in, and the promotion of the standby."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from tests.support.envs import open_product_env, submit_skill
from tests.support.patience import PATIENCE_S
from tests.support.postgres import Server, new_database
from vskill_core.errors import PlatformError, StoreError
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions.states import State
from vskill_platform.intake.submit import Submitted
from vskill_platform.settings import Settings
from vskill_platform.submission_store import get_submission
from vskill_platform.worker_context import Env, run_with_worker_env

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

#: Submissions before the standby falls behind, and those that are under way when the primary dies.
BEFORE, LATE = 20, 20


@asynccontextmanager
async def primary_and_standby() -> AsyncIterator[tuple[Server, Server, str]]:
    """Two servers that keep what they have, and where processes find whichever of them takes writes."""
    servers: list[Server] = []
    try:
        primary = await asyncio.to_thread(Server, durable=True)
        servers.append(primary)
        name = (await new_database(primary)).rpartition("/")[2]
        standby = await asyncio.to_thread(lambda: Server(durable=True, standby_of=primary))
        servers.append(standby)
        hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
        location = f"postgresql://postgres@{hosts}/{name}?target_session_attrs=read-write"
        yield primary, standby, location
    finally:
        for server in servers:
            await asyncio.to_thread(server.remove)


async def ask(server: Server, statement: str) -> Any:
    connection = await asyncpg.connect(f"{server.url}/postgres")
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


async def until(condition: Callable[[], Awaitable[Any]]) -> Any:
    """Wait until it gives something true, also where a server is away at first."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                if value := await condition():
                    return value
            except (PlatformError, OSError, asyncpg.PostgresError):
                pass
            await asyncio.sleep(0.05)


async def acknowledge(names: list[str]) -> list[str]:
    """Submit them all at once; the ids of those that were answered with success."""
    submitted = await asyncio.gather(*map(submit_skill, names), return_exceptions=True)
    for outcome in submitted:
        assert not isinstance(outcome, BaseException) or isinstance(outcome, StoreError), outcome
    return [one.submission.id for one in submitted if isinstance(one, Submitted) and one.submission]


async def fail_over(env: Env, primary: Server, standby: Server) -> tuple[list[str], list[str]]:
    """Submissions that were acknowledged, and those of them that the promoted standby does not have."""
    acknowledged = await acknowledge([f"early-{number}" for number in range(BEFORE)])
    assert len(acknowledged) == BEFORE
    # From here on the standby hears of nothing.
    sender = int(await ask(primary, "SELECT pid FROM pg_stat_replication"))
    os.kill(sender, signal.SIGSTOP)
    late = asyncio.create_task(acknowledge([f"late-{number}" for number in range(LATE)]))
    await asyncio.wait([late], timeout=1)
    await asyncio.to_thread(primary.stop, kill=True)
    os.kill(sender, signal.SIGKILL)
    acknowledged += await late
    await until(lambda: ask(standby, "SELECT pg_promote()"))

    async def find_missing() -> tuple[str, ...]:
        found = await env.kv.get_many([f"sub:{submission}" for submission in acknowledged])
        for error in found.failed.values():
            raise error
        return ("asked", *found.missing)

    missing = (await until(find_missing))[1:]
    return acknowledged, [key.partition(":")[2] for key in missing]


async def open_and_fail_over(tmp_path, primary, standby, location):
    settings = Settings(data_dir=str(tmp_path), store=location)
    async with open_product_env(settings) as env:
        risks = await env.kv.risks()

        async def run():
            acknowledged, missing = await fail_over(env, primary, standby)
            # The same process goes on with the server that was promoted.
            again = await submit_skill("after")
            assert again.submission is not None
            assert (await get_submission(again.submission.id, audiences=EVERYTHING)).state is State.RECEIVED
            return acknowledged, missing

        return (risks, *(await run_with_worker_env(env, run)))


async def test_with_a_synchronous_standby_nothing_acknowledged_is_missing_after_a_failover(tmp_path):
    async with primary_and_standby() as (primary, standby, location):
        await until(lambda: ask(primary, "SELECT count(*) FROM pg_stat_replication"))
        await ask(primary, "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'")
        await ask(primary, "SELECT pg_reload_conf()")
        await until(
            lambda: ask(primary, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'")
        )
        risks, acknowledged, missing = await open_and_fail_over(tmp_path, primary, standby, location)
        assert risks == () and missing == []
        assert len(acknowledged) >= BEFORE


async def test_with_an_asynchronous_standby_acknowledged_work_is_lost_and_doctor_warns_of_it(tmp_path):
    async with primary_and_standby() as (primary, standby, location):
        await until(lambda: ask(primary, "SELECT count(*) FROM pg_stat_replication"))
        risks, acknowledged, missing = await open_and_fail_over(tmp_path, primary, standby, location)
        assert len(acknowledged) == BEFORE + LATE and missing
        assert "synchronous_standby_names" in risks[0]
