"""Every process of an installation replaced, one after another, by SIGTERM and under load: nobody notices.

Requests go through a balancer as an operator's would: it asks each web process whether it is ready, several times a
second, and sends only to those that said so last.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from tests.engines.roles import Installation, Web, installation
from tests.incidents.steps import check_history
from tests.processes.workers import WorkerProcess, until
from tests.support.envs import skill_files
from tests.support.patience import PATIENCE_S
from tests.support.system_reads import get_submission
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions.states import State
from vskill_platform.queue.health import queue_health
from vskill_platform.submission_store import count_submissions
from vskill_platform.web.clients.clawhub import API

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

CHECK_EVERY_S = 0.2
#: 50 requests a second, where the machine can: no more than so many wait for their answer.
SEND_EVERY_S, MOST_WAITING = 0.02, 25
#: One request in so many submits a skill, the others read.
SUBMITS_EVERY = 5
READS = ("/", "/skills", "/api/v1/skills", "/api/v1/skills/search?q=skill")
#: Several checks of the balancer.
DRAIN_MS = "1500"


class Balancer:
    """Knows who is ready, and sends there."""

    def __init__(self, roles: Installation, webs: list[Web]) -> None:
        self.roles = roles
        self.webs = webs
        self.ready: list[Web] = list(webs)
        self.accepted: list[str] = []
        self.answered = 0
        #: Requests that a process which announced itself ready did not answer with success.
        self.troubles: list[str] = []
        #: Seen with a readiness of 503, as opposed to no answer at all.
        self.announced_end: set[int] = set()

    async def check_for_ever(self) -> None:
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as client:
            while True:
                self.ready = [web for web in list(self.webs) if await self._is_ready(client, web)]
                await asyncio.sleep(CHECK_EVERY_S)

    async def _is_ready(self, client: httpx2.AsyncClient, web: Web) -> bool:
        try:
            answer = await client.get(f"{web.address}/readyz")
        except httpx2.HTTPError:
            return False
        if answer.status_code == 503 and answer.json()["code"] == "stopping":
            self.announced_end.add(web.port)
        return answer.status_code == 200

    async def send_for_ever(self) -> None:
        waiting = asyncio.Semaphore(MOST_WAITING)
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as client, asyncio.TaskGroup() as group:
            for number in itertools.count():
                assert self.ready, "nobody is ready"
                web = self.ready[number % len(self.ready)]
                await waiting.acquire()
                sent = group.create_task(self._send(client, web, number))
                sent.add_done_callback(lambda _: waiting.release())
                await asyncio.sleep(SEND_EVERY_S)

    async def _send(self, client: httpx2.AsyncClient, web: Web, number: int) -> None:
        submits, read = number % SUBMITS_EVERY == 0, READS[number % len(READS)]
        try:
            if submits:
                answer = await self.roles.send(client, web, f"skill-{number}")
            else:
                answer = await client.get(f"{web.address}{read}")
        except httpx2.HTTPError as error:
            self.troubles.append(f"{number}: {error!r}")
            return
        self.answered += 1
        if answer.status_code != 200:
            self.troubles.append(f"{number}: {answer.text}")
        elif submits:
            self.accepted.append(answer.json()["attemptId"])


@asynccontextmanager
async def balanced(roles: Installation, webs: list[Web]) -> AsyncIterator[Balancer]:
    balancer = Balancer(roles, webs)
    tasks = [
        asyncio.create_task(balancer.check_for_ever()),
        asyncio.create_task(balancer.send_for_ever()),
    ]
    try:
        yield balancer
    finally:
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for one in outcomes:
        assert isinstance(one, asyncio.CancelledError), one


async def replace_web(balancer: Balancer, old: Web) -> None:
    assert await old.process.terminate() == 0, old.process.log.read_text("utf-8")
    balancer.webs.remove(old)
    balancer.webs.append(await balancer.roles.web())
    await until(lambda: _are_ready(balancer), PATIENCE_S, "the new web process is not used")


async def _are_ready(balancer: Balancer) -> bool:
    return len(balancer.ready) == len(balancer.webs)


async def replace(roles: Installation, old: WorkerProcess, role: str) -> None:
    assert await old.terminate() == 0, old.log.read_text("utf-8")
    await roles.role(role)


async def test_a_rolling_restart_of_every_role_loses_nothing_refuses_nobody_and_interrupts_nobody(
    tmp_path: Path,
):
    async with installation(tmp_path, VSKILL_DRAIN_MS=DRAIN_MS) as roles:
        webs = [await roles.web() for _ in range(2)]
        others = [(role, await roles.role(role)) for role in ("worker", "worker", "schedule", "schedule")]
        async with balanced(roles, list(webs)) as balancer:
            await asyncio.sleep(1)
            for web in webs:
                await replace_web(balancer, web)
            for role, process in others:
                await replace(roles, process, role)
            await asyncio.sleep(1)
        assert not balancer.troubles
        assert balancer.announced_end == {web.port for web in webs}
        assert len(balancer.accepted) > 50 and balancer.answered > 4 * len(balancer.accepted)

        async def ended() -> bool:
            counts = await count_submissions(audiences=EVERYTHING)
            return counts.active == 0 and counts.total >= len(balancer.accepted)

        await until(ended, PATIENCE_S, "something is still owed")
        for number in balancer.accepted:
            record = await get_submission(number)
            assert record.state is State.PUBLISHED, record.history[-1]
            assert (record.attempts.interrupted, record.attempts.failed) == (0, 0)
            check_history(record)
        assert not (await queue_health()).violations


async def test_a_request_that_is_under_way_is_answered_though_its_process_stops_accepting(tmp_path: Path):
    """Half of it was sent before SIGTERM, the rest after the process had closed its door to new connections."""
    async with installation(tmp_path, VSKILL_DRAIN_MS="300") as roles:
        web = await roles.web()
        head, body = request(roles, "slowly-sent")
        reader, writer = await asyncio.open_connection("127.0.0.1", web.port)
        writer.write(head + body[: len(body) // 2])
        await writer.drain()
        await asyncio.sleep(0.2)
        stopping = asyncio.create_task(web.process.terminate())
        await until(lambda: _refuses(web), PATIENCE_S, "it still accepts connections")
        writer.write(body[len(body) // 2 :])
        answer = await asyncio.wait_for(reader.read(), PATIENCE_S)
        writer.close()
        assert answer.startswith(b"HTTP/1.1 200 "), answer
        number = json.loads(answer.partition(b"\r\n\r\n")[2])["attemptId"]
        assert await stopping == 0
        assert (await get_submission(number)).state is State.RECEIVED


async def _refuses(web: Web) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", web.port)
    except OSError:
        return True
    writer.close()
    return False


def request(roles: Installation, name: str) -> tuple[bytes, bytes]:
    """A submission as bytes: the head, and a body of some length."""
    files = [("files", (one.path, one.data)) for one in skill_files(name, "word " * 10_000)]
    made = httpx2.Request(
        "POST",
        f"http://127.0.0.1{API}/skills",
        data={"payload": json.dumps({"slug": name})},
        files=files,
        headers=roles.headers,
    )
    body = made.read()
    lines = [f"{key}: {value}" for key, value in made.headers.items()]
    head = "\r\n".join([f"POST {API}/skills HTTP/1.1", *lines, "", ""])
    return head.encode(), body
