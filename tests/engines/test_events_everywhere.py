"""Four web processes on PostgreSQL and NATS: what is changed through one is told on the open streams of all (E6)."""

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path

import asyncpg
import httpx2
import pytest

from tests.engines.roles import Installation, Web, installation
from tests.support.streams import Events, listening

pytestmark = pytest.mark.anyio

WEBS = 4
WITHIN_S = 2.0
#: A broken connection is noticed at once and made again after a second.
AFTER_A_BREAK_S = 6.0


async def submitted(roles: Installation, web: Web, name: str) -> str:
    async with httpx2.AsyncClient(timeout=10) as client:
        answer = await roles.send(client, web, name)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["attemptId"])


async def heard(stream: Events, submission_id: str) -> float:
    """When the stream told of it."""
    while True:
        frame = await stream.next("submission")
        if frame.data["id"] == submission_id:
            return time.monotonic()


async def check_told(
    roles: Installation, web: Web, streams: list[Events], name: str, within_s: float
) -> None:
    number = await submitted(roles, web, name)
    answered = time.monotonic()
    async with asyncio.timeout(within_s + 10):
        times = await asyncio.gather(*(heard(stream, number) for stream in streams))
    assert max(times) - answered < within_s, [round(one - answered, 2) for one in times]


async def test_E6_a_change_made_through_one_web_process_reaches_the_streams_of_all(tmp_path: Path):
    async with installation(tmp_path) as roles, AsyncExitStack() as stack:
        webs = await asyncio.gather(*(roles.web() for _ in range(WEBS)))
        address = "{}/api/v1/submissions/stream"
        streams = [await stack.enter_async_context(listening(address.format(web.address))) for web in webs]
        for stream in streams:
            await stream.until_connected()
        for number, web in enumerate(webs):
            await check_told(roles, web, streams, f"skill-{number}", WITHIN_S)

        # Every connection to the store breaks, and with each the notifications that were on their way.
        await break_connections(roles.env.settings.store)
        await asyncio.sleep(1.5)
        await check_told(roles, webs[0], streams, "after-a-break", AFTER_A_BREAK_S)


async def break_connections(store: str) -> None:
    connection = await asyncpg.connect(store)
    try:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )
    finally:
        await connection.close()
