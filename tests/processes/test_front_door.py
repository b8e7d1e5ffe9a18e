"""A whole registry that may open 1,024 files, with 1,100 slow clients before it."""

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path

import httpx2
import pytest

from tests.processes.workers import until, workers_on
from tests.support.envs import open_test_env, skill_files
from tests.support.patience import PATIENCE_S
from tests.support.people import make_account, token_of
from tests.support.ports import free_port
from tests.support.slow_clients import HALF_BODY, HALF_HEAD, NOTHING, slow_clients
from tests.support.system_reads import get_submission
from vskill_platform.domain.submissions.states import State
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.store.people.accounts import Role
from vskill_platform.web.clients.clawhub import API
from vskill_platform.web.door.front_door import descriptors_kept, raise_descriptor_limit

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

DESCRIPTORS, SLOW, SUBMITTED = 1_024, 1_100, 30
#: A shell that takes the right to more files away, from itself and from what it becomes.
LIMITED = f"ulimit -n {DESCRIPTORS} && exec {sys.executable} -m vskill_platform serve --port $PORT"


async def test_1100_slow_clients_at_1024_descriptors_stop_nobody_else(tmp_path: Path) -> None:
    """Reads go on, each submission is published, none is sent to a person, and each slow client is told why."""
    raise_descriptor_limit()
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    async with open_test_env("sqlite", tmp_path, clock=SystemClock()) as env:
        await make_account(env, "ada", Role.AUTHOR)
        headers = {"authorization": f"Bearer {await token_of(env, 'ada', 'submit')}"}
        async with workers_on(env.settings, tmp_path, VSKILL_RATE_LIMITS="off") as processes:
            server = await processes.start_shell(LIMITED, PORT=str(port))
            await server.until_up()
            async with (
                httpx2.AsyncClient(timeout=PATIENCE_S, headers=headers) as client,
                slow_clients(address, SLOW, [HALF_HEAD, HALF_BODY, NOTHING]) as slow,
            ):
                sent = [
                    asyncio.create_task(_submit(client, address, f"honest-{n}")) for n in range(SUBMITTED)
                ]
                reads: Counter[int] = Counter()
                while not all(task.done() for task in sent):
                    reads[(await client.get(f"{address}/api/v1/skills")).status_code] += 1
                open_files = len(list(Path(f"/proc/{server.pid}/fd").iterdir()))
                ids = [await task for task in sent]
                ended: Counter[State] = Counter()
                for number in ids:

                    async def look(number: str = number) -> bool:
                        reads[(await client.get(f"{address}/api/v1/skills")).status_code] += 1
                        return (await get_submission(number)).state.ends_run

                    await until(look, PATIENCE_S, f"{number} did not end")
                    ended[(await get_submission(number)).state] += 1
                await until(lambda: _are_told(slow), PATIENCE_S, "some slow clients are still connected")
                statuses = Counter(client.status for client in slow)
    print(
        f"{open_files} descriptors; reads {dict(reads)}; ended {dict(ended)}; slow clients {dict(statuses)}"
    )
    assert open_files < DESCRIPTORS - descriptors_kept(env.settings) // 2
    assert set(reads) == {200}
    assert ended == {State.PUBLISHED: SUBMITTED}
    assert set(statuses) == {408, 503}
    assert "Too many open files" not in server.log.read_text("utf-8")


async def _submit(client: httpx2.AsyncClient, address: str, name: str) -> str:
    files = [("files", (one.path, one.data)) for one in skill_files(name)]
    payload = {"payload": json.dumps({"slug": name})}
    answer = await client.post(f"{address}{API}/skills", data=payload, files=files)
    assert answer.status_code == 200, answer.text
    number: str = answer.json()["attemptId"]
    return number


async def _are_told(slow) -> bool:
    return all(client.closed.is_set() for client in slow)
