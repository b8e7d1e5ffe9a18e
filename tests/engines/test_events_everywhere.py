"""Four web processes on PostgreSQL and NATS: what is changed through one is told on the open streams of all (E6)."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import asyncpg
import httpx2
import pytest

from tests.engines.roles import Installation, Web, installation
from tests.support.patience import PATIENCE_S
from tests.support.streams import Events, listening

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

WEBS = 4


async def submitted(roles: Installation, web: Web, name: str) -> str:
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as client:
        answer = await roles.send(client, web, name)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["attemptId"])


async def hear(stream: Events, submission_id: str) -> None:
    """Until the stream has told of it."""
    while (await stream.next("submission")).data["id"] != submission_id:
        pass


async def check_told(roles: Installation, web: Web, streams: list[Events], name: str) -> None:
    number = await submitted(roles, web, name)
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*(hear(stream, number) for stream in streams))


async def test_E6_a_change_made_through_one_web_process_reaches_the_streams_of_all(tmp_path: Path):
    async with installation(tmp_path) as roles, AsyncExitStack() as stack:
        webs = await asyncio.gather(*(roles.web() for _ in range(WEBS)))
        address = "{}/api/v1/submissions/stream"
        streams = [await stack.enter_async_context(listening(address.format(web.address))) for web in webs]
        for stream in streams:
            await stream.until_connected()
        for number, web in enumerate(webs):
            await check_told(roles, web, streams, f"skill-{number}")

        # Every connection to the store breaks, and with each the notifications that were on their way.
        await break_connections(roles.env.settings.store)
        await asyncio.sleep(1.5)
        await check_told(roles, webs[0], streams, "after-a-break")


async def break_connections(store: str) -> None:
    connection = await asyncpg.connect(store)
    try:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )
    finally:
        await connection.close()
