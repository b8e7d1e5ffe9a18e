"""Agent Skills discovery without a client: names, digests, scopes, the older form, and takedown."""

import hashlib
import io
import zipfile

import pytest

from tests.support.envs import active_env, run_until_quiet, skill_files
from tests.support.records import put_copies
from tests.support.shelf import open_shelf
from vskill_platform.actions.scopes import MOST_LISTED
from vskill_platform.domain.blocklist import BlockEntry, parse_target
from vskill_platform.domain.content import SkillFile
from vskill_platform.domain.naming import is_plain_name
from vskill_platform.domain.scan import Severity
from vskill_platform.intake.submit import submit_repository
from vskill_platform.store.blocklist import add_block, reapply_blocklist
from vskill_platform.store.installs import installs_by_skill
from vskill_platform.web.clients.wellknown import SCHEMA

pytestmark = pytest.mark.anyio

INDEX = "/.well-known/agent-skills/index.json"
EXTRA = (
    SkillFile("scripts/run.sh", "100755", b"#!/bin/sh\n"),
    SkillFile("ü/日本.txt", "100644", "ü".encode()),
)


@pytest.fixture(params=["memory", "sqlite"])
async def shelf(request, tmp_path):
    async with open_shelf(tmp_path, request.param) as opened:
        yield opened


async def names(shelf, scope: str = "") -> dict[str, dict]:
    answer = await shelf.client.get(scope + INDEX)
    assert answer.status_code == 200, answer.text
    document = answer.json()
    assert document["$schema"] == SCHEMA
    listed = [one["name"] for one in document["skills"]]
    assert len(set(listed)) == len(listed) and all(map(is_plain_name, listed))
    return {one["name"]: one for one in document["skills"]}


async def test_digests_are_of_exactly_the_bytes_served(shelf):
    await shelf.publish("plain")
    await shelf.publish("rich", extra=EXTRA)
    found = await names(shelf)
    assert {name: one["type"] for name, one in found.items()} == {"plain": "skill-md", "rich": "archive"}
    for one in found.values():
        served = await shelf.client.get(one["url"])
        assert served.status_code == 200
        assert one["digest"] == f"sha256:{hashlib.sha256(served.content).hexdigest()}"
    archive = zipfile.ZipFile(io.BytesIO((await shelf.client.get(found["rich"]["url"])).content))
    assert archive.namelist() == ["SKILL.md", "scripts/run.sh", "ü/日本.txt"]


async def test_every_prefix_of_a_name_is_a_scope(shelf):
    await shelf.publish("one")
    await shelf.publish("two", repo="https://github.com/acme/more")
    await shelf.publish("three", repo="https://github.com/other/tools")
    assert set(await names(shelf)) == {"one", "two", "three"}
    assert set(await names(shelf, "/acme")) == {"one", "two"}
    assert set(await names(shelf, "/ACME/Tools")) == {"one"}
    assert set(await names(shelf, "/acme/more/two")) == {"two"}
    for missing in ("/nobody", "/acme/nothing", "/acme/more/one"):
        assert (await shelf.client.get(missing + INDEX)).status_code == 404


async def test_a_shared_slug_is_nobodys_alone_and_is_never_inherited(shelf):
    """A client that follows a name must not get another owner's skill when the first one goes away."""
    await shelf.publish("lint")
    assert set(await names(shelf)) == {"lint"}
    second = await shelf.publish("lint", repo="https://github.com/other/tools")
    shared = set(await names(shelf))
    assert len(shared) == 2 and "lint" not in shared
    assert set(await names(shelf, "/acme/tools")) == {"lint"}
    await block(shelf, "https://github.com/acme/tools/tree/main/skills/lint")
    left = await names(shelf)
    assert len(left) == 1 and set(left) < shared and second.canonical in next(iter(left.values()))["url"]


async def publish_folder(shelf, folder: str) -> None:
    """A skill's name is plain, the folder that it is in need not be."""
    repo = "https://github.com/acme/tools"
    shelf.sources.put(repo, f"skills/{folder}", skill_files("plain", folder))
    with active_env(shelf.env):
        await submit_repository(repo, f"skills/{folder}")
        await run_until_quiet(shelf.env)


async def block(shelf, target: str) -> None:
    with active_env(shelf.env):
        now = shelf.env.kv.now()
        entry = BlockEntry(
            parse_target("place", target), Severity.CRITICAL, "steals tokens", "system", now, now
        )
        await add_block(entry)
        await reapply_blocklist()


async def test_a_name_that_the_schema_does_not_allow_is_made_one(shelf):
    for folder in ("my_skill.v2", "日本"):
        await publish_folder(shelf, folder)
    found = set(await names(shelf))
    assert len(found) == 2 and any(name.startswith("my-skill-v2-") for name in found)
    assert any(name.startswith("skill-") for name in found)


async def test_a_blocked_skill_is_in_no_index_and_its_files_are_closed(shelf):
    await shelf.publish("bad", extra=EXTRA)
    address = (await names(shelf))["bad"]["url"]
    older = "/.well-known/skills/bad/SKILL.md"
    assert (await shelf.client.get(older)).status_code == 200
    await block(shelf, "https://github.com/acme/tools/tree/main/skills/bad")
    for scope in ("", "/acme", "/acme/tools/bad"):
        assert (await shelf.client.get(scope + INDEX)).status_code == 404
    closed = await shelf.client.get(address)
    assert closed.status_code == 403 and "steals tokens" in closed.json()["error"]
    assert (await shelf.client.get(older)).status_code == 404


async def test_the_older_form_names_every_file_and_serves_it(shelf):
    await shelf.publish("rich", extra=EXTRA)
    document = (await shelf.client.get("/acme/.well-known/skills/index.json")).json()
    assert "$schema" not in document
    (entry,) = document["skills"]
    assert entry["files"] == ["SKILL.md", "scripts/run.sh", "ü/日本.txt"]
    for path, data in (("scripts/run.sh", EXTRA[0].data), ("ü/日本.txt", EXTRA[1].data)):
        assert (await shelf.client.get(f"/acme/.well-known/skills/rich/{path}")).content == data
    assert (await shelf.client.get("/acme/.well-known/skills/rich/nothing")).status_code == 404
    assert (await shelf.client.get("/acme/.well-known/skills/poor/SKILL.md")).status_code == 404


async def test_installs_are_counted_by_address_and_day_and_no_download_is_refused_for_it(shelf):
    skill = await shelf.publish("plain")
    address = (await names(shelf, "/acme/tools/plain"))["plain"]["url"]
    assert address.startswith("/acme/tools/plain/")
    for _ in range(70):
        answer = await shelf.client.get(address)
        assert answer.status_code == 200 and "ratelimit" not in answer.headers
    await shelf.client.head(address)
    with active_env(shelf.env):
        assert await installs_by_skill() == {skill.canonical: 60}


async def test_an_index_is_bounded_and_says_so(shelf):
    await put_copies(shelf.env, await shelf.publish("one"), MOST_LISTED)
    for scope in ("", "/acme", "/acme/tools"):
        document = (await shelf.client.get(scope + INDEX)).json()
        assert len(document["skills"]) == MOST_LISTED and document["truncated"] is True


async def test_foreign_files_are_never_shown_as_pages(shelf):
    await shelf.publish("rich", extra=(SkillFile("page.html", "100644", b"<script>alert(1)</script>"),))
    answer = await shelf.client.get("/.well-known/skills/rich/page.html")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["x-content-type-options"] == "nosniff"
