"""The whole way of a skill on the engines of more than one machine: PostgreSQL with its own queue, PostgreSQL with
NATS beside it, and SQLite with NATS; opened by the real wiring from locations, as an operator writes them."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import structlog

from tests.support import nats, postgres
from tests.support.envs import active_env, submit_skill
from tests.support.patience import PATIENCE_S
from tests.support.scanners import structure_scanner
from tests.support.system_reads import get_submission
from vskill_core.errors import InvalidSettings, QueueUnavailable, StoreUnavailable
from vskill_platform.bootstrap import env_for, report_start, schema_version
from vskill_platform.domain.submissions.states import State
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.queue.consumer import run_consumer
from vskill_platform.queue.health import queue_health
from vskill_platform.queue.recovery import recover_stuck_submissions
from vskill_platform.settings import Settings
from vskill_platform.worker_context import Env, run_with_worker_env
from vskill_scan.reading.manifest import read_manifest

pytestmark = pytest.mark.anyio

STORES = ["postgresql", "postgresql+nats", "sqlite+nats"]


@pytest.fixture(params=STORES)
async def settings(request, tmp_path: Path) -> Settings:
    store, _, queue = request.param.partition("+")
    location = (
        await postgres.database_of(tmp_path) if store == "postgresql" else f"sqlite:{tmp_path / 'v.db'}"
    )
    await asyncio.to_thread(nats.server)
    broker = await nats.queue_of(tmp_path) if queue else ""
    return Settings(data_dir=str(tmp_path), store=location, broker=broker)


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Env]:
    async with env_for(settings) as env:
        # The scanner's processes are not what is tested here.
        scanner = structure_scanner(read_manifest, settings.known_bad_digests)
        yield msgspec.structs.replace(env, scanner=scanner)


@asynccontextmanager
async def working(env: Env) -> AsyncIterator[None]:
    """A worker beside the test."""
    stop = asyncio.Event()
    task = asyncio.create_task(run_consumer(env, stop))
    try:
        yield
    finally:
        stop.set()
        await task


async def submitted(name: str) -> str:
    record = (await submit_skill(name)).submission
    assert record is not None
    return record.id


async def state_of(submission_id: str) -> State:
    return (await get_submission(submission_id)).state


async def until_published(submission_id: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await state_of(submission_id) is not State.PUBLISHED:  # noqa: ASYNC110 - another process tells nobody here
            await asyncio.sleep(0.05)


async def test_a_skill_goes_all_the_way_through_a_worker_that_shares_only_the_engines(settings: Settings):
    async with opened(settings) as web, opened(settings) as worker:
        with active_env(web):
            async with working(worker):
                for number in range(5):
                    await until_published(await submitted(f"skill-{number}"))
            assert not (await queue_health()).violations
            depth = await web.broker.depth()
            assert (depth.ready, depth.delayed, depth.leased, depth.dead) == (0, 0, 0, 0)


async def test_B8_a_message_that_was_lost_is_sent_again_by_recovery(settings: Settings):
    """The record is the truth: whatever the queue forgot comes back from it."""
    async with opened(settings) as env:
        with active_env(env):
            forgotten = await submitted("forgotten")
            for batch in await env.broker.receive(10, 1_000):
                await batch.ack_all()
            assert await state_of(forgotten) is State.RECEIVED
            async with working(env), asyncio.timeout(PATIENCE_S):
                while await state_of(forgotten) is not State.PUBLISHED:
                    await run_with_worker_env(env, recover_stuck_submissions)
                    await asyncio.sleep(0.2)


async def test_what_was_opened_is_said_and_has_the_schema_that_doctor_shows(settings: Settings):
    async with opened(settings) as env:
        await env.kv.check()
        assert await asyncio.to_thread(schema_version, settings) is not None
        assert abs(env.kv.now() - env.clock.now()) < 1_000


class FastClock(SystemClock):
    """A machine whose clock is ahead."""

    def now(self) -> int:
        return super().now() + 5_000


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
async def test_a_clock_that_differs_from_the_stores_is_reported_at_the_start(settings: Settings):
    async with opened(settings) as env:
        with structlog.testing.capture_logs() as logs:
            report_start(msgspec.structs.replace(env, log=structlog.get_logger()))
            assert not [one for one in logs if "clock" in one["event"]]
            report_start(msgspec.structs.replace(env, log=structlog.get_logger(), clock=FastClock()))
        (said,) = [one for one in logs if "clock" in one["event"]]
        assert 4_000 < said["ahead_ms"] < 6_000


async def test_a_server_that_is_not_there_is_said_by_name_without_its_password(tmp_path: Path):
    gone = "127.0.0.1:1"
    with pytest.raises(StoreUnavailable, match=gone) as store:
        async with env_for(Settings(data_dir=str(tmp_path), store=f"postgresql://me:hush@{gone}/x")):
            pass
    with pytest.raises(QueueUnavailable, match=gone) as queue:
        async with env_for(Settings(data_dir=str(tmp_path), broker=f"nats://me:hush@{gone}")):
            pass
    assert "hush" not in str(store.value) + str(queue.value)


@pytest.mark.parametrize(
    "broker",
    ["nats://", "nats://host/a.b", "nats://host?replicas=2", "nats://host?retries=3", "redis://host", "nats"],
)
async def test_a_queue_that_is_written_wrongly_is_refused_by_name(tmp_path: Path, broker):
    with pytest.raises(InvalidSettings, match="VSKILL_BROKER"):
        async with env_for(Settings(data_dir=str(tmp_path), broker=broker)):
            pass


@pytest.mark.parametrize(
    ("module", "settings", "extra"),
    [
        ("asyncpg", Settings(store="postgresql://host/x"), "postgres"),
        ("nats", Settings(broker="nats://host"), "nats"),
    ],
)
async def test_a_missing_extra_is_said_with_the_command_that_installs_it(
    monkeypatch, module, settings, extra
):
    for name in [one for one in sys.modules if one == module or one.startswith(f"{module}.")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [one for one in sys.modules if one.startswith("vskill_platform.") and extra in one]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InvalidSettings, match=rf"install the extra `{extra}`"):
        async with env_for(settings):
            pass
