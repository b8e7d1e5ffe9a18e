"""Ready means that a write succeeds: shown on a disk that is really full."""

import asyncio
import os
import resource
import sys
from subprocess import PIPE

import httpx2
import msgspec
import pytest

from tests.support.counting_kv import CountingKV
from tests.support.envs import open_product_env, open_test_env, submit_skill
from tests.support.lifetimes import start_async
from tests.support.small_disk import can_mount, fill_disk, small_disk
from vskill_core.errors import BlobUnavailable, StoreUnavailable
from vskill_platform.machine.disk_space import DiskSpace, filling, look_at_disks
from vskill_platform.queue.alerts import AlertCode
from vskill_platform.queue.health import queue_health
from vskill_platform.settings import Settings
from vskill_platform.store.operation.workers import give_sign
from vskill_platform.web.app import create_app
from vskill_platform.worker_context import Pace, run_with_worker_env

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


def client_of(env):
    env = msgspec.structs.replace(env, pace=Pace(ready_every_s=0))
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(create_app(env)), base_url="http://a.test")


async def test_a_process_that_works_is_not_ready_while_no_worker_can(tmp_path):
    async with open_test_env("memory", tmp_path, pace=Pace(ready_every_s=0)) as env:
        for works, status in ((True, 503), (False, 200)):
            app = create_app(env, works=works)
            async with httpx2.AsyncClient(
                transport=httpx2.ASGITransport(app), base_url="http://a.test"
            ) as client:
                assert (await client.get("/readyz")).status_code == 200
                await give_sign(lacks="No temporary file can be written.")
                answer = await client.get("/readyz")
                assert answer.status_code == status
                await give_sign()
                assert (await client.get("/readyz")).status_code == 200


async def is_not_ready_and_says_full(tmp_path, full):
    """Records and content on different disks, one of them full; with room again it is ready again."""
    with small_disk(tmp_path / "small") as small:
        places = {"records": tmp_path / "large", "content": tmp_path / "large", full: small}
        settings = Settings(
            data_dir=str(tmp_path / "data"),
            store=f"sqlite:{places['records'] / 'vskill.db'}",
            blobs=f"files:{places['content'] / 'blobs'}",
        )
        async with open_product_env(settings) as env, client_of(env) as client:
            assert (await client.get("/readyz")).status_code == 200
            taken = await asyncio.to_thread(fill_disk, small)
            # What SQLite has of its own journal is used up first.
            answers = [await client.get("/readyz") for _ in range(600)]
            assert answers[-1].status_code == 503
            assert "full" in answers[-1].json()["detail"]
            assert str(small) not in answers[-1].text
            with pytest.raises(Exception, match="full"):
                await run_with_worker_env(env, lambda: submit_skill("refused"))
            metrics = (await client.get("/metrics")).text
            assert f'vskill_disk_free_bytes{{kept="{full}"}} 0.0' in metrics
            health = await run_with_worker_env(env, queue_health)
            assert AlertCode.DISK_FILLING in {alert.code for alert in health.alerts}
            assert "full" in await _doctor(settings)
            taken.unlink()
            assert (await client.get("/readyz")).status_code == 200


if can_mount():  # elsewhere a limit of a file's size shows what it can, below

    @pytest.mark.parametrize("full", ["records", "content"])
    async def test_on_a_full_disk_the_registry_is_not_ready_and_says_full(tmp_path, full):
        await is_not_ready_and_says_full(tmp_path, full)


async def _doctor(settings: Settings) -> str:
    variables = {
        **os.environ,
        "VSKILL_DATA_DIR": settings.data_dir,
        "VSKILL_STORE": settings.store,
        "VSKILL_BLOBS": settings.blobs,
    }
    process = await start_async(
        sys.executable, "-m", "vskill_platform", "doctor", "--json", env=variables, stdout=PIPE
    )
    said, _ = await process.communicate()
    assert process.returncode == 1
    wrong = [one["detail"] for one in msgspec.json.decode(said) if not one["ok"]]
    return " ".join(wrong)


async def test_where_nothing_can_be_written_the_registry_is_not_ready(tmp_path):
    """On any machine, by a limit of how large a file may be: records and content are each tried by a real write."""
    settings = Settings(store=f"sqlite:{tmp_path / 'vskill.db'}", blobs=f"files:{tmp_path / 'blobs'}")
    async with open_product_env(settings) as env, client_of(env) as client:
        assert (await client.get("/readyz")).status_code == 200
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
        try:
            answer = await client.get("/readyz")
            with pytest.raises(StoreUnavailable):
                await env.kv.check()
            with pytest.raises(BlobUnavailable):
                await env.blobs.check()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert answer.status_code == 503
        assert str(tmp_path) not in answer.text
        assert (await client.get("/readyz")).status_code == 200


async def test_many_who_ask_share_one_probe(env):
    kv = CountingKV(env.kv)
    app = create_app(msgspec.structs.replace(env, kv=kv, pace=Pace(ready_every_s=600)))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://a.test") as client:
        answers = await asyncio.gather(*(client.get("/readyz") for _ in range(20)))
        assert {answer.status_code for answer in answers} == {200}
    assert kv.calls["get"] == 1


def test_a_disk_is_told_of_once_and_before_it_is_full(tmp_path):
    spaces = (DiskSpace("data", 900 << 20, 1 << 40, 1), DiskSpace("records", 900 << 20, 1 << 40, 1))
    assert [one.kept for one in filling(spaces, Settings(disk_alert_mib=1_000))] == ["data"]
    assert filling(spaces, Settings(disk_alert_mib=800)) == ()
    assert look_at_disks(Settings(store="memory:")) == ()
    assert look_at_disks(Settings(data_dir=str(tmp_path / "not-there"))) == ()
