"""Machines that share PostgreSQL and S3 and nothing else: each process has a folder and a network namespace of its own,
which reaches these two servers and nobody else, and the signing key comes as a secret that is mounted on each. `make chaos`
plays the same with NATS and with faults."""

import asyncio
import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.engines.roles import ACCOUNT, Web
from tests.incidents.steps import check_history
from tests.processes.workers import WorkerProcess, Workers, until, until_record, workers_on
from tests.support import postgres, s3
from tests.support.compiled_rules import keep_compiled_rules
from tests.support.envs import active_env, skill_files
from tests.support.own_network import let_through
from tests.support.patience import PATIENCE_S
from tests.support.people import make_account, token_of
from vskill_core.signing_keys import SigningKey
from vskill_platform.bootstrap import env_for
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.settings import Settings
from vskill_platform.store.people.accounts import Role
from vskill_platform.web.clients.clawhub import API

pytestmark = pytest.mark.anyio


#: Of every web process: nobody but the machine itself is at its ports.
PORT = 8080


class Hosts:
    """Machines: a folder, a network and a mounted secret for one process each."""

    def __init__(self, root: Path, wires: Path, processes: Workers, servers: tuple[int, ...]) -> None:
        self._root = root
        self._wires = wires
        self._processes = processes
        self._servers = ",".join(map(str, servers))
        self.folders: dict[WorkerProcess, Path] = {}

    async def start(self, key: SigningKey, *command: str, enters: str = "-") -> WorkerProcess:
        """A role on another machine."""
        home = self._root / f"host-{len(self.folders)}"
        await asyncio.to_thread(keep_compiled_rules, home)
        mount(home, key)
        network = ("-m", "tests.support.own_network", str(self._wires), self._servers, enters)
        process = await self._processes.start(
            (*network, "-m", "vskill_platform", *command),
            VSKILL_DATA_DIR=str(home),
            VSKILL_SIGNING_KEY=str(home / "secret" / "signing.pem"),
        )
        self.folders[process] = home
        await process.until_up()
        return process

    async def web(self, key: SigningKey) -> httpx2.AsyncClient:
        """A client of a web process on another machine, once that is ready."""
        name = f"web-{len(self.folders)}"
        serve = ("serve", "--web-only", "--port", str(PORT))
        web = Web(await self.start(key, *serve, enters=f"{name}:{PORT}"), PORT)
        way = httpx2.AsyncHTTPTransport(uds=str(self._wires / name))
        client = httpx2.AsyncClient(transport=way, base_url=web.address, timeout=PATIENCE_S)
        await until(lambda: web.ready(client), PATIENCE_S, "a web process is not ready")
        return client


def mount(home: Path, key: SigningKey) -> None:
    place = home / "secret" / "signing.pem"
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = place.with_name("..data_tmp")
    fresh.write_bytes(key.to_pem())
    fresh.chmod(0o440)
    fresh.replace(place)


@pytest.fixture
def wires() -> Iterator[Path]:
    """Where networks are joined; the path of a socket must be short."""
    with tempfile.TemporaryDirectory(prefix="vskill-wires-") as folder:
        yield Path(folder)


async def submitted(client: httpx2.AsyncClient, headers: dict[str, str], name: str) -> str:
    files = [("files", (one.path, one.data)) for one in skill_files(name)]
    payload = {"payload": json.dumps({"slug": name})}
    answer = await client.post(f"{API}/skills", data=payload, files=files, headers=headers)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["attemptId"])


async def published(number: str) -> Submission:
    record = await until_record(number, lambda one: one.state.ends_run)
    assert record.published is not None, record.history[-1]
    check_history(record)
    return record


async def shown(client: httpx2.AsyncClient, record: Submission) -> tuple[bytes, set[str], set[str]]:
    """The archive, the keys that signed its attestation, and those that the process serves."""
    skill = str(record.published).removeprefix("skill:")
    archive = await client.get(f"/api/v1/skills/{skill}/archive")
    envelope = await client.get(f"/api/v1/skills/{skill}/versions/1.0.0/attestation")
    keys = await client.get("/.well-known/vskill-keys.json")
    page = await client.get(f"/skills/{skill}")
    assert {one.status_code for one in (archive, envelope, keys, page)} == {200}, envelope.text
    found = await client.get("/api/v1/skills/search", params={"q": record.skill_name})
    assert record.skill_name in found.text
    signers = {one["keyid"] for one in envelope.json()["signatures"]}
    return archive.content, signers, {one["kid"] for one in keys.json()["keys"]}


async def test_three_workers_and_two_web_processes_share_postgresql_and_s3_and_no_folder_or_network(
    tmp_path: Path, wires: Path
):
    old, new = SigningKey.generate(), SigningKey.generate()
    mount(tmp_path / "here", old)
    settings = Settings(
        data_dir=str(tmp_path / "here"),
        store=await postgres.database_of(tmp_path),
        blobs=await asyncio.to_thread(s3.place_of, tmp_path),
        signing_key=str(tmp_path / "here" / "secret" / "signing.pem"),
    )
    servers = urlsplit(settings.store).port or 0, s3.server().port
    given = {"VSKILL_BLOBS": settings.blobs, "VSKILL_RATE_LIMITS": "off", **s3.server().variables}
    async with (
        env_for(settings) as env,
        let_through(wires, servers),
        workers_on(settings, tmp_path, **given) as processes,
    ):
        await make_account(env, ACCOUNT, Role.AUTHOR)
        headers = {"authorization": f"Bearer {await token_of(env, ACCOUNT, 'submit')}"}
        hosts = Hosts(tmp_path, wires, processes, servers)
        with active_env(env):
            webs = [await hosts.web(old) for _ in range(2)]
            await hosts.start(old, "schedule")
            workers = [await hosts.start(old, "worker") for _ in range(3)]
            first = [await submitted(webs[number % 2], headers, f"skill-{number}") for number in range(12)]
            lost = await holder_of_one(workers, first)
            await lost.kill()
            shutil.rmtree(hosts.folders.pop(lost))
            records = [await published(number) for number in first]
            for record in records:
                one, other = [await shown(web, record) for web in webs]
                assert one == other and one[1] == {old.public.key_id}
            # The secret is replaced on each machine, one after another, and no process is started again.
            for home in (tmp_path / "here", *hosts.folders.values()):
                mount(home, new)
            record = await published(await submitted(webs[0], headers, "rotated"))
            for web in webs:
                _, signers, served = await shown(web, record)
                assert signers == {new.public.key_id} and served >= {old.public.key_id, new.public.key_id}
                await web.aclose()
        for home in hosts.folders.values():
            assert not (home / "blobs").exists() and not (home / "keys").exists()


async def holder_of_one(workers: list[WorkerProcess], numbers: list[str]) -> WorkerProcess:
    """Whoever holds a submission at the moment; any of them where all is done already."""
    held: list[WorkerProcess] = []

    async def look() -> bool:
        for number in numbers:
            record = await until_record(number, lambda _: True)
            names = [one for one in workers if record.claim and f"-{one.pid}-" in record.claim.worker]
            held.extend(names)
        return bool(held) or all(
            [(await until_record(one, lambda _: True)).state.ends_run for one in numbers]
        )

    await until(look, PATIENCE_S, "nobody works")
    return held[0] if held else workers[0]
