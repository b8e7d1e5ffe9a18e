"""Is it up, is it ready, what do the metrics say: answered by the web side alone."""

import asyncio

import httpx2
import msgspec
import pytest

from vskill_core.errors import StoreReadOnly, StoreUnavailable
from vskill_platform.web.app import create_app
from vskill_platform.worker_context import Env, Pace

pytestmark = pytest.mark.anyio


class BrokenKV:
    """A store that raises the given error, or hangs, at whatever it is asked."""

    engine = "broken"

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    async def check(self) -> None:
        await self._fail()

    async def check_files(self) -> None:
        await self._fail()

    async def get(self, key: str) -> None:
        await self._fail()

    async def count_by(self, prefix: str, field: str, **_asked: object) -> None:
        await self._fail()

    def now(self) -> int:
        return 0

    async def _fail(self) -> None:
        if self._error is None:
            await asyncio.sleep(3600)
        else:
            raise self._error


def client_over(env: Env, kv: object) -> httpx2.AsyncClient:
    app = create_app(msgspec.structs.replace(env, kv=kv))
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://platform.test")


async def test_healthz_says_that_the_process_is_up(client):
    answer = await client.get("/healthz")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")


async def test_healthz_does_not_ask_the_store(env):
    async with client_over(env, BrokenKV(StoreUnavailable())) as client:
        assert (await client.get("/healthz")).status_code == 200


async def test_readyz_says_that_the_store_answers(client):
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "store": "memory"})


async def test_readyz_is_503_with_the_reason_where_the_store_cannot_be_written(env):
    async with client_over(env, BrokenKV(StoreReadOnly("vskill.db: the file is read-only"))) as client:
        answer = await client.get("/readyz")
    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"
    assert int(answer.headers["retry-after"]) > 0
    assert (answer.json()["code"], answer.json()["error"]) == (
        "store_read_only",
        StoreReadOnly().message,
    )


async def test_E9_a_store_that_hangs_is_not_ready_and_the_answer_comes_in_time(env):
    impatient = msgspec.structs.replace(env, pace=Pace(ready_within_s=0.05))
    async with client_over(impatient, BrokenKV(None)) as client:
        answer = await client.get("/readyz")
    assert answer.status_code == 503
    assert "did not answer" in answer.json()["detail"]


async def test_metrics_count_submissions_at_the_scrape(client):
    answer = await client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'vskill_submissions{state="RECEIVED"} 0.0' in answer.text


async def test_C4_metrics_leave_out_the_counts_that_they_cannot_read(env):
    async with client_over(env, BrokenKV(StoreUnavailable())) as client:
        answer = await client.get("/metrics")
    assert answer.status_code == 200
    assert "vskill_submissions{" not in answer.text


async def test_requests_are_counted_by_route_template_and_status(client):
    await client.get("/api/v1/submissions/sub_1")
    await client.get("/api/v1/submissions/sub_2")
    await client.get("/wp-login.php")
    text = (await client.get("/metrics")).text
    assert 'vskill_http_requests_total{route="/api/v1/submissions/{submission_id}",status="404"} 2.0' in text
    assert 'vskill_http_requests_total{route="unmatched",status="404"} 1.0' in text
    assert "wp-login" not in text
    assert 'vskill_http_request_duration_seconds_count{route="unmatched"} 1.0' in text
