"""The whole site over a real environment, for tests of pages: skills are submitted through the one door, worked by the
real consumer, and looked at through the application without a network."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from tests.support.envs import open_test_env, run_until_quiet, skill_files
from tests.support.html import Page
from vskill_core.content import SkillFile
from vskill_platform.domain.submissions.states import State
from vskill_platform.intake.submit import submit_upload
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.settings import Settings
from vskill_platform.sources.examples import bundled_repositories, examples_folder, write_commit
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.web.app import create_app
from vskill_platform.worker_context import Env

BROWSER = {"accept": "text/html,application/xhtml+xml"}


class Site:
    """A client that asks as a browser does, and a way to publish."""

    def __init__(self, env: Env, client: httpx2.AsyncClient, transport: httpx2.ASGITransport) -> None:
        self.env = env
        self.client = client
        self._transport = transport

    def move_to(self, env: Env) -> None:
        """From now on the pages are those of another environment."""
        self._transport.app = create_app(env)

    async def get(self, path: str, **options: Any) -> httpx2.Response:
        return await self.client.get(path, headers={**BROWSER, **options.pop("headers", {})}, **options)

    async def page(self, path: str, status: int = 200) -> Page:
        response = await self.get(path)
        assert response.status_code == status, response.text
        assert response.headers["content-type"].startswith("text/html")
        return Page(response.text)

    async def post(
        self, path: str, data: dict[str, Any], seen: str | None = None, **options: Any
    ) -> httpx2.Response:
        """Send a form as the page that shows it would: its hidden fields come along."""
        shown = await self.get(seen or path)
        hidden = {
            one["name"]: one["value"] for one in Page(shown.text).all("input") if one.get("name") == "csrf"
        }
        return await self.client.post(path, data={**hidden, **data}, headers=BROWSER, **options)

    async def publish(
        self, name: str, *files: SkillFile, namespace: str = "tests", head: str = "", **options: Any
    ) -> str:
        """A skill that went all the way; its canonical name."""
        made = list(skill_files(name, options.pop("body", ""), options.pop("version", None)))
        if head:
            text = made[0].data.decode().replace("---\n# ", f"{head}\n---\n# ", 1)
            made[0] = SkillFile("SKILL.md", "100644", text.encode())
        submitted = await submit_upload((*made, *files), namespace=namespace, slug=name, **options)
        await run_until_quiet(self.env)
        assert submitted.submission is not None
        record = await self.env.kv.get(submitted.submission.key)
        assert record is not None
        state = msgspec.json.decode(record.value)["state"]
        assert state == State.PUBLISHED.value, msgspec.json.decode(record.value)["history"][-1]
        canonical = f"upload~{namespace}/skills/{name}"
        await get_skill(canonical)
        return canonical


@asynccontextmanager
async def open_site(engine: str, tmp_path: Path, **overrides: Any) -> AsyncIterator[Site]:
    """A site on one engine, with the environment active for the test too."""
    options = {"rate_limits": "off", "clock": SystemClock(), **overrides}
    async with open_test_env(engine, tmp_path, **options) as env:
        transport = httpx2.ASGITransport(create_app(env))
        async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as client:
            yield Site(env, client, transport)


@asynccontextmanager
async def open_example_site(folder: Path) -> AsyncIterator[Site]:
    """A site whose examples' repositories stand in for the public host."""
    root = examples_folder(Settings(data_dir=str(folder)))
    for repository in await asyncio.to_thread(bundled_repositories):
        await asyncio.to_thread(write_commit, repository, root, repository.commits)
    async with open_site("sqlite", folder) as opened:
        yield opened
