"""A whole registry whose address space is limited, as by `ulimit -v`: what the machine lacks is charged to no skill."""

import json
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import msgspec
import pytest

from tests.chaos.disk import children_of
from tests.processes.workers import WorkerProcess, Workers, until_record, workers_on
from tests.support.envs import open_test_env, skill_files
from tests.support.git_server import git_server, skill_md
from tests.support.patience import PATIENCE_S
from tests.support.people import make_account, token_of
from tests.support.ports import free_port
from tests.support.role_processes import worker_of
from vskill_core.identity import normalise, submission_id, upload_identity
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.store.people.accounts import Role
from vskill_platform.web.clients.clawhub import API

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

#: Too little for any program: neither git nor a scanner starts.
NOTHING = 4 * 1024 * 1024
SERVE = f"exec {sys.executable} -m vskill_platform serve --port $PORT"
#: The skill came in, or is wanted again later.
FAIR = {200, 201, 503, None}


class Registry(msgspec.Struct, frozen=True):
    """A server that can be started again, and a client of it."""

    processes: Workers
    client: httpx2.AsyncClient

    async def start(self) -> WorkerProcess:
        server = await self.processes.start_shell(SERVE)
        await server.until_up()
        return server

    async def submit_both(self, name: str) -> dict[str, int | None]:
        """A skill of a repository, and an upload: what was answered, by the id of the submission."""
        place = {"repoUrl": f"https://github.com/ann/{name}", "skillPath": name}
        files = [("files", (one.path, one.data)) for one in skill_files(name)]
        payload = {"payload": json.dumps({"slug": name})}
        return {
            submission_id(normalise(place["repoUrl"], name)): await self._post(
                "/api/v1/submissions", json=place
            ),
            submission_id(upload_identity("ada", name)): await self._post(
                f"{API}/skills", data=payload, files=files
            ),
        }

    async def _post(self, path: str, **content) -> int | None:
        """None where the server ended, as by a refusal of memory."""
        try:
            return (await self.client.post(path, **content)).status_code
        except httpx2.TransportError:
            return None

    async def check_published(self, name: str) -> None:
        """With enough memory, both are published, and no attempt counts against them."""
        for number in await self.submit_both(name):
            record = await until_record(number, lambda one: one.state.ends_run)
            assert record.state is State.PUBLISHED, record.history
            assert record.attempts.failed == 0, record.history
            assert State.NEEDS_REVIEW not in {event.to for event in record.history}


@asynccontextmanager
async def open_registry(folder: Path) -> AsyncIterator[Registry]:
    with git_server(folder / "served") as served:
        for name in ("early", "late"):
            served.repo(f"ann/{name}", {f"{name}/SKILL.md": skill_md(name)})
        async with open_test_env("sqlite", folder, clock=SystemClock()) as env:
            await make_account(env, "ada", Role.AUTHOR)
            headers = {"authorization": f"Bearer {await token_of(env, 'ada', 'submit')}"}
            variables = {
                "PORT": str(free_port()),
                "VSKILL_RATE_LIMITS": "off",
                "VSKILL_SOURCE_REWRITES": served.rewrite(),
            }
            address = f"http://127.0.0.1:{variables['PORT']}"
            async with (
                workers_on(env.settings, folder, **variables) as processes,
                httpx2.AsyncClient(base_url=address, timeout=PATIENCE_S, headers=headers) as client,
            ):
                yield Registry(processes, client)


async def test_a_server_whose_git_and_scanners_get_no_memory_charges_no_skill(tmp_path: Path) -> None:
    """A repository is refused as a shortage, an upload waits for this machine; with memory both are published."""
    async with open_registry(tmp_path) as registry:
        server = await registry.start()
        # From here on server and worker have their threads; what they start anew inherits their limit.
        await registry.check_published("early")
        worker = worker_of(server.pid)
        assert worker is not None
        for pid in (server.pid, worker):
            resource.prlimit(pid, resource.RLIMIT_AS, (NOTHING, NOTHING))
        for pid in children_of(worker):
            os.kill(pid, signal.SIGKILL)
        answers = await registry.submit_both("late")
        assert set(answers.values()) <= FAIR
        for number in [number for number, status in answers.items() if status in {200, 201}]:
            record = await until_record(number, _was_tried(server, worker))
            assert record.state is State.RECEIVED or worker_of(server.pid) != worker, record.history
            assert record.attempts.failed == 0, record.history
        await server.kill()
        await registry.start()
        await registry.check_published("late")


def _was_tried(server: WorkerProcess, worker: int) -> Callable[[Submission], bool]:
    """Or nobody is left who could try: Python itself does not survive every refusal of memory."""
    return lambda one: (one.attempts.started > 0 and one.claim is None) or worker_of(server.pid) != worker
