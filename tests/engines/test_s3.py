"""A registry with its content on a real S3 server, which is killed in the middle of submissions."""

import asyncio
from collections import Counter
from collections.abc import Awaitable

import httpx2
import pytest

from tests.incidents.steps import check_history, record_of
from tests.processes.test_kill import check_nothing_owed, check_published_once
from tests.processes.workers import REAL_WORKER, until, until_record, workers_on
from tests.support import s3
from tests.support.damage import BREAKS
from tests.support.envs import open_test_env, run_until_quiet, skill_files, submit_skill
from tests.support.patience import PATIENCE_S
from tests.support.people import browser
from tests.support.ports import free_port
from tests.support.system_reads import get_submission
from vskill_core.errors import BlobUnavailable, ContentDamaged
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions.states import State
from vskill_platform.ledger.blobs.s3 import S3Blobs
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.settings import Settings
from vskill_platform.store.skills.skills import find_by_name
from vskill_platform.store.stored_content import list_damage, read_content
from vskill_platform.upkeep.collector import collect
from vskill_platform.upkeep.scrub import ScrubProgress, scrub
from vskill_platform.web.app import create_app
from vskill_platform.worker_context import Env

pytestmark = pytest.mark.anyio


@pytest.fixture
def server(monkeypatch):
    """A server of this test's own, which it may kill."""
    started = s3.Server()
    for name, value in started.variables.items():
        monkeypatch.setenv(name, value)
    yield started
    started.remove()


async def test_nothing_is_lost_or_done_twice_while_the_server_is_away(tmp_path, server):
    """Submissions that wait for content go on when it is back, and count no failed attempt; what was refused was refused
    with a reason. Damage in the bucket is noticed, never handed out, and mended by the same files."""
    settings = Settings(
        data_dir=str(tmp_path), store=f"sqlite:{tmp_path / 'vskill.db'}", blobs=f"s3://{s3.BUCKET}/registry"
    )
    async with (
        open_test_env("sqlite", tmp_path, clock=SystemClock(), settings=settings) as env,
        workers_on(settings, tmp_path, VSKILL_BLOBS=settings.blobs, **server.variables) as processes,
    ):
        port = free_port()
        web = await processes.start(("-m", "vskill_platform", "serve", "--web-only", "--port", str(port)))
        await web.until_up()
        before = [record_of(await submit_skill(f"before-{number}")).id for number in range(6)]
        worker = await processes.start(REAL_WORKER)
        await worker.until_up()
        await until_record(before[0], lambda one: one.claim is not None or one.state.ends_run)
        await asyncio.to_thread(server.stop, kill=True)
        with pytest.raises(BlobUnavailable):
            await submit_skill("refused")

        async def answers(status: int) -> bool:
            async with httpx2.AsyncClient(timeout=30) as client:
                return (await client.get(f"http://127.0.0.1:{port}/readyz")).status_code == status

        await until(lambda: answers(503), PATIENCE_S, "the web process still says that it is ready")
        await asyncio.to_thread(server.start)
        await until(lambda: answers(200), PATIENCE_S, "the web process is not ready again")
        after = [record_of(await submit_skill(f"after-{number}")).id for number in range(3)]
        for number in (*before, *after):
            record = await until_record(number, lambda one: one.state.ends_run)
            assert (record.state, record.attempts.failed) == (State.PUBLISHED, 0)
            check_history(record)
            await check_published_once(record)
        await check_nothing_owed(env)
        assert web.running and worker.running

        for kind, number in zip(BREAKS, before, strict=False):
            digest = (await get_submission(number)).digest or ""
            await BREAKS[kind](env.blobs, digest)
            with pytest.raises(ContentDamaged):
                await read_content(digest)
        await scrub(ScrubProgress())
        assert sorted(one.kind.value for one in await list_damage()) == sorted(BREAKS)
        for again in range(len(BREAKS)):
            await submit_skill(f"before-{again}")
        assert await list_damage() == ()
        assert [file.path for file in await read_content(digest)] == [one.path for one in skill_files("x")]


async def test_what_each_thing_costs_in_requests(tmp_path):
    """The table in ADR 33, counted."""
    blobs = await asyncio.to_thread(s3.place_of, tmp_path)
    settings = Settings(data_dir=str(tmp_path), store=f"sqlite:{tmp_path / 'vskill.db'}", blobs=blobs)
    async with open_test_env("sqlite", tmp_path, clock=SystemClock(), settings=settings) as env:

        async def cost(work: Awaitable[object]) -> dict[str, int]:
            before = counted(env)
            await work
            return counted(env) - before

        async def submit(name: str) -> None:
            number = record_of(await submit_skill(name)).id
            await run_until_quiet(env)
            assert (await get_submission(number)).state is State.PUBLISHED

        async def a_pass() -> None:
            progress = ScrubProgress()
            while progress.ended_pieces != 5:
                progress = await scrub(progress)

        async def ask(path: str) -> None:
            async with browser(create_app(env)) as client:
                answer = await client.get(path)
            assert answer.status_code == 200, answer.text

        assert await cost(submit("lint")) == {"put": 1, "get": 1}
        canonical = (await find_by_name("lint", audiences=EVERYTHING)).canonical
        assert await cost(ask(f"/api/v1/skills/{canonical}/archive")) == {"get": 1}
        assert await cost(ask("/api/v1/skills/lint/file?path=SKILL.md")) == {"get": 1}
        for number in range(4):
            await submit(f"more-{number}")
        assert await cost(a_pass()) == {"get": 5}
        # A round begins six hours after the one before: the server's time is asked for.
        assert isinstance(env.blobs, S3Blobs)
        env.blobs._time = None
        assert await cost(collect()) == {"put": 1, "head": 1, "list": 2}


def counted(env: Env) -> Counter[str]:
    (metric,) = env.metrics.content_requests.collect()
    samples = (one for one in metric.samples if one.name.endswith("_total"))
    return Counter({one.labels["kind"]: int(one.value) for one in samples})
