"""The product's own roles as real processes on PostgreSQL and NATS: web processes at ports of their own, workers and
schedules, started, asked to stop and watched by the tests beside this file."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import msgspec

from tests.processes.workers import WorkerProcess, Workers, until, workers_on
from tests.support import nats, postgres
from tests.support.envs import active_env, skill_files
from tests.support.patience import PATIENCE_S
from tests.support.people import make_account, token_of
from tests.support.ports import free_port
from vskill_platform.bootstrap import env_for
from vskill_platform.settings import Settings
from vskill_platform.store.people.accounts import Role
from vskill_platform.web.clients.clawhub import API
from vskill_platform.worker_context import Env

ACCOUNT = "ada"


class Web(msgspec.Struct, frozen=True):
    """A running web process."""

    process: WorkerProcess
    port: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def ready(self, client: httpx2.AsyncClient) -> bool:
        """Whether it announces that it can be sent to; no answer is a no."""
        try:
            return (await client.get(f"{self.address}/readyz")).status_code == 200
        except httpx2.HTTPError:
            return False


class Installation:
    """One store and one queue, and whoever runs on them."""

    def __init__(self, env: Env, processes: Workers, token: str) -> None:
        self.env = env
        self.processes = processes
        self.headers = {"authorization": f"Bearer {token}"}

    async def web(self, **variables: str) -> Web:
        """Started, and ready."""
        port = free_port()
        process = await self.role("serve", "--web-only", "--port", str(port), **variables)
        started = Web(process, port)
        async with httpx2.AsyncClient(timeout=5) as client:
            await until(lambda: started.ready(client), PATIENCE_S, "a web process is not ready")
        return started

    async def role(self, *command: str, **variables: str) -> WorkerProcess:
        process = await self.processes.start(("-m", "vskill_platform", *command), **variables)
        await process.until_up()
        return process

    async def send(self, client: httpx2.AsyncClient, web: Web, name: str) -> httpx2.Response:
        """Submit a skill over HTTP."""
        files = [("files", (one.path, one.data)) for one in skill_files(name)]
        payload = {"payload": json.dumps({"slug": name})}
        return await client.post(
            f"{web.address}{API}/skills", data=payload, files=files, headers=self.headers
        )


@asynccontextmanager
async def installation(tmp_path: Path, **variables: str) -> AsyncIterator[Installation]:
    """Settings as an operator writes them; the environment is active for the test too."""
    await asyncio.to_thread(nats.server)
    settings = Settings(
        data_dir=str(tmp_path),
        store=await postgres.database_of(tmp_path),
        broker=await nats.queue_of(tmp_path),
    )
    given = {"VSKILL_BROKER": settings.broker, "VSKILL_RATE_LIMITS": "off"}
    async with env_for(settings) as env, workers_on(settings, tmp_path, **given, **variables) as processes:
        await make_account(env, ACCOUNT, Role.AUTHOR)
        with active_env(env):
            yield Installation(env, processes, await token_of(env, ACCOUNT, "submit"))
