"""The load: skills sent over HTTP to web processes, as any client sends them, and every answer remembered.

An answer is the promise that is checked at the end. A request that got none, or was told to come again, may have been
accepted all the same (the commit stood, and the word of it was lost): it is remembered too, and what came of it must be as
whole as everything else.
"""

import asyncio
import itertools
import json
import time
from collections import Counter
from collections.abc import Sequence

import httpx2

from tests.support.envs import skill_files
from vskill_core.identity import submission_id, upload_identity
from vskill_platform.web.clients.clawhub import API
from vskill_platform.web.problems import CODE_HEADER

#: Between two submissions.
EVERY_S = 0.2
#: How long a client waits for its answer.
PATIENCE_S = 10.0
ACCOUNT = "ada"


class Load:
    """A client that submits for ever, to one web process after another."""

    def __init__(self, addresses: Sequence[str], token: str) -> None:
        self._addresses = addresses
        self._headers = {"authorization": f"Bearer {token}"}
        #: When each submission that was answered with success had been sent, and when the answer came.
        self.accepted: dict[str, tuple[float, float]] = {}
        #: Those without the promise: refused, or the connection broke, or nothing came in time.
        self.doubtful: set[str] = set()
        #: By the code of the error.
        self.refused: Counter[str] = Counter()

    @property
    def unheard(self) -> int:
        """Requests without an answer."""
        return len(self.doubtful) - self.refused.total()

    async def run(self) -> None:
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as client, asyncio.TaskGroup() as group:
            for number, address in enumerate(itertools.cycle(self._addresses), start=1):
                group.create_task(self.submit(client, address, f"skill-{number}"))
                await asyncio.sleep(EVERY_S)

    async def submit(self, client: httpx2.AsyncClient, address: str, name: str) -> None:
        """Send one; whatever comes of it is remembered."""
        number = submission_id(upload_identity(ACCOUNT, name))
        self.doubtful.add(number)
        sent = time.time()
        files = [("files", (one.path, one.data)) for one in skill_files(name, "slow")]
        payload = {"payload": json.dumps({"slug": name})}
        try:
            answer = await client.post(
                f"{address}{API}/skills", data=payload, files=files, headers=self._headers
            )
        except httpx2.HTTPError:
            return
        self._answered(answer, number, sent)

    async def submit_again(self, name: str) -> bool:
        """The author sends the same files once more; whether that was taken."""
        files = [("files", (one.path, one.data)) for one in skill_files(name, "slow")]
        payload = {"payload": json.dumps({"slug": name})}
        try:
            async with httpx2.AsyncClient(timeout=PATIENCE_S) as client:
                answer = await client.post(
                    f"{self._addresses[-1]}{API}/skills", data=payload, files=files, headers=self._headers
                )
        except httpx2.HTTPError:
            return False
        return answer.status_code == 200

    async def download(self, name: str) -> httpx2.Response | None:
        """What a reader gets of a skill's SKILL.md; None where no answer came."""
        asked = {"path": "SKILL.md"}
        try:
            async with httpx2.AsyncClient(timeout=PATIENCE_S) as client:
                return await client.get(f"{self._addresses[-1]}{API}/skills/{name}/file", params=asked)
        except httpx2.HTTPError:
            return None

    def _answered(self, answer: httpx2.Response, number: str, sent: float) -> None:
        if answer.status_code == 200:
            self.doubtful.discard(number)
            assert answer.json()["attemptId"] == number, answer.text
            self.accepted[number] = (sent, time.time())
            return
        # Anything else than a plain "not now, and why" is a defect.
        assert answer.status_code == 503, (answer.status_code, answer.text)
        assert int(answer.headers["retry-after"]) > 0
        self.refused[answer.headers[CODE_HEADER]] += 1
