"""Machines that share PostgreSQL and S3 and nothing else: each process has a folder of its own, and the signing key comes
as a secret that is mounted on each. `make chaos` plays the same with NATS and with faults.

They are folders of one machine here, and one network: namespaces of their own need rights that a test has not."""

import asyncio
import shutil
from pathlib import Path

import httpx2
import pytest

from tests.engines.roles import ACCOUNT, Installation, Web
from tests.incidents.steps import check_history
from tests.processes.workers import WorkerProcess, until, until_record, workers_on
from tests.support import postgres, s3
from tests.support.compiled_rules import keep_compiled_rules
from tests.support.envs import active_env
from tests.support.patience import PATIENCE_S
from tests.support.people import make_account, token_of
from vskill_core.signing_keys import SigningKey
from vskill_platform.bootstrap import env_for
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.settings import Settings
from vskill_platform.store.people.accounts import Role

pytestmark = pytest.mark.anyio


class Hosts:
    """Folders that stand for machines, and what is mounted on each."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.folders: list[Path] = []

    async def new(self, key: SigningKey) -> dict[str, str]:
        """The variables of a process on another machine."""
        home = self._root / f"host-{len(self.folders)}"
        self.folders.append(home)
        await asyncio.to_thread(keep_compiled_rules, home)
        self.mount(home, key)
        return {"VSKILL_DATA_DIR": str(home), "VSKILL_SIGNING_KEY": str(home / "secret" / "signing.pem")}

    def mount(self, home: Path, key: SigningKey) -> None:
        place = home / "secret" / "signing.pem"
        place.parent.mkdir(exist_ok=True)
        fresh = place.with_name("..data_tmp")
        fresh.write_bytes(key.to_pem())
        fresh.chmod(0o440)
        fresh.replace(place)


async def submitted(roles: Installation, web: Web, name: str) -> str:
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as client:
        answer = await roles.send(client, web, name)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["attemptId"])


async def published(number: str) -> Submission:
    record = await until_record(number, lambda one: one.state.ends_run)
    assert record.published is not None, record.history[-1]
    check_history(record)
    return record


async def shown(web: Web, record: Submission) -> tuple[bytes, set[str], set[str]]:
    """The archive, the keys that signed its attestation, and those that the process serves."""
    skill = str(record.published).removeprefix("skill:")
    async with httpx2.AsyncClient(base_url=web.address, timeout=PATIENCE_S) as client:
        archive = await client.get(f"/api/v1/skills/{skill}/archive")
        envelope = await client.get(f"/api/v1/skills/{skill}/versions/1.0.0/attestation")
        keys = await client.get("/.well-known/vskill-keys.json")
    assert (archive.status_code, envelope.status_code, keys.status_code) == (200, 200, 200), envelope.text
    signers = {one["keyid"] for one in envelope.json()["signatures"]}
    return archive.content, signers, {one["kid"] for one in keys.json()["keys"]}


async def test_three_workers_and_two_web_processes_share_postgresql_and_s3_and_no_folder(tmp_path: Path):
    await asyncio.to_thread(s3.server)
    old, new, hosts = SigningKey.generate(), SigningKey.generate(), Hosts(tmp_path)
    here = await hosts.new(old)
    settings = Settings(
        data_dir=here["VSKILL_DATA_DIR"],
        store=await postgres.database_of(tmp_path),
        blobs=s3.place_of(tmp_path),
        signing_key=here["VSKILL_SIGNING_KEY"],
    )
    given = {"VSKILL_BLOBS": settings.blobs, "VSKILL_RATE_LIMITS": "off", **s3.server().variables}
    async with env_for(settings) as env, workers_on(settings, tmp_path, **given) as processes:
        await make_account(env, ACCOUNT, Role.AUTHOR)
        with active_env(env):
            roles = Installation(env, processes, await token_of(env, ACCOUNT, "submit"))
            webs = [await roles.web(**await hosts.new(old)) for _ in range(2)]
            await roles.role("schedule", **await hosts.new(old))
            workers = {}
            for _ in range(3):
                variables = await hosts.new(old)
                workers[await roles.role("worker", **variables)] = Path(variables["VSKILL_DATA_DIR"])
            first = [await submitted(roles, webs[number % 2], f"skill-{number}") for number in range(12)]
            lost = await holder_of_one(list(workers), first)
            await lost.kill()
            shutil.rmtree(workers[lost])
            records = [await published(number) for number in first]
            for record in records:
                one, other = [await shown(web, record) for web in webs]
                assert one == other and one[1] == {old.public.key_id}
            # The secret is replaced on each machine, one after another, and no process is started again.
            for home in hosts.folders:
                if home.exists():
                    hosts.mount(home, new)
            record = await published(await submitted(roles, webs[0], "rotated"))
            for web in webs:
                _, signers, served = await shown(web, record)
                assert signers == {new.public.key_id} and served >= {old.public.key_id, new.public.key_id}
        for home in hosts.folders:
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
