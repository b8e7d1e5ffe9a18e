"""A bundle as a download: the page of collections offers it to admins, and it is the file that the command writes."""

import io

import httpx2
import pytest

from tests.support.envs import open_test_env, run_until_quiet, submit_skill
from tests.support.people import browser, signed_in
from vskill_platform.domain.skills.bundle import OpenBundle
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.skills.collections import add_skills, create_collection
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

NAME = "upload~tests/skills/tidy"
FILE = "/api/v1/bundle"


@pytest.fixture
async def site(tmp_path):
    """The application of a registry with a collection of one skill, and its environment."""
    async with open_test_env("memory", tmp_path) as env:
        await submit_skill("tidy", version="1.0.0")
        await run_until_quiet(env)
        await create_collection("house", title="", description="", by="system", reason="a test")
        await add_skills("house", (NAME,), by="system", reason="a test")
        yield create_app(env), env


async def test_an_admin_downloads_a_collection_as_a_bundle(site):
    app, env = site
    async with signed_in(app, env, "eve", Role.ADMIN) as eve:
        page = (await eve.get("/admin/collections")).text
        assert f'href="{FILE}?collection=house" download="house.vskill.tar"' in page
        sent = await eve.client.get(f"{FILE}?collection=house")
        again = await eve.client.get(f"{FILE}?collection=house")
    assert (sent.status_code, sent.headers["content-type"]) == (200, "application/x-tar")
    assert sent.content == again.content
    opened = OpenBundle(io.BytesIO(sent.content), await env.signing.public_keys())
    assert [one.entry.skill for one in opened.skills()] == [NAME]
    assert opened.index.scope == "collection house"


async def test_the_list_alone_is_a_download_too(site):
    app, env = site
    async with signed_in(app, env, "eve", Role.ADMIN) as eve:
        assert f'href="{FILE}" download' in (await eve.get("/admin/collections")).text
        sent = await eve.client.get(FILE)
    opened = OpenBundle(io.BytesIO(sent.content), await env.signing.public_keys())
    assert (list(opened.skills()), opened.index.scope) == ([], "revocations")


async def test_nobody_else_may(site):
    app, env = site

    async def status(client: httpx2.AsyncClient) -> int:
        return (await client.get(f"{FILE}?collection=house")).status_code

    async with signed_in(app, env, "ann", Role.AUTHOR) as ann, browser(app) as anybody:
        assert (await status(ann.client), await status(anybody)) == (403, 401)


async def test_what_is_wrong_is_said_before_the_download_begins(site):
    app, env = site
    async with signed_in(app, env, "eve", Role.ADMIN) as eve:
        missing = await eve.client.get(f"{FILE}?collection=nowhere")
        both = await eve.client.get(f"{FILE}?collection=house&skills={NAME}")
    assert (missing.status_code, both.status_code) == (404, 400)
    assert "name skills, or one collection" in both.text
