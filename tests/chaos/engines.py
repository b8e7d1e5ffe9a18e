"""The world of many machines: PostgreSQL and NATS, each behind a stretch of network, with web processes and workers on
them. Servers are killed, ways are cut, clocks go wrong, and PostgreSQL runs out of space."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import msgspec

from tests.chaos.crew import SKEW_S, Crew, crew_on
from tests.chaos.disk import children_of, limit_files
from tests.chaos.proxy import Proxy
from tests.chaos.world import FULL_S, Plan, World
from tests.processes.workers import workers_on
from tests.support import nats, postgres
from tests.support.envs import active_env
from vskill_platform.bootstrap import env_for
from vskill_platform.settings import Settings
from vskill_platform.worker_context import Env

POSTGRES_FULL = "disk full for PostgreSQL"
CLOCKS = f"clocks of workers {SKEW_S} s ahead and behind"
#: Rows of nobody's, so that the table of records is longer than a segment of the log: a limit of files then stops the
#: table and not the log, which would end the server. About 20 MB.
_BALLAST = """
INSERT INTO records (key, value, version) SELECT 'ballast:' || n, repeat('x', 900), 0 FROM generate_series(1, 20000) AS n
"""
_ROW = "INSERT INTO records (key, value, version) VALUES ($1, $2, 0)"


class Servers(msgspec.Struct, frozen=True):
    """Those that may be killed."""

    postgres: postgres.Server
    nats: nats.Server


class Engines(World):
    """PostgreSQL and NATS, and what becomes of them."""

    def __init__(self, env: Env, crew: Crew, plan: Plan, servers: Servers, ways: tuple[Proxy, Proxy]) -> None:
        super().__init__(env, crew, plan)
        self._servers = servers
        self._store = env.settings.store
        to_postgres, to_nats = ways
        self.faults |= {
            "PostgreSQL killed": self._kill_postgres,
            "NATS killed": self._kill_nats,
            POSTGRES_FULL: self._fill_postgres,
            CLOCKS: self._move_clocks,
        }
        self.add_network("PostgreSQL", to_postgres)
        self.add_network("NATS", to_nats)

    async def _kill_postgres(self) -> None:
        await asyncio.to_thread(self._servers.postgres.stop, kill=True)
        async with self.felt_as("store_unavailable"):
            await self.wait()
        await asyncio.to_thread(self._servers.postgres.start)

    async def _kill_nats(self) -> None:
        await asyncio.to_thread(self._servers.nats.stop, kill=True)
        await self.wait()
        await asyncio.to_thread(self._servers.nats.start)

    async def _move_clocks(self) -> None:
        self.crew.move_clocks()
        await self.wait()

    async def _fill_postgres(self) -> None:
        """Every connection, and every one that is made meanwhile, finds the table of records as long as it can be."""
        server = self._servers.postgres.pid
        size = await self._length_of_records()
        async with self.felt_as("store_full"):
            limit_files([server, *_connections(server)], size)
            for length in (900, 100):
                await self._fill_up(length)
            await self.wait(FULL_S)
        limit_files([server, *children_of(server)])

    async def _fill_up(self, length: int) -> None:
        """Use the room that is left in the table, with rows of nobody's."""
        connection = await asyncpg.connect(self._store)
        try:
            while True:
                key = f"ballast:{secrets.token_hex(8)}"
                await connection.execute(_ROW, key, "x" * length)
        except asyncpg.PostgresError as error:
            if "could not extend file" not in str(error):
                raise
        finally:
            await connection.close()

    async def _length_of_records(self) -> int:
        connection = await asyncpg.connect(self._store)
        try:
            return int(await connection.fetchval("SELECT pg_relation_size('records')"))
        finally:
            await connection.close()


def _connections(server: int) -> list[int]:
    return [pid for pid, name in children_of(server).items() if "127.0.0.1(" in name]


@asynccontextmanager
async def servers() -> AsyncIterator[Servers]:
    started = Servers(
        await asyncio.to_thread(lambda: postgres.Server(durable=True)), await asyncio.to_thread(nats.Server)
    )
    try:
        yield started
    finally:
        await asyncio.to_thread(started.postgres.remove)
        await asyncio.to_thread(started.nats.remove)


@asynccontextmanager
async def engines(folder: Path, plan: Plan) -> AsyncIterator[World]:
    """Everything up and running; whatever was started ends with it."""
    async with servers() as running:
        ways = (Proxy(running.postgres.port), Proxy(running.nats.port))
        for way in ways:
            await way.start()
        store = await postgres.new_database(running.postgres)
        settings = Settings(data_dir=str(folder), store=store, broker=running.nats.url)
        through = {
            "VSKILL_STORE": urlsplit(store)._replace(netloc=f"postgres@127.0.0.1:{ways[0].port}").geturl(),
            "VSKILL_BROKER": f"nats://127.0.0.1:{ways[1].port}",
            "VSKILL_RATE_LIMITS": "off",
            "TEST_SCAN_S": "0.05-0.4",
        }
        try:
            async with env_for(settings) as env, workers_on(settings, folder, **through) as processes:
                await _add_ballast(store)
                async with crew_on(processes, folder, plan.chance) as crew:
                    with active_env(env):
                        yield Engines(env, crew, plan, running, ways)
        finally:
            for way in ways:
                await way.stop()


async def _add_ballast(store: str) -> None:
    connection = await asyncpg.connect(store)
    try:
        await connection.execute(_BALLAST)
    finally:
        await connection.close()
