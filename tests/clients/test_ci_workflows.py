"""The workflows of the how-to about publishing from CI: read as their forges read them, and their commands run as they
stand but for the registry's address and its release, by somebody who has uv and no index. The registry is served, and
its issuers sign what the forges say of the jobs."""

import asyncio
import re
from fnmatch import fnmatch
from typing import Any

import pytest
import yaml

from tests.cli.role_processes import COMMAND
from tests.cli.test_publish import github, served
from tests.support.ci_jobs import CiWorld
from tests.support.envs import active_env, run_until_quiet
from tests.support.git_server import skill_md
from tests.support.owners import set_owners
from tests.support.uv import Passenger
from tools.blocks import blocks
from tools.files import ROOT
from vskill_core.identity import normalise
from vskill_platform.store.people.owners import Owner
from vskill_platform.web.clients.own_client import CLIENT

pytestmark = pytest.mark.anyio

_BLOCKS = list(blocks((ROOT / "docs/how-to/publish-from-ci.md").read_text("utf-8")))
GITHUB, GITLAB = (yaml.safe_load(one.text) for one in _BLOCKS if one.language == "yaml")
ADD, VERIFY = (one.text for one in _BLOCKS if one.language == "text")
SHOWN = "https://skills.example.org"
TAG = "v1.2.0"
OF_TAG = f"refs/tags/{TAG}"
_WHEEL = re.compile(r"vskill_client-[\w.]+-py3-none-any\.whl")


def as_served(line: str, address: str) -> str:
    return _WHEEL.sub(CLIENT.wheel, line.replace(SHOWN, address))


async def run(world: CiWorld, there: Passenger, line: str, **variables: Any) -> str:
    """A line, with a worker beside it."""
    asked = asyncio.create_task(asyncio.to_thread(there.run, line, **variables))
    while not asked.done():
        with active_env(world.env):
            await run_until_quiet(world.env)
        await asyncio.wait([asked], timeout=0.05)
    return await asked


async def test_the_workflow_for_github_publishes_a_tag_and_anybody_verifies_it(tmp_path, wheels):
    # YAML 1.1 reads the word `on` as true.
    (wanted,) = GITHUB[True]["push"]["tags"]
    (job,) = GITHUB["jobs"].values()
    assert fnmatch(TAG, wanted) and GITHUB["permissions"]["id-token"] == "write"
    assert [step["uses"] for step in job["steps"] if "uses" in step] == ["astral-sh/setup-uv@v6"]
    (line,) = (step["run"] for step in job["steps"] if "run" in step)
    async with served(tmp_path / "registry") as (world, address):
        there = Passenger(tmp_path, wheels)
        here = {"VSKILL_STORE": world.env.settings.store, "VSKILL_DATA_DIR": world.env.settings.data_dir}
        await run(world, there, ADD.replace("vskill-platform", " ".join(COMMAND), 1), **here)
        workflow = f"acme/skills/.github/workflows/publish.yml@{OF_TAG}"
        said = github(world, ref=OF_TAG, workflow_ref=workflow, job_workflow_ref=workflow)
        told = await run(world, there, as_served(line, address), **said)
        assert "2 skills: 2 PUBLISHED" in told
        path = "/api/v1/skills/acme/skills/lint/versions/1.0.0/attestation"
        for name, place in {"attestation.json": path, "keys.json": "/.well-known/vskill-keys.json"}.items():
            (there.folder / name).write_bytes((await world.client.get(place)).content)
        program = as_served(line, address).partition("vskill-client ")[0]
        told = await run(world, there, program + VERIFY)
        assert "publish.yml of github.com/acme/skills" in told


async def test_the_workflow_for_gitlab_publishes_a_tag(tmp_path, wheels):
    (job,) = GITLAB.values()
    assert job["rules"] == [{"if": "$CI_COMMIT_TAG"}]
    ((variable, asked),) = job["id_tokens"].items()
    (line,) = job["script"]
    async with served(tmp_path / "registry") as (world, address):
        repo = world.git.repo("group/sub/skills", {"lint/SKILL.md": skill_md("lint")})
        url = "https://gitlab.com/group/sub/skills"
        await set_owners(world.env, normalise(url), Owner("olga", 1, "file"))
        added = await world.add(repoUrl=url, issuer="gitlab", workflow=".gitlab-ci.yml", ref="refs/tags/v*")
        assert added.status_code == 201, added.text
        claims = world.claims_at_gitlab(
            repo,
            aud=asked["aud"].replace(SHOWN, address),
            ref_path=OF_TAG,
            ci_config_ref_uri=f"gitlab.com/group/sub/skills//.gitlab-ci.yml@{OF_TAG}",
        )
        said = {"GITLAB_CI": "true", variable: world.gitlab.sign(claims)}
        told = await run(world, Passenger(tmp_path, wheels), as_served(line, address), **said)
        assert re.search(r"Z +PUBLISHED ", told), told
