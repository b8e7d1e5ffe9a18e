"""The world of many machines: PostgreSQL, NATS and S3, each behind a stretch of network, with web processes and workers on
them, each in a folder of its own. Servers are killed, ways are cut, clocks go wrong, PostgreSQL runs out of space, and S3
fails in every way that it has."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import msgspec

from tests.chaos.content import ANSWERS, ContentWay
from tests.chaos.crew import SKEW_S, Crew, crew_on
from tests.chaos.disk import children_of, limit_files
from tests.chaos.proxy import Proxy
from tests.chaos.world import FULL_S, NO_ROOM, Plan, World
from tests.processes.workers import until, workers_on
from tests.support import nats, postgres, s3
from tests.support.envs import active_env
from tests.support.patience import PATIENCE_S
from tests.support.signing import as_value
from vskill_core.signing_keys import SigningKey
from vskill_platform.bootstrap import env_for
from vskill_platform.settings import Settings
from vskill_platform.worker_context import Env

POSTGRES_FULL = "disk full for PostgreSQL"
#: How long every piece of an answer of a slow S3 server takes.
SLOW_S = 0.3
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
    s3: s3.Server


class Engines(World):
    """PostgreSQL, NATS and S3, and what becomes of them."""

    def __init__(
        self, env: Env, crew: Crew, plan: Plan, servers: Servers, ways: tuple[Proxy, Proxy, ContentWay]
    ) -> None:
        super().__init__(env, crew, plan)
        self._servers = servers
        self._store = env.settings.store
        to_postgres, to_nats, self._to_s3 = ways
        self.faults |= {
            "PostgreSQL killed": self._kill_postgres,
            "NATS killed": self._kill_nats,
            "S3 killed": self._kill_s3,
            "S3 slow": self._slow_s3,
            "S3 cuts bodies": self._cut_bodies,
            **{f"S3 {how}": partial(self._answer_for_s3, how) for how in ANSWERS},
            POSTGRES_FULL: self._fill_postgres,
            CLOCKS: self._move_clocks,
        }
        self.add_network("PostgreSQL", to_postgres)
        self.add_network("NATS", to_nats)
        self.add_network("S3", self._to_s3)

    async def _fill_the_disk(self) -> None:
        """Of the machines that work: what they need to write is elsewhere, but for temporary files and logs."""
        limit_files(self.crew.pids, NO_ROOM)
        await self.wait(FULL_S)
        limit_files(self.crew.pids)

    async def _kill_s3(self) -> None:
        await asyncio.to_thread(self._servers.s3.stop, kill=True)
        async with self.felt_as("blob_unavailable"):
            await self.wait()
        await asyncio.to_thread(self._servers.s3.start)

    async def _answer_for_s3(self, how: str) -> None:
        self._to_s3.answer = ANSWERS[how]
        # What is connected already would go on.
        self._to_s3.cut()
        async with self.felt_as("blob_full" if how == "full" else "blob_unavailable"):
            await self._until_spoiled()
        self._to_s3.answer = None

    async def _slow_s3(self) -> None:
        self._to_s3.slow_s = SLOW_S
        await self._until_spoiled()
        self._to_s3.slow_s = 0.0

    async def _cut_bodies(self) -> None:
        self._to_s3.cuts = True
        await self._until_spoiled()
        self._to_s3.cuts = False

    async def _until_spoiled(self) -> None:
        """As long as other faults, and until it has been met."""
        before = self._to_s3.spoiled
        await self.wait()

        async def met() -> bool:
            return self._to_s3.spoiled > before

        await until(met, PATIENCE_S, "nobody has asked S3 for anything")

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
        await asyncio.to_thread(lambda: postgres.Server(durable=True)),
        await asyncio.to_thread(nats.Server),
        await asyncio.to_thread(s3.Server),
    )
    try:
        yield started
    finally:
        await asyncio.to_thread(started.postgres.remove)
        await asyncio.to_thread(started.nats.remove)
        await asyncio.to_thread(started.s3.remove)


@asynccontextmanager
async def engines(folder: Path, plan: Plan) -> AsyncIterator[World]:
    """Everything up and running; whatever was started ends with it."""
    async with servers() as running:
        ways = (Proxy(running.postgres.port), Proxy(running.nats.port), ContentWay(running.s3.port))
        for way in ways:
            await way.start()
        store = await postgres.new_database(running.postgres)
        settings = Settings(
            data_dir=str(folder), store=store, broker=running.nats.url, blobs=f"s3://{s3.BUCKET}/chaos"
        )
        through = {
            **s3.variables_for(ways[2].port),
            "VSKILL_BLOBS": settings.blobs,
            "VSKILL_SIGNING_KEY": as_value(SigningKey.generate()),
            "VSKILL_STORE": urlsplit(store)._replace(netloc=f"postgres@127.0.0.1:{ways[0].port}").geturl(),
            "VSKILL_BROKER": f"nats://127.0.0.1:{ways[1].port}",
            "VSKILL_RATE_LIMITS": "off",
            "TEST_SCAN_S": "0.05-0.4",
        }
        try:
            async with (
                _env_of(settings, running.s3) as env,
                workers_on(settings, folder, **through) as processes,
            ):
                await _add_ballast(store)
                async with crew_on(processes, folder, plan.chance, shares_folder=False) as crew:
                    with active_env(env):
                        yield Engines(env, crew, plan, running, ways)
        finally:
            for way in ways:
                await way.stop()


@asynccontextmanager
async def _env_of(settings: Settings, content: s3.Server) -> AsyncIterator[Env]:
    """An environment whose content is at this server; the library reads the variables when it connects."""
    before = {name: os.environ.get(name) for name in content.variables}
    os.environ.update(content.variables)
    try:
        async with env_for(settings) as env:
            yield env
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


async def _add_ballast(store: str) -> None:
    connection = await asyncpg.connect(store)
    try:
        await connection.execute(_BALLAST)
    finally:
        await connection.close()
