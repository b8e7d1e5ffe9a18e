"""Nothing is acknowledged that went into a file which somebody has deleted or replaced, and the process says so."""

import shutil
from pathlib import Path

import httpx2
import msgspec
import pytest

from tests.support.envs import open_product_env, submit_skill
from tests.support.html import Page
from vskill_core.errors import StoreReplaced
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.ledger.database.sqlite import SqliteDatabase
from vskill_platform.ledger.kv.sqlite import SqliteKV
from vskill_platform.queue.alerts import AlertCode
from vskill_platform.queue.health import queue_health
from vskill_platform.settings import Settings
from vskill_platform.web.app import create_app
from vskill_platform.worker_context import Pace, run_with_worker_env

pytestmark = pytest.mark.anyio


async def open_kv(path: Path) -> SqliteKV:
    return SqliteKV(await SqliteDatabase.open(path, SystemClock()))


def delete_log(path: Path) -> None:
    path.with_name(f"{path.name}-wal").unlink()


def delete_all(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def replace_database(path: Path) -> None:
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    copy.replace(path)


@pytest.mark.parametrize("happen", [delete_log, delete_all, replace_database])
async def test_a_write_into_a_file_that_is_gone_is_not_acknowledged(tmp_path, happen):
    path = tmp_path / "vskill.db"
    kv = await open_kv(path)
    await kv.put("k", b"1")
    await kv.check_files()
    happen(path)
    with pytest.raises(StoreReplaced, match="restart the process"):
        await kv.check_files()
    for _ in range(2):
        with pytest.raises(StoreReplaced, match="restart the process"):
            await kv.put("k", b"2")
    assert (await kv.get("k")) is not None, "reading goes on"
    await kv.close()


async def test_what_was_acknowledged_before_its_log_was_deleted_is_there_after_a_restart(tmp_path):
    path = tmp_path / "vskill.db"
    kv = await open_kv(path)
    for number in range(50):
        await kv.put(f"k{number}", b"1")
    delete_log(path)
    with pytest.raises(StoreReplaced):
        await kv.put("late", b"1")
    await kv.close()
    again = await open_kv(path)
    found = await again.get_many([f"k{number}" for number in range(50)])
    assert len(found.found) == 50
    await again.close()


async def test_a_new_connection_that_cannot_read_beside_a_deleted_log_is_told_why_and_the_next_can(tmp_path):
    path = tmp_path / "vskill.db"
    kv = await open_kv(path)
    await kv.put("k", b"1")
    delete_log(path)
    with pytest.raises(StoreReplaced):
        await kv.changes("k")
    assert [change.key for change in (await kv.changes("k")).items] == ["k"]
    await kv.close()


async def test_a_database_that_somebody_put_in_place_is_left_alone(tmp_path):
    path = tmp_path / "vskill.db"
    kv = await open_kv(path)
    await kv.put("k", b"1")
    delete_all(path)
    other = await open_kv(path)
    await other.put("theirs", b"1")
    with pytest.raises(StoreReplaced):
        await kv.put("k", b"2")
    await kv.close()
    assert await other.get("k") is None and await other.get("theirs") is not None
    await other.put("theirs", b"2")
    await other.close()


async def test_readiness_health_and_pages_say_it(tmp_path):
    settings = Settings(data_dir=str(tmp_path), store=f"sqlite:{tmp_path / 'vskill.db'}")
    async with open_product_env(settings) as opened:
        env = msgspec.structs.replace(opened, pace=Pace(ready_every_s=0))
        transport = httpx2.ASGITransport(create_app(env))
        async with httpx2.AsyncClient(transport=transport, base_url="http://a.test") as client:
            assert (await client.get("/readyz")).status_code == 200
            delete_log(tmp_path / "vskill.db")
            health = await run_with_worker_env(env, queue_health)
            assert not health.healthy and health.violations[0].key == "store"
            assert health.alerts[0].code is AlertCode.STORE_REPLACED
            answer = await client.get("/readyz")
            assert (answer.status_code, answer.json()["code"]) == (503, "store_replaced")
            assert "deleted or replaced" in answer.json()["detail"] and str(tmp_path) not in answer.text
            with pytest.raises(StoreReplaced):
                await run_with_worker_env(env, lambda: submit_skill("refused"))
            page = Page((await client.get("/queue")).text).text
            assert page.count("deleted or replaced") == 1 and "Nothing is stuck" not in page
