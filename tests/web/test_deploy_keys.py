"""Private repositories by a deploy key, over a real SSH server: who may use it, which host key is believed, what a broken
connection means, and that the private half is found nowhere."""

import base64
import gzip
import os
import sys
import tarfile
from pathlib import Path
from typing import Any

import asyncssh
import msgspec
import pytest
import structlog
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_ssh_private_key

from tests.support.damage import lose
from tests.support.envs import active_env, run_until_quiet
from tests.support.git_server import skill_md
from tests.support.people import signed_in
from tests.support.private_git import KEY, NEWER_KEY, WHY, private_world
from tests.support.receiver import receiver
from tests.support.ssh_server import ssh_git_server
from tests.support.system_reads import get_submission
from vskill_core.errors import ContentDamaged, InvalidInput, SourceUnavailable
from vskill_core.identity import normalise, submission_id
from vskill_platform.cli.operation.doctor import _check_sealing
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import Visibility, namespace_of
from vskill_platform.domain.people.source_credential import (
    KNOWN_HOST_KEYS,
    NamespaceCredentials,
    host_keys_of,
    read_host_keys,
)
from vskill_platform.domain.submissions.states import State
from vskill_platform.installation.backup import back_up
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.queue.jobs import JOBS
from vskill_platform.queue.schedule import run_job
from vskill_platform.records import decode
from vskill_platform.signing.sealing import SealingRing, unseal
from vskill_platform.sources.addresses import Hosts
from vskill_platform.sources.contract import Watchable
from vskill_platform.sources.credential import GitCredential
from vskill_platform.sources.ssh import SshServer
from vskill_platform.stages.repo_check import ask_for_check
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.people.source_credentials import sources_for
from vskill_platform.store.repo_health import Reach, get_health
from vskill_platform.store.stored_content import read_content
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio


@pytest.fixture
async def ssh(tmp_path):
    async with ssh_git_server(tmp_path / "git") as server:
        yield server


@pytest.fixture
async def world(tmp_path, ssh):
    async with private_world(tmp_path, ssh_port=ssh.port) as opened:
        yield opened


async def made_key(world, ssh, **fields):
    """A deploy key that the forge lets in."""
    answer = await world.add_key(hostKey=ssh.host_key, **fields)
    assert answer.status_code == 201, answer.text
    made = answer.json()["credentials"][-1]
    ssh.let_in.add(asyncssh.import_public_key(made["publicKey"]).get_fingerprint())
    return made


async def kept_key(world):
    """The deploy key's record, where it is kept, and the opened private half; within the world's environment."""
    key = keys.credentials(world.namespace)
    entry = await world.env.kv.get(key)
    assert entry is not None
    (one,) = decode(entry, NamespaceCredentials).credentials
    return one, key, unseal(await world.env.sealing.keys(), one.sealed, one.context(key))


async def settled(world, answer):
    """The submission's record when nothing is left to do."""
    assert answer.status_code == 201, answer.text
    with active_env(world.env):
        await run_until_quiet(world.env)
        return await get_submission(answer.json()["id"])


async def test_the_host_key_of_an_unknown_host_is_shown_to_be_confirmed(world, ssh):
    """Nobody's key is offered to it, and nothing is kept, before somebody has said that it is the right host."""
    asked = await world.add_key()
    refused = asked.json()
    assert (asked.status_code, refused["field"], refused["host_key"]) == (400, "hostKey", ssh.host_key), (
        refused
    )
    assert f"give {ssh.host_key} as the host key" in refused["fix"]
    assert ssh.connections == 1 and ssh.offered == ssh.commands == []
    shown = await world.client.get(
        f"/api/v1/namespaces/{world.namespace}/credentials", headers=world.people["olga"]
    )
    assert shown.json()["credentials"] == []
    made = await made_key(world, ssh)
    assert made["hostKeys"] == [ssh.host_key] and made["publicKey"].startswith("ssh-ed25519 ")
    assert (made["user"], made["port"]) == ("git", ssh.port)
    with active_env(world.env):
        (noted,) = [one for one in (await list_audit()).items if one.action == "credential added"]
        assert noted.details["host_keys"] == ssh.host_key


async def test_an_author_publishes_by_the_deploy_key_for_the_readers_of_the_namespace(world, ssh):
    """Found, fetched, checked daily, updated and repaired, all over SSH; the place has its usual identity."""
    await made_key(world, ssh)
    found = await world.post("submissions/discover", "mia", {"repoUrl": world.url})
    assert [one["path"] for one in found.json()["skills"]] == ["format", "lint"], found.text
    record = await settled(world, await world.submit("mia"))
    assert record.published is not None and record.with_credential, record.history
    assert record.repo_url == "https://127.0.0.1/acme/skills" and record.audience == f"ns:{world.namespace}"
    world.repo.commit({"lint/SKILL.md": skill_md("lint", "Newer.")})
    with active_env(world.env):
        await ask_for_check(normalise(world.url))
        await run_until_quiet(world.env)
        assert (await get_health(normalise(world.url))).status is Reach.REACHABLE
        newer = await get_submission(record.id)
        assert newer.commit == world.repo.head() != record.commit and newer.state is State.PUBLISHED
        assert newer.digest is not None
        await lose(world.env.blobs, newer.digest)
        with pytest.raises(ContentDamaged):
            await read_content(newer.digest)
        await run_until_quiet(world.env)
        assert await read_content(newer.digest)
    assert set(ssh.offered) == ssh.let_in and set(ssh.commands) == {"git-upload-pack 'acme/skills'"}
    assert world.git.requests == []


@pytest.mark.slow
async def test_a_large_repository_arrives_whole(tmp_path, ssh):
    """Some megabytes that nothing makes smaller, of which the skill is a small part; the server sends all of it."""
    options: dict[str, Any] = {"fetch_budget_ms": 100_000, "submission_budget_ms": 300_000}
    async with private_world(tmp_path, "sqlite", ssh_port=ssh.port, **options) as world:
        noise = {f"data/{number}.bin": os.urandom(1_000_000) for number in range(8)}
        world.repo.commit({"lint/SKILL.md": skill_md("lint"), **noise})
        await made_key(world, ssh)
        record = await settled(world, await world.submit("mia"))
        assert record.published is not None and record.commit == world.repo.head(), record.history
        packs = [one.stat().st_size for one in (tmp_path / "data").rglob("*.pack")]
        assert sum(packs) > 8_000_000, packs


async def test_both_spellings_of_an_address_are_one_place(world, ssh):
    await made_key(world, ssh)
    answers = [
        await world.submit("mia", repoUrl=url)
        for url in (world.url, "git@127.0.0.1:acme/skills.git", "https://127.0.0.1/acme/skills")
    ]
    assert len({answer.json()["id"] for answer in answers}) == 1, answers[0].text


async def test_another_host_key_is_refused_until_an_owner_has_confirmed_it(world, ssh):
    """Nothing is sent to whoever shows it; what waits goes on by itself afterwards."""
    made = await made_key(world, ssh)
    record = await settled(world, await world.submit("mia"))
    before = ssh.host_key
    await ssh.replace_host_key()
    ssh.offered.clear()
    ssh.commands.clear()
    answer = await world.submit("mia", skillPath="format")
    told = answer.json()["detail"]
    assert answer.status_code == 503 and f"shows the SSH host key {ssh.host_key} and not {before}" in told
    world.repo.commit({"lint/SKILL.md": skill_md("lint", "Newer.")})
    with active_env(world.env):
        await ask_for_check(normalise(world.url))
        await run_until_quiet(world.env)
        assert (await get_health(normalise(world.url))).status is Reach.UNAVAILABLE, "an outage, and no end"
    assert ssh.offered == ssh.commands == []
    path = f"namespaces/{world.namespace}/credentials/{made['id']}/host-key"
    assert (await world.post(path, "mia", {"hostKey": ssh.host_key, "reason": WHY})).status_code == 403
    changed = await world.post(path, "olga", {"hostKey": f"{before}, {ssh.host_key}", "reason": WHY})
    assert changed.json()["credentials"][0]["hostKeys"] == [before, ssh.host_key], changed.text
    with active_env(world.env):
        await ask_for_check(normalise(world.url))
        await run_until_quiet(world.env)
        assert (await get_submission(record.id)).commit == world.repo.head()


async def test_a_key_that_the_forge_does_not_let_in_is_told_to_the_author(world, ssh):
    await made_key(world, ssh)
    ssh.let_in.clear()
    answer = await world.submit("mia")
    assert answer.status_code == 422
    assert "does not accept the namespace's deploy key" in answer.json()["detail"]
    assert ssh.commands == []


@pytest.mark.parametrize(
    ("said", "status", "told"),
    [
        ("ERROR: Repository not found.\n", 422, "shows no repository at that address"),
        ("remote: The project you were looking for could not be found\n", 422, "shows no repository"),
        ("The server is down for maintenance.\n", 503, "The server is down for maintenance."),
        ("", 503, "ended without an answer"),
        ("fatal: not our ref\nerror: The requested URL returned error: 301\n", 503, "returned error: 301"),
    ],
)
async def test_what_the_server_says_decides_whether_it_is_asked_again(world, ssh, said, status, told):
    """And what it says is never taken for a word of git's own."""
    await made_key(world, ssh)
    ssh.refusal = said
    answer = await world.submit("mia")
    assert (answer.status_code, told in answer.json()["detail"]) == (status, True), answer.text


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["cut", "drip", "hang"])
async def test_a_cut_or_slow_connection_is_an_outage_and_leaves_no_secret_behind(tmp_path, ssh, fault):
    async with private_world(tmp_path, ssh_port=ssh.port, fetch_budget_ms=5_000) as world:
        await made_key(world, ssh)
        ssh.fault = fault
        answer = await world.submit("mia")
        assert answer.status_code == 503, answer.text
    assert list(tmp_path.rglob("secret-*")) == []


async def test_whoever_does_not_act_for_the_namespace_causes_no_connection(tmp_path, ssh):
    """Everybody may read the namespace: what is there and what is absent have the same answer after the same requests."""
    async with private_world(tmp_path, visibility=Visibility.PUBLIC, ssh_port=ssh.port) as world:
        await made_key(world, ssh)
        before = ssh.connections
        for who in ("rita", "sam", None):
            told = set()
            for name in ("skills", "absent"):
                url = f"{world.git.url}acme/{name}"
                answer = await world.submit(who, repoUrl=url)
                by_ssh = await world.submit(who, repoUrl=world.url.replace("skills", name))
                told.add(
                    (answer.status_code, answer.json()["detail"], by_ssh.status_code, by_ssh.json()["detail"])
                )
            assert len(told) == 1, told
        assert ssh.connections == before


async def test_a_followed_repository_is_taken_in_by_the_deploy_key(world, ssh):
    await made_key(world, ssh)
    sent = {"namespace": world.namespace, "repoUrl": world.url, "reason": WHY}
    assert (await world.post("follows", "olga", sent)).status_code == 201
    with active_env(world.env):
        await ask_for_check(normalise(world.url))
        await run_until_quiet(world.env)
        for folder in ("lint", "format"):
            record = await get_submission(submission_id(normalise(world.url, folder)))
            assert record.published is not None and record.with_credential, record.history


async def test_only_ports_that_the_operator_allows_are_asked(world, ssh):
    answer = await world.add_key(repoUrl="ssh://git@127.0.0.1:6379/acme/skills")
    refused = answer.json()
    assert (answer.status_code, refused["field"]) == (400, "port"), refused
    assert "add ssh://127.0.0.1:6379 to VSKILL_ALLOWED_HOSTS" in refused["fix"]
    bad = await world.add_key(repoUrl="ssh://-oProxyCommand=x@127.0.0.1/acme/skills")
    assert (bad.status_code, bad.json()["field"]) == (400, "repoUrl")
    assert ssh.connections == 0


@pytest.mark.parametrize(
    ("allowed", "private", "port", "refused"),
    [
        (("git.example.org",), (), 22, "is not a public address"),
        (("git.example.org",), (), 2222, "port 2222"),
        (("*",), (), 2222, "is not a public address"),
        ((), ("git.example.org",), 2222, "port 2222"),
        ((), ("git.example.org",), 22, ""),
        ((), ("ssh://git.example.org:2222",), 2222, ""),
        ((), ("ssh://git.example.org:2222",), 22, "not accepted here"),
        (("ssh://git.example.org:2222",), (), 2222, "is not a public address"),
    ],
)
async def test_private_addresses_need_the_operators_leave_for_ssh_too(allowed, private, port, refused):
    async def resolve(name, number):
        assert (name, number) == ("git.example.org", port)
        return ["10.0.0.7"]

    hosts = Hosts(allowed, private, resolve=resolve)
    place = normalise("https://git.example.org/acme/skills")
    server = SshServer(port, ())
    credential = GitCredential("1", namespace_of(place), "git.example.org/acme", "git", b"", server)
    if refused:
        with pytest.raises(InvalidInput, match=refused):
            await hosts.route(place, credential=credential)
    else:
        route = await hosts.route(place, credential=credential)
        assert route.pin == f"git.example.org:{port}:10.0.0.7" and route.protocol == "ssh"


async def test_a_record_that_was_changed_by_others_opens_no_key(world, ssh):
    """Whoever can write records cannot have another host believed."""
    await made_key(world, ssh)
    with active_env(world.env):
        one, key, _ = await kept_key(world)
        ring = await world.env.sealing.keys()
        changes = {"host_keys": (KNOWN_HOST_KEYS["github.com"],), "port": 1, "public_key": "x", "user": "x"}
        for name, value in changes.items():
            altered = msgspec.structs.replace(one, **{name: value})
            with pytest.raises(SourceUnavailable, match="was changed by somebody else"):
                unseal(ring, altered.sealed, altered.context(key))


async def test_a_new_sealing_key_takes_over_deploy_keys_too(world, ssh):
    await made_key(world, ssh)
    job = next(job for job in JOBS if job.name == "credentials")
    both = msgspec.structs.replace(world.env, sealing=SealingRing(f"{NEWER_KEY},{KEY}"))
    new = msgspec.structs.replace(world.env, sealing=SealingRing(NEWER_KEY))
    with active_env(new), pytest.raises(SourceUnavailable, match="which this process has not been given"):
        await sources_for(normalise(world.url), with_credential=True)
    with active_env(both):
        done = await run_job(job, forced=True)
        assert done is not None and not done.error
    with active_env(new):
        sources = await sources_for(normalise(world.url), with_credential=True)
        assert isinstance(sources, Watchable)
        assert (await sources.head(normalise(world.url))).commit == world.repo.head()
        found = await _check_sealing(new)
        assert found.ok and "1 credentials" in found.detail


async def test_without_the_extra_deploy_keys_wait_and_everybody_is_told(world, ssh, monkeypatch):
    """Another process may have it, so nothing ends; `doctor` says which one has not."""
    await made_key(world, ssh)
    monkeypatch.setitem(sys.modules, "asyncssh", None)
    for answer in (await world.add_key(hostKey=ssh.host_key), await world.submit("mia")):
        assert answer.status_code == 503, answer.text
        assert "the extra `ssh` is not installed" in answer.json()["detail"]
    with active_env(world.env):
        found = await _check_sealing(world.env)
    assert not found.ok and "1 deploy keys wait: Deploy keys cannot be used here" in found.detail


async def test_the_page_makes_a_key_and_shows_its_public_half(world, ssh):
    app = create_app(world.env)
    page = f"/namespaces/{world.namespace}/credentials"
    async with signed_in(app, world.env, "olga", Role.AUTHOR) as olga:
        refused = await olga.do(f"{page}/key", repo_url=world.url, host_key="", reason=WHY, back=page)
        assert ssh.host_key in refused
        told = await olga.do(f"{page}/key", repo_url=world.url, host_key=ssh.host_key, reason=WHY, back=page)
        assert told.startswith("Add this key to the repository, to read only: ssh-ed25519 ")
        shown = await olga.get(page)
        assert told.rpartition(": ")[2] in shown.text and ssh.host_key in shown.text
        with active_env(world.env):
            one, _, _ = await kept_key(world)
        changed = await olga.do(
            f"{page}/host-key",
            credential_id=one.id,
            host_key=KNOWN_HOST_KEYS["github.com"],
            reason=WHY,
            back=page,
        )
        assert changed == "The host key is changed."


def forms_of(secret: bytes) -> list[bytes]:
    """The private half in each form that it could have somewhere."""
    lines = secret.splitlines()[2:-1]
    key = load_ssh_private_key(secret, None)
    assert isinstance(key, Ed25519PrivateKey)
    raw = key.private_bytes_raw()
    return [*lines[:1], raw, base64.b64encode(raw).rstrip(b"=")[:-1], raw.hex().encode()]


@pytest.mark.slow
async def test_the_private_half_is_nowhere(tmp_path, ssh, capfd):
    """In no argument, environment, log, trace, record, answer, metric, error, backup or file after the call."""
    with structlog.testing.capture_logs() as logged, receiver() as collector:
        options = {"ssh_port": ssh.port, "otlp_endpoint": f"http://{collector.address}"}
        async with private_world(tmp_path, "sqlite", **options) as world:
            await made_key(world, ssh)
            with active_env(world.env):
                _, _, secret = await kept_key(world)
                forms = forms_of(secret)

            def holds(found: bytes) -> bool:
                return any(form in found for form in forms)

            seen: list[str] = []
            looked: list[Path] = []

            def look() -> None:
                for process in Path("/proc").glob("[0-9]*"):
                    for part in ("cmdline", "environ"):
                        try:
                            if holds((process / part).read_bytes()):
                                seen.append(f"{process}/{part}")
                        except OSError:
                            continue
                files = list((tmp_path / "data").rglob("secret-*/key"))
                assert [file.stat().st_mode & 0o777 for file in files] == [0o600] * len(files)
                looked.extend(file for file in files if holds(file.read_bytes()))

            ssh.on_command = look
            record = await settled(world, await world.submit("mia"))
            assert record.published is not None, record.history
            assert looked and seen == [], "the key was there, in its file alone"
            ssh.on_command = lambda: None
            ssh.let_in.clear()
            await world.submit("mia", skillPath="format")
            await world.submit("sam")
            await ssh.replace_host_key()
            await world.submit("mia", skillPath="format")
            await world.client.get("/metrics")
            with active_env(world.env):
                records = [
                    entry.key.encode() + entry.value
                    async for page in iterate_pages(world.env.kv, "")
                    for entry in page.items
                ]
            assert any(b"credentials:" in entry for entry in records)
            assert [entry[:80] for entry in (*records, *world.answers) if holds(entry)] == []
            backup = tmp_path / "backup.tar"
            await back_up(world.env.settings, backup, with_keys=True)
    traces = [gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body for _, body in collector.posts]
    assert b"submission" in b"".join(traces) and not any(map(holds, traces))
    with tarfile.open(backup) as members:
        texts = [file.read() for member in members if (file := members.extractfile(member)) is not None]
    assert any(b"credentials:" in text for text in texts) and not any(map(holds, texts))
    out, err = capfd.readouterr()
    assert not holds(f"{logged!r}{out}{err}".encode())
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert [str(file) for file in files if holds(file.read_bytes())] == []
    assert list(tmp_path.rglob("secret-*")) == []


@pytest.mark.parametrize(
    "text", ["MD5:00:11", "SHA256:short", f"SHA256:{'a' * 42}ü", " ".join(["SHA256:"] * 11)]
)
def test_what_is_no_fingerprint_is_refused(text):
    with pytest.raises(InvalidInput, match="no fingerprint") as raised:
        read_host_keys(text)
    assert raised.value.field == "host_key"


def test_the_large_forges_host_keys_are_known_at_their_usual_port():
    assert host_keys_of("github.com/acme/skills", 22) == (KNOWN_HOST_KEYS["github.com"],)
    assert host_keys_of("github.com/acme/skills", 443) == host_keys_of("git.example.org/acme", 22) == ()
    assert all(read_host_keys(one) == (one,) for one in KNOWN_HOST_KEYS.values())
