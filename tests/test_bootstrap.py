"""From settings to an environment: what is named is opened, what is opened is closed, what is wrong is said."""

import os
import sqlite3

import pytest
import structlog

from tests.support.manual_clock import ManualClock
from vskill_core.content import SkillFile, digest_of_files
from vskill_core.errors import (
    BlobUnavailable,
    InvalidSettings,
    SchemaUnknown,
    StoreCorrupt,
    StoreUnavailable,
)
from vskill_platform.bootstrap import env_for, new_worker_id, report_start
from vskill_platform.ledger.kv.contract import KV
from vskill_platform.settings import Settings

pytestmark = pytest.mark.anyio


async def test_the_defaults_open_a_file_and_a_folder_that_did_not_exist(tmp_path):
    data = tmp_path / "a" / "data"
    async with env_for(Settings(data_dir=str(data))) as env:
        assert (env.kv.engine, env.broker.engine, env.blobs.engine) == ("sqlite", "sqlite", "files")
        await env.kv.check()
        await env.kv.put("control:queue", b"{}")
    async with env_for(Settings(data_dir=str(data))) as again:
        entry = await again.kv.get("control:queue")
    assert entry is not None
    assert entry.value == b"{}"
    assert sorted(path.name for path in data.iterdir()) == ["blobs", "keys", "vskill.db"]


async def test_in_memory_nothing_touches_the_disk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with env_for(Settings(store="memory:")) as env:
        assert (env.kv.engine, env.broker.engine, env.blobs.engine) == ("memory", "memory", "memory")
    assert list(tmp_path.iterdir()) == []


async def test_everything_is_closed_when_the_work_fails(tmp_path):
    opened: list[KV] = []

    async def work() -> None:
        async with env_for(Settings(data_dir=str(tmp_path))) as env:
            opened.append(env.kv)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await work()
    with pytest.raises(StoreUnavailable):
        await opened[0].put("control:queue", b"{}")


async def test_the_store_is_closed_when_something_after_it_cannot_be_opened(tmp_path):
    """SQLite removes its log when the last connection closes: it is gone, so nothing was left open."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BlobUnavailable):
        async with env_for(Settings(data_dir=str(tmp_path), blobs=f"files:{tmp_path / 'file' / 'blobs'}")):
            pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "vskill.db"]


@pytest.mark.parametrize(
    ("settings", "variable"),
    [
        (Settings(store="mysql://localhost/x"), "VSKILL_STORE"),
        (Settings(store="vskill.db"), "VSKILL_STORE"),
        (Settings(store="sqlite:"), "VSKILL_STORE"),
        (Settings(store="memory:", broker="nats://localhost"), "VSKILL_BROKER"),
        (Settings(store="memory:", blobs="gs://bucket"), "VSKILL_BLOBS"),
        (Settings(store="memory:", blobs="files:"), "VSKILL_BLOBS"),
    ],
)
async def test_a_location_that_no_engine_serves_is_refused_by_name(settings, variable):
    with pytest.raises(InvalidSettings, match=f"{variable} is .*, which no engine serves"):
        async with env_for(settings):
            pass


async def test_E16_a_schema_of_a_newer_release_is_refused_and_left_alone(tmp_path):
    async with env_for(Settings(data_dir=str(tmp_path))):
        pass
    with sqlite3.connect(tmp_path / "vskill.db") as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(SchemaUnknown, match="999"):
        async with env_for(Settings(data_dir=str(tmp_path))):
            pass


async def test_a_file_that_is_no_database_is_refused_by_name(tmp_path):
    (tmp_path / "vskill.db").write_bytes(b"this is a text, not a database" * 100)
    with pytest.raises(StoreCorrupt, match=r"vskill\.db"):
        async with env_for(Settings(data_dir=str(tmp_path))):
            pass


async def test_a_data_folder_that_cannot_be_made_is_said_by_name(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreUnavailable, match=r"VSKILL_STORE: the folder .* cannot be made"):
        async with env_for(Settings(data_dir=str(tmp_path / "file" / "data"))):
            pass


async def test_the_clock_is_the_one_given(tmp_path):
    clock = ManualClock()
    async with env_for(Settings(data_dir=str(tmp_path)), clock=clock) as env:
        assert env.clock is clock
        assert env.kv.now() == clock.now()


async def test_known_bad_digests_reach_the_scanner():
    files = [SkillFile("SKILL.md", "100644", b"---\nname: a\ndescription: b\n---\n")]
    settings = Settings(store="memory:", known_bad_digests=(digest_of_files(files),))
    async with env_for(settings) as env:
        (finding,) = (await env.scanner.scan(files)).findings
    assert finding.certain


async def test_B17_a_missing_tier_is_a_named_degraded_mode():
    async with env_for(Settings(store="memory:")) as env:
        assert env.judge is None
        with structlog.testing.capture_logs() as lines:
            report_start(env)
    assert "degraded mode: no judge configured" in [line["event"] for line in lines]


def test_every_process_has_a_name_of_its_own():
    names = {new_worker_id() for _ in range(20)}
    assert len(names) > 1
    assert all(f"-{os.getpid()}-" in name for name in names)
