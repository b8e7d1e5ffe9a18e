"""Each engine's failure as a client meets it: the typed error's code in a 503 that says what is down and when to come
again, for reads and for writes; and when the cause is gone, the same process answers again by itself (E9).

A real server answers on loopback, over the real wiring. SQLite is made to fail by its own means: a lock, a connection that may
not write, a file that may not grow. PostgreSQL and NATS are servers of the test's own, so that they can be stopped.
"""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import httpx2
import msgspec
import pytest
import structlog

from tests.processes.workers import until
from tests.support import nats, postgres
from tests.support.envs import active_env, skill_files
from tests.support.patience import PATIENCE_S
from tests.support.people import make_account, token_of
from tests.support.streams import serving
from vskill_core.errors import (
    BlobUnavailable,
    QueueUnavailable,
    StoreBusy,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from vskill_platform.bootstrap import env_for
from vskill_platform.ledger.database.sqlite import SqliteDatabase
from vskill_platform.ledger.database.writer import Tx, WriteKind
from vskill_platform.ledger.kv.sqlite import SqliteKV
from vskill_platform.queue.recovery import recover_stuck_submissions
from vskill_platform.settings import Settings
from vskill_platform.store.people.accounts import Role
from vskill_platform.web.clients.clawhub import API
from vskill_platform.worker_context import Env, Pace, run_with_worker_env

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

READS = (
    "/api/v1/skills",
    "/api/v1/skills/upload~ada/skills/none",
    "/api/v1/submissions",
    "/api/v1/submissions/stats",
    "/api/v1/submissions/sub_none",
    "/api/v1/queue/health",
)
#: For people: the same statuses, in a page.
PAGES = ("/", "/queue", "/skills")


class Client:
    """Somebody who reads and submits."""

    def __init__(self, client: httpx2.AsyncClient, token: str) -> None:
        self._client = client
        self._headers = {"authorization": f"Bearer {token}"}
        self._number = 0

    async def read(self, path: str) -> httpx2.Response:
        return await self._client.get(path, headers={"accept": "text/html" if path in PAGES else "*/*"})

    async def submit(self, words: str = "") -> httpx2.Response:
        self._number += 1
        name = f"skill-{self._number}"
        files = [("files", (one.path, one.data)) for one in skill_files(name, words)]
        return await self._client.post(
            f"{API}/skills", data={"payload": json.dumps({"slug": name})}, files=files, headers=self._headers
        )

    async def is_served(self) -> bool:
        """Reads, writes and the announcement of readiness all succeed."""
        answers = [await self.read("/api/v1/skills"), await self.submit(), await self.read("/readyz")]
        assert all(one.status_code in {200, 503} for one in answers), [one.text for one in answers]
        return all(one.status_code == 200 for one in answers)


@asynccontextmanager
async def client_of(env: Env) -> AsyncIterator[Client]:
    await make_account(env, "ada", Role.AUTHOR)
    token = await token_of(env, "ada", "submit")
    async with (
        serving(msgspec.structs.replace(env, pace=Pace(ready_every_s=0))) as address,
        httpx2.AsyncClient(base_url=address, timeout=PATIENCE_S) as opened,
    ):
        client = Client(opened, token)
        assert await client.is_served()
        await check_read(client)
        yield client


async def check_read(client: Client) -> None:
    for path in (*READS, *PAGES):
        assert (await client.read(path)).status_code in {200, 404}, path


#: What each failure is called; files, servers and the driver's words stay in the log.
SENTENCES = {
    kind.code: kind().message
    for kind in (StoreBusy, StoreReadOnly, StoreFull, StoreUnavailable, BlobUnavailable)
}


def check_problem(answer: httpx2.Response, code: str, inside: str) -> None:
    """It says what is wrong, and nothing of the inside. Clawhub's clients are told in plain text."""
    assert answer.status_code == 503, answer.text
    assert int(answer.headers["retry-after"]) > 0
    assert SENTENCES[code].rstrip(".") in answer.text
    assert inside not in answer.text
    if answer.headers["content-type"] == "application/problem+json":
        body = answer.json()
        assert (body["code"], body["status"]) == (code, 503), body


def check_page(answer: httpx2.Response) -> None:
    assert answer.status_code == 503, answer.text
    assert int(answer.headers["retry-after"]) > 0
    assert answer.headers["content-type"].startswith("text/html")


# SQLite.


@asynccontextmanager
async def on_sqlite(folder: Path) -> AsyncIterator[tuple[Client, SqliteDatabase]]:
    settings = Settings(data_dir=str(folder), store=f"sqlite:{folder / 'vskill.db'}", rate_limits="off")
    async with env_for(settings) as env, client_of(env) as client:
        assert isinstance(env.kv, SqliteKV)
        yield client, env.kv._db


async def check_only_writes_fail(client: Client, code: str, inside: str) -> None:
    """What is there can be read while nothing can be written."""
    check_problem(await client.submit(), code, inside)
    await check_read(client)


async def test_E9_a_locked_file_is_busy_for_writers_and_none_of_it_for_readers(tmp_path: Path):
    async with on_sqlite(tmp_path) as (client, database):
        other = sqlite3.connect(database.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        await check_only_writes_fail(client, "store_busy", "vskill.db")
        other.execute("ROLLBACK")
        other.close()
        assert await client.is_served()


def limit_growth(tx: Tx, arguments: Sequence[int]) -> Sequence[int]:
    (pages,) = tx.execute("PRAGMA page_count").fetchone()
    tx.execute(f"PRAGMA max_page_count = {pages + arguments[0]}")
    return arguments


async def test_E9_a_file_that_cannot_be_written_says_so_and_is_not_ready(tmp_path: Path):
    async with on_sqlite(tmp_path) as (client, database):
        # On the very connection that writes; its thread is idle.
        database._writer._connection.execute("PRAGMA query_only = ON")
        await check_only_writes_fail(
            client, "store_read_only", "vskill.db: the file or its folder is read-only"
        )
        check_problem(await client.read("/readyz"), "store_read_only", "vskill.db")
        database._writer._connection.execute("PRAGMA query_only = OFF")
        assert await client.is_served()


async def test_E9_a_full_disk_is_named_for_writers_and_none_of_it_for_readers(tmp_path: Path):
    async with on_sqlite(tmp_path) as (client, database):
        await database.write(WriteKind("limit", limit_growth), 0)
        answer = await fill(client)
        check_problem(answer, "store_full", "vskill.db")
        await check_read(client)
        await database.write(WriteKind("limit", limit_growth), 1_000_000)
        assert await client.is_served()


async def fill(client: Client) -> httpx2.Response:
    """Submit until one does not fit; what fits is accepted."""
    for _ in range(200):
        answer = await client.submit()
        if answer.status_code != 200:
            return answer
    raise AssertionError("the file grew for ever")


async def test_E9_content_whose_folder_is_gone_is_named_and_records_are_still_shown(tmp_path: Path):
    async with on_sqlite(tmp_path) as (client, _):
        content, elsewhere = tmp_path / "blobs", tmp_path / "unmounted"
        content.rename(elsewhere)
        check_problem(await client.submit(), "blob_unavailable", "/blobs")
        assert (await client.read("/api/v1/submissions")).status_code == 200
        elsewhere.rename(content)
        assert await client.is_served()


# PostgreSQL.


@pytest.fixture
async def server() -> AsyncIterator[postgres.Server]:
    """One that a test may stop."""
    started = await asyncio.to_thread(postgres.Server)
    yield started
    await asyncio.to_thread(started.remove)


async def on_postgres(server: postgres.Server, folder: Path) -> Settings:
    store = await postgres.new_database(server)
    return Settings(data_dir=str(folder), store=store, rate_limits="off")


@pytest.mark.parametrize("kill", [True, False], ids=["killed", "stopped"])
async def test_E9_without_postgresql_every_read_and_write_says_so_and_it_comes_back_by_itself(
    server: postgres.Server, tmp_path: Path, *, kill: bool
):
    settings = await on_postgres(server, tmp_path)
    place = settings.store.replace("postgres@", "")
    async with env_for(settings) as env, client_of(env) as client:
        with structlog.testing.capture_logs() as logs:
            await asyncio.to_thread(server.stop, kill=kill)
            for path in (*READS, "/readyz"):
                check_problem(await client.read(path), "store_unavailable", f"127.0.0.1:{server.port}")
            for path in PAGES:
                check_page(await client.read(path))
            check_problem(await client.submit(), "store_unavailable", f"127.0.0.1:{server.port}")
            assert (await client.read("/healthz")).status_code == 200
            await asyncio.to_thread(server.start)
            await until(client.is_served, PATIENCE_S, f"{place} is back, and nobody noticed")
            await until(lambda: said(logs, "is back"), PATIENCE_S, "nobody said that it is back")
        # One line at the beginning of an outage and one at its end, and no traceback of the driver's between.
        told = [one["event"] for one in logs if "the store's server" in one["event"]]
        assert told == ["the store's server is gone; looking for it", "the store's server is back"]


async def said(logs: Sequence[object], words: str) -> bool:
    return any(words in str(one) for one in logs)


async def test_E9_an_outage_of_postgresql_leaves_no_traceback_of_the_driver_in_the_log(
    server: postgres.Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async with env_for(await on_postgres(server, tmp_path)) as env, client_of(env) as client:
        caplog.clear()
        await asyncio.to_thread(server.stop, kill=True)
        for _ in range(3):
            check_problem(await client.read("/api/v1/skills"), "store_unavailable", "127.0.0.1")
            await asyncio.sleep(0.5)
        await asyncio.to_thread(server.start)
        await until(client.is_served, PATIENCE_S, "it is back, and nobody noticed")
        assert [one.getMessage() for one in caplog.records if one.exc_info] == []


async def test_E9_a_postgresql_that_only_reads_is_named_for_writers_and_none_of_it_for_readers(
    server: postgres.Server, tmp_path: Path
):
    settings = await on_postgres(server, tmp_path)
    async with env_for(settings) as env, client_of(env) as client:
        await set_read_only(settings.store, "on")
        await until(lambda: refuses(client), PATIENCE_S, "it still writes")
        check_problem(await client.submit(), "store_read_only", "127.0.0.1")
        check_problem(await client.read("/readyz"), "store_read_only", "127.0.0.1")
        await check_read(client)
        await set_read_only(settings.store, "off")
        await until(client.is_served, PATIENCE_S, "it can be written, and nobody noticed")


async def refuses(client: Client) -> bool:
    return (await client.submit()).status_code != 200


async def set_read_only(store: str, value: str) -> None:
    """For every session, also those that are there."""
    connection = await asyncpg.connect(store)
    try:
        await connection.execute("SET default_transaction_read_only = off")
        await connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
        await connection.execute("SELECT pg_reload_conf()")
    finally:
        await connection.close()


# NATS.


async def test_E9_without_nats_submissions_are_accepted_and_sent_when_it_is_back(tmp_path: Path):
    """The record is the truth: only what asks the queue itself says that it is away."""
    own = await asyncio.to_thread(nats.Server)
    store = f"sqlite:{tmp_path / 'vskill.db'}"
    settings = Settings(data_dir=str(tmp_path), store=store, broker=own.url, rate_limits="off")
    try:
        async with env_for(settings) as env, client_of(env) as client:
            with active_env(env):
                await asyncio.to_thread(own.stop, kill=True)
                await until(lambda: is_away(env), PATIENCE_S, "nobody noticed that it is gone")
                with pytest.raises(QueueUnavailable, match=f"127.0.0.1:{own.port}"):
                    await env.broker.send(b"{}", "k")
                assert (await client.submit()).status_code == 200
                assert (await client.read("/readyz")).status_code == 200
                await check_health_says_so(client, own.port)
                for path in ("/api/v1/skills", "/api/v1/submissions", "/api/v1/submissions/stats", "/"):
                    assert (await client.read(path)).status_code == 200, path
                await asyncio.to_thread(own.start)
                await until(lambda: is_there(env), PATIENCE_S, "it is back, and nobody noticed")
                before = (await env.broker.depth()).ready
                await until(
                    lambda: is_sent(env, before), PATIENCE_S, "what was accepted meanwhile has no message"
                )
                assert await client.is_served()
    finally:
        await asyncio.to_thread(own.remove)


async def check_health_says_so(client: Client, port: int) -> None:
    """What the records say is shown, and beside it that the queue is away; on the page and in the metrics too."""
    answer = await client.read("/api/v1/queue/health")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["deadLetters"] is None
    (alert,) = (one for one in body["alerts"] if one["code"] == "queue_away")
    assert f"127.0.0.1:{port}" not in alert["text"]
    await until(lambda: page_says_so(client), PATIENCE_S, "the queue's page says nothing")
    metrics = (await client.read("/metrics")).text
    assert 'vskill_alerts{alert="queue_away"} 1.0' in metrics
    assert "vskill_dead_letters NaN" in metrics
    assert 'vskill_submissions{state="RECEIVED"}' in metrics


async def page_says_so(client: Client) -> bool:
    """It looks at the queue's health once in two seconds, for everybody."""
    return "does not answer" in (await client.read("/queue")).text


async def is_sent(env: Env, before: int) -> bool:
    await run_with_worker_env(env, recover_stuck_submissions)
    return (await env.broker.depth()).ready > before


async def is_there(env: Env) -> bool:
    try:
        await env.broker.depth()
    except QueueUnavailable:
        return False
    return True


async def is_away(env: Env) -> bool:
    return not await is_there(env)
