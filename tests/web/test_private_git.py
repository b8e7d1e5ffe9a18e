"""Private repositories by a namespace's token: who may use it, where it is used, and that it is found nowhere else. The
repositories are served by `git http-backend` behind Basic authentication."""

import gzip
import tarfile
from pathlib import Path

import msgspec
import pytest
import structlog

from tests.support.damage import lose
from tests.support.envs import active_env, run_until_quiet
from tests.support.git_server import git_server, skill_md
from tests.support.namespaces import manage
from tests.support.people import signed_in
from tests.support.private_git import (
    CANARY,
    KEY,
    NEWER_KEY,
    WHY,
    basic,
    holding_canary,
    join,
    look_at_processes,
    private_world,
    watched,
)
from tests.support.receiver import receiver
from tests.support.system_reads import get_submission
from vskill_core.errors import (
    ContentDamaged,
    InvalidInput,
    InvalidSettings,
    SourceUnavailable,
    StoreUnavailable,
)
from vskill_core.identity import normalise, submission_id
from vskill_platform.cli.operation.doctor import _check_sealing
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import NamespaceRole, Visibility, namespace_of
from vskill_platform.domain.people.source_credential import NamespaceCredentials, read_address
from vskill_platform.domain.submissions.states import State
from vskill_platform.installation.backup import back_up
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.queue.jobs import JOBS
from vskill_platform.queue.schedule import run_job
from vskill_platform.records import decode
from vskill_platform.signing.sealing import SealingRing, unseal
from vskill_platform.stages.repo_check import ask_for_check
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.people.source_credentials import sources_for
from vskill_platform.store.repo_health import Reach, get_health
from vskill_platform.store.stored_content import read_content
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio


@pytest.fixture
async def world(tmp_path):
    async with private_world(tmp_path) as opened:
        yield opened


async def settled(world, answer):
    """The submission's record when nothing is left to do."""
    assert answer.status_code == 201, answer.text
    with active_env(world.env):
        await run_until_quiet(world.env)
        return await get_submission(answer.json()["id"])


async def test_an_author_publishes_from_a_private_repository_for_the_readers_of_the_namespace(world):
    """Found, fetched, checked daily, updated and repaired, all by the credential; nobody else reads any of it."""
    assert (await world.add_token()).status_code == 201
    found = await world.post("submissions/discover", "mia", {"repoUrl": world.url})
    record = await settled(world, await world.submit("mia"))
    assert record.published is not None and record.with_credential, record.history
    assert record.audience == f"ns:{world.namespace}"
    shown = f"/api/v1/skills/{record.published.removeprefix('skill:')}"
    assert (await world.client.get(shown, headers=world.people["rita"])).status_code == 200
    assert (await world.client.get(shown, headers=world.people["sam"])).status_code == 404
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
    assert {shown for _, shown in world.git.authorized} == {basic(CANARY)}
    assert [one["path"] for one in found.json()["skills"]] == ["format", "lint"]


async def test_whoever_does_not_act_for_the_namespace_learns_nothing(tmp_path):
    """Everybody may read the namespace, and only its authors may use its credential: the others get what a repository
    gives that does not exist, after the same requests to the host, also right after an author was served."""
    async with private_world(tmp_path, visibility=Visibility.PUBLIC) as world:
        await world.add_token()
        await settled(world, await world.submit("mia"))
        for who in ("rita", "sam", None):
            told = {}
            for name in ("skills", "absent"):
                world.git.requests.clear()
                world.git.authorized.clear()
                url = world.url.replace("skills", name)
                answer = await world.submit(who, repoUrl=url)
                listed = await world.post("submissions/discover", who, {"repoUrl": url})
                asked = [path.replace(name, "NAME") for path in world.git.requests]
                kept = {
                    key: text
                    for key, text in answer.json().items()
                    if key not in ("requestId", "request_id", "instance")
                }
                told[name] = (answer.status_code, kept, listed.status_code, asked)
                assert world.git.authorized == []
            assert told["skills"] == told["absent"], who
            assert told["skills"][0] == 422 or told["skills"][0] == 404, told


async def test_a_submission_of_somebody_else_never_gets_the_credential(world):
    """A reader, who is no author, submitted it while it was public; then it became private."""
    world.git.private.clear()
    record = await settled(world, await world.submit("rita"))
    assert record.published is not None
    world.git.private["/acme"] = basic(CANARY)
    await world.add_token()
    world.repo.commit({"lint/SKILL.md": skill_md("lint", "Secret.")})
    with active_env(world.env):
        await ask_for_check(normalise(world.url))
        await run_until_quiet(world.env)
        assert (await get_health(normalise(world.url))).status is Reach.GONE
        assert not (await get_submission(record.id)).with_credential
    assert world.git.authorized == []


async def add_token_to(world, name: str, path: str) -> None:
    sent = {"repoUrl": f"{world.git.url}{path}", "token": CANARY, "reason": WHY}
    added = await world.post(f"namespaces/{name}/credentials/token", "olga", sent)
    assert added.status_code == 201, added.text


async def test_the_credential_is_not_sent_after_a_redirect(world, tmp_path):
    """To another host, or to another owner of the same host; a repository that was renamed by its owner is followed."""
    await world.add_token(repoUrl=f"{world.git.url}acme")
    with git_server(tmp_path / "evil") as evil:
        evil.repo("acme/skills", {"lint/SKILL.md": skill_md("lint")})
        evil.private["/"] = basic("asks for it")
        world.git.private.clear()
        world.git.faults["/acme/skills"] = f"{evil.url}acme/skills"
        assert (await world.submit("mia")).status_code >= 400
        assert evil.authorized == []
    world.git.repo("other/skills", {"lint/SKILL.md": skill_md("lint")})
    world.git.private["/other"] = basic(CANARY)
    world.git.faults["/acme/skills"] = "/other/skills"
    assert (await world.submit("mia")).status_code >= 400
    assert [path for path, _ in world.git.authorized if path.startswith("/other")] == []
    world.git.repo("acme/renamed", {"lint/SKILL.md": skill_md("lint")})
    world.git.private.clear()
    world.git.private["/acme"] = basic(CANARY)
    world.git.faults["/acme/skills"] = "/acme/renamed"
    record = await settled(world, await world.submit("mia"))
    assert record.published is not None, record.history


async def test_the_narrowest_credential_is_used_and_one_of_another_namespace_is_refused(world):
    await world.add_token(repoUrl=f"{world.git.url}acme", token="broad")
    await world.add_token(
        repoUrl=f"{world.git.url}acme/ski", token="of a name that begins alike".replace(" ", "-")
    )
    await world.add_token()
    assert (await world.submit("mia")).status_code == 201
    assert {shown for _, shown in world.git.authorized} == {basic(CANARY)}
    foreign = await world.add_token(repoUrl=f"{world.git.url}other/skills")
    assert foreign.status_code == 400 and "is not in the namespace" in foreign.json()["detail"]


async def test_a_wrong_token_and_a_missing_repository_are_told_to_its_author(world):
    await world.add_token(token="wrong")
    answer = await world.submit("mia")
    assert "also with the namespace's credential" in answer.json()["detail"]


@pytest.mark.parametrize("fault", ["hang", "drip", "cut", 503])
async def test_a_slow_or_broken_host_leaves_no_secret_behind(tmp_path, fault):
    async with private_world(tmp_path, fetch_budget_ms=500) as world:
        await world.add_token()
        world.git.faults["/acme/skills"] = fault
        answer = await world.submit("mia")
        assert answer.status_code in (502, 503, 504), answer.text
    assert secrets_below(tmp_path) == []


async def test_without_a_visibility_or_a_sealing_key_no_credential_is_added(tmp_path):
    async with private_world(tmp_path / "open", visibility=None) as world:
        answer = await world.add_token()
        assert (answer.status_code, "set first who may read" in answer.json()["detail"]) == (400, True)
    async with private_world(tmp_path / "unsealed", sealing=None) as world:
        answer = await world.add_token()
        assert answer.status_code == 400
        assert "set VSKILL_SEALING_KEY to a file with a key" in answer.json()["detail"]
        listed = await world.client.get(
            f"/api/v1/namespaces/{world.namespace}/credentials", headers=world.people["olga"]
        )
        assert "VSKILL_SEALING_KEY" in listed.json()["problem"]


async def test_a_rotated_key_opens_until_the_job_has_sealed_again(world):
    await world.add_token()
    job = next(job for job in JOBS if job.name == "credentials")
    both = msgspec.structs.replace(world.env, sealing=SealingRing(f"{NEWER_KEY},{KEY}"))
    new = msgspec.structs.replace(world.env, sealing=SealingRing(NEWER_KEY))
    place = normalise(world.url)
    with active_env(both):
        assert (await _check_sealing(both)).warning
        await sources_for(place, with_credential=True)
    with active_env(new):
        with pytest.raises(SourceUnavailable, match="which this process has not been given"):
            await sources_for(place, with_credential=True)
        found = await _check_sealing(new)
        assert not found.ok and "acme/skills of" in found.detail
        failed = await run_job(job, forced=True)
        assert failed is not None and "cannot be opened, such as" in (failed.error or "")
    with active_env(both):
        done = await run_job(job, forced=True)
        assert done is not None and not done.error
    with active_env(new):
        await sources_for(place, with_credential=True)
        found = await _check_sealing(new)
        assert found.ok and not found.warning
    assert (await world.submit("mia")).status_code in (201, 503)


async def test_a_record_that_was_changed_by_others_opens_nothing(world):
    """Whoever can write records can neither send the secret elsewhere nor give it to another namespace."""
    await world.add_token()
    key = keys.credentials(world.namespace)
    with active_env(world.env):
        entry = await world.env.kv.get(key)
        known = decode(entry, NamespaceCredentials)
        (one,) = known.credentials
        for change in ({"address": "evil.example/acme"}, {"user": "x"}, {"id": "0"}):
            altered = msgspec.structs.replace(one, **change)
            with pytest.raises(SourceUnavailable, match="was changed by somebody else"):
                unseal(await world.env.sealing.keys(), altered.sealed, altered.context(key))


async def test_the_canary_is_nowhere(tmp_path, capfd):
    """In no argument, environment, log, trace, record, answer, metric, error, backup or file."""
    with structlog.testing.capture_logs() as logged, receiver() as collector:
        async with private_world(
            tmp_path / "w", "sqlite", otlp_endpoint=f"http://{collector.address}"
        ) as world:
            with watched(world.git) as seen:
                assert (await world.add_token()).status_code == 201
                record = await settled(world, await world.submit("mia"))
                assert record.published is not None, (record.history, record.attempts)
                await world.submit("sam")
                with active_env(world.env):
                    await ask_for_check(normalise(world.url))
                    await run_until_quiet(world.env)
                for fault in (503, 404, f"{world.git.url}other/skills"):
                    world.git.faults["/acme/skills"] = fault
                    assert (await world.submit("mia", skillPath="format")).status_code >= 400
                    with active_env(world.env):
                        await ask_for_check(normalise(world.url))
                        await run_until_quiet(world.env)
            assert world.git.authorized and seen == []
            bad = await world.add_token(token=f"{CANARY} with a space")
            assert bad.status_code == 400
            await world.add_token(repoUrl="no address", token=CANARY)
            await world.client.get(
                f"/api/v1/namespaces/{world.namespace}/credentials", headers=world.people["olga"]
            )
            assert "vskill_" in (await world.client.get("/metrics")).text
            app = create_app(world.env)
            async with signed_in(app, world.env, "olga", Role.AUTHOR) as olga:
                page = f"/namespaces/{world.namespace}/credentials"
                told = await olga.do(f"{page}/token", repo_url=world.url, token=CANARY, reason=WHY, back=page)
                assert told == "The token is added."
                refused = await olga.do(
                    f"{page}/token", repo_url="https://other.example/x/y", token=CANARY, reason=WHY, back=page
                )
                assert "is not in the namespace" in refused
                shown = await olga.get(page)
                world.answers.append(shown.content)
            with active_env(world.env):
                audit = await list_audit()
                added = [one for one in audit.items if one.action == "credential added"]
                assert added[0].details["address"].endswith("acme/skills")
                records = [
                    one.key.encode() + one.value
                    async for page_ in iterate_pages(world.env.kv, "")
                    for one in page_.items
                ]
            assert any(b"credentials:" in one for one in records)
            assert [one[:80] for one in (*records, *world.answers) if holding_canary(one)] == []
            backup = tmp_path / "backup.tar"
            await back_up(world.env.settings, backup, with_keys=True)
        assert look_at_processes() == []
    traces = [gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body for _, body in collector.posts]
    assert b"submission" in b"".join(traces) and not any(map(holding_canary, traces))
    with tarfile.open(backup) as members:
        texts = [file.read() for one in members if (file := members.extractfile(one)) is not None]
    assert any(b"credentials:" in one for one in texts) and not any(map(holding_canary, texts))
    out, err = capfd.readouterr()
    assert not holding_canary(f"{logged!r}{out}{err}".encode())
    assert secrets_below(tmp_path) == []


def secrets_below(folder: Path) -> list[str]:
    """Files that hold the canary, and folders of secrets."""
    files = [one for one in folder.rglob("*") if one.is_file() and holding_canary(one.read_bytes())]
    return [str(one) for one in (*files, *folder.rglob("secret-*"))]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("c2hvcnQ=", InvalidSettings),
        ("not base64!", InvalidSettings),
        ("/no/such/file", StoreUnavailable),
    ],
)
async def test_what_is_no_sealing_key_is_refused_and_not_shown(given, error):
    with pytest.raises(error, match="VSKILL_SEALING_KEY") as raised:
        await SealingRing(given).keys()
    assert "c2hvcnQ" not in str(raised.value)


async def test_a_replaced_key_file_is_read_without_a_restart(tmp_path):
    path = tmp_path / "sealing.key"
    path.write_text(f"{KEY}\n")
    path.chmod(0o640)
    ring = SealingRing(str(path))
    (old,) = await ring.keys()
    fresh = path.with_name("fresh")
    fresh.write_text(f"{NEWER_KEY}\n{KEY}\n")
    fresh.chmod(0o600)
    fresh.replace(path)
    assert [one.key_id for one in await ring.keys()][1] == old.key_id
    path.chmod(0o644)
    with pytest.raises(InvalidSettings, match="can be read by others"):
        await SealingRing(str(path)).keys()


@pytest.mark.parametrize(
    ("text", "namespace", "address"),
    [
        ("https://github.com/Acme", "acme", "github.com/acme"),
        ("https://github.com/Acme/Tools.git", "acme", "github.com/acme/tools"),
        ("git@github.com:acme/tools.git", "acme", "github.com/acme/tools"),
        ("https://gitlab.com/group", "gitlab.com~group", "gitlab.com/group"),
        ("https://gitlab.com/group/sub", "gitlab.com~group", "gitlab.com/group/sub"),
        ("https://gitlab.com/group/sub", "gitlab.com~group~sub", "gitlab.com/group/sub"),
        ("git@gitlab.com:group/sub/deep/", "gitlab.com~group~sub~deep", "gitlab.com/group/sub/deep"),
        ("https://gitlab.com/group/sub/repo", "gitlab.com~group~sub", "gitlab.com/group/sub/repo"),
    ],
)
def test_an_address_is_of_an_owner_or_a_repository(text, namespace, address):
    assert read_address(text, namespace) == address


@pytest.mark.parametrize(
    ("text", "namespace"),
    [
        ("https://gitlab.com/group/sub", "gitlab.com~group~other"),
        ("https://gitlab.com/group/sub/repo", "gitlab.com~group"),
        ("https://github.com/acme/tools", "other"),
        ("https://github.com/acme", "other"),
    ],
)
def test_an_address_of_another_namespace_is_refused(text, namespace):
    with pytest.raises(InvalidInput, match="is not in the namespace"):
        read_address(text, namespace)


async def test_a_groups_credential_is_found_for_its_own_repositories_and_not_for_a_subgroups(world):
    """Each group is a namespace of its own, also where a redirect leads from one to the other."""
    group, sub = (namespace_of(normalise(f"{world.git.url}{path}/x")) for path in ("group", "group/sub"))
    for name in ("group/tools", "group/sub/tools"):
        world.git.repo(name, {"lint/SKILL.md": skill_md("lint")})
    world.git.private["/group"] = basic(CANARY)
    await join(world.env, group, Visibility.TEAM)
    await add_token_to(world, group, "group")

    async def submitted(path):
        world.git.authorized.clear()
        return (await world.submit("mia", repoUrl=f"{world.git.url}{path}")).status_code

    assert await submitted("group/tools") == 201 and world.git.authorized
    for reached in ("group/sub/tools", "group/old"):
        world.git.faults["/group/old"] = "/group/sub/tools"
        assert await submitted(reached) >= 400
        assert [path for path, _ in world.git.authorized if path.startswith("/group/sub")] == []
    await join(world.env, sub, Visibility.TEAM)
    await add_token_to(world, sub, "group/sub")
    assert await submitted("group/sub/tools") == 201 and world.git.authorized


async def test_who_is_redirected_into_another_namespace_does_not_get_its_credential(world):
    """The repository there is public now; when it becomes private, nobody who may submit there has submitted it."""
    world.git.repo("other/skills", {"lint/SKILL.md": skill_md("lint")})
    other = namespace_of(normalise(f"{world.git.url}other/skills"))
    await join(world.env, other, Visibility.PUBLIC)
    await add_token_to(world, other, "other")
    await manage(world.env, other, Visibility.PUBLIC, "user:olga", role=NamespaceRole.OWNER)
    await world.add_token()
    world.git.private.clear()
    world.git.faults["/acme/skills"] = "/other/skills"
    record = await settled(world, await world.submit("mia"))
    assert record.identity.owner == "other" and not record.with_credential
    assert [path for path, _ in world.git.authorized if path.startswith("/other")] == []


async def test_a_followed_repository_is_taken_in_by_the_credential(world):
    """As the namespace, by nobody in particular; what it submits is fetched by the credential, too."""
    await world.add_token()
    sent = {"namespace": world.namespace, "repoUrl": world.url, "reason": WHY}
    followed = await world.post("follows", "olga", sent)
    assert followed.status_code == 201, followed.text
    with active_env(world.env):
        await ask_for_check(normalise(world.url))
        await run_until_quiet(world.env)
        for folder in ("lint", "format"):
            record = await get_submission(submission_id(normalise(world.url, folder)))
            assert record.published is not None and record.with_credential, record.history
    assert {shown for _, shown in world.git.authorized} == {basic(CANARY)}
