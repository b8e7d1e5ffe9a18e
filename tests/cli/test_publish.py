"""`publish --ci` as a CI job runs it, against a served registry, a git server and an issuer that hands out ID tokens; and
`verify --publisher`, which asks nobody."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from click.testing import CliRunner, Result

from tests.support.ci_jobs import URL, CiWorld, ci_world
from tests.support.envs import active_env, run_until_quiet
from tests.support.git_server import skill_md
from tests.support.streams import serving
from vskill_client.main import cli as client
from vskill_core.signing_keys import public_from_jwks
from vskill_platform.cli import cli as platform
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.sign_in.oidc import SKEW_S

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

NO_JOB = dict.fromkeys(
    ("GITHUB_ACTIONS", "GITLAB_CI", "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN")
)


@asynccontextmanager
async def served(folder) -> AsyncIterator[tuple[CiWorld, str]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    async with (
        ci_world(folder, "sqlite", public_url=address, clock=SystemClock()) as world,
        serving(world.env, port),
    ):
        yield world, address


async def run(world: CiWorld, command, words, **variables: str | None) -> Result:
    """A command, with a worker beside it."""
    here = CliRunner()
    env = {**NO_JOB, "XDG_CONFIG_HOME": world.env.settings.data_dir, **variables}
    asked = asyncio.create_task(asyncio.to_thread(here.invoke, command, words, env=env))
    while not asked.done():
        with active_env(world.env):
            await run_until_quiet(world.env)
        await asyncio.wait([asked], timeout=0.05)
    return await asked


def github(world: CiWorld, **lies: object) -> dict[str, str | None]:
    """What GitHub gives a job that may have an ID token."""
    world.github.id_token_for = lambda audience: world.token(aud=audience, **lies)
    return {
        "GITHUB_ACTIONS": "true",
        "ACTIONS_ID_TOKEN_REQUEST_URL": f"{world.github.address}/id-token?api-version=2",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "job",
    }


@pytest.mark.parametrize("command", [client, platform], ids=["vskill-client", "vskill-platform"])
async def test_a_job_publishes_and_anybody_verifies_who_did(tmp_path, command):
    async with served(tmp_path) as (world, address):
        assert (await world.add()).status_code == 201
        commit = world.repo.head()
        done = await run(world, command, ["--registry", address, "publish", "--ci"], **github(world))
        assert done.exit_code == 0, done.output
        assert f"takes {URL} at {commit}" in done.output and "2 skills: 2 PUBLISHED" in done.output
        again = await run(
            world,
            command,
            ["--registry", address, "publish", "--ci", "--path", "lint", "--json"],
            **github(world),
        )
        (result,) = json.loads(again.output)
        assert again.exit_code == 0 and result["outcome"] == "already verified"
        assert result["submission"]["publisher"]["commit"] == commit

        signed = await world.client.get("/api/v1/skills/acme/skills/lint/versions/1.0.0/attestation")
        (tmp_path / "lint.json").write_bytes(signed.content)
        keys = (await world.client.get("/.well-known/vskill-keys.json")).content
        assert public_from_jwks(keys)
        (tmp_path / "keys.json").write_bytes(keys)
    # Nobody is there to ask any more.
    offline = ["verify", str(tmp_path / "lint.json"), "--keys", str(tmp_path / "keys.json"), "--publisher"]
    for named in (
        "acme/skills",
        "acme/skills/publish.yml",
        "github.com/acme/skills/.github/workflows/publish.yml",
    ):
        fine = await asyncio.to_thread(CliRunner().invoke, command, [*offline, named])
        assert fine.exit_code == 0 and "publish.yml of github.com/acme/skills" in fine.output, fine.output
    for named in ("acme/other", "acme/skills/ci.yml", "gitlab.com/acme/skills"):
        refused = await asyncio.to_thread(CliRunner().invoke, command, [*offline, named])
        assert refused.exit_code == 1 and f"not by {named}" in refused.output, refused.output


async def test_what_is_not_published_is_an_error_and_a_rejected_skill_too(tmp_path):
    async with served(tmp_path) as (world, address):
        words = ["--registry", address, "publish", "--ci"]
        nobody = await run(world, client, words, **github(world))
        assert (
            nobody.exit_code == 1 and "has no publisher for https://github.com/acme/skills" in nobody.output
        )
        await world.add()
        late = await run(world, client, words, **github(world, exp=world.env.kv.now() // 1000 - SKEW_S - 1))
        assert late.exit_code == 1 and "it has expired" in late.output
        world.repo.commit({"lint/SKILL.md": skill_md("lint"), "bad/SKILL.md": b""})
        done = await run(world, client, words, **github(world))
        assert done.exit_code == 1 and "1 PUBLISHED" in done.output and "1 REJECTED" in done.output, (
            done.output
        )


async def test_gitlab_gives_the_token_in_a_variable(tmp_path):
    async with served(tmp_path) as (world, address):
        await world.add()
        words = ["--registry", address, "publish", "--ci", "--path", "lint"]
        given = {"GITLAB_CI": "true", "VSKILL_PLATFORM_ID_TOKEN": world.token(aud=address)}
        done = await run(world, client, words, **given)
        assert done.exit_code == 0, done.output


def test_a_job_without_an_id_token_is_told_what_to_add():
    words = ["--registry", "https://skills.example.org", "publish", "--ci"]
    for variables, fix in (
        ({"GITHUB_ACTIONS": "true"}, "permissions: {id-token: write}"),
        ({"GITLAB_CI": "true"}, "id_tokens: {VSKILL_PLATFORM_ID_TOKEN: {aud: https://skills.example.org}}"),
        ({}, "use 'submit' where no CI job runs"),
    ):
        done = CliRunner().invoke(
            client, words, env={**NO_JOB, "VSKILL_PLATFORM_ID_TOKEN": None, **variables}
        )
        assert done.exit_code == 1 and fix in " ".join(done.output.split()), done.output
    assert CliRunner().invoke(client, ["publish"]).exit_code == 2
