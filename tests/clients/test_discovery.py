"""Agent Skills discovery without a client: names, digests, scopes, the older form, and takedown."""

import asyncio
import hashlib
import io
import zipfile

import httpx2
import msgspec
import pytest

from tests.support.counting_kv import CountingKV
from tests.support.envs import active_env
from tests.support.records import put_copies
from tests.support.shelf import open_shelf
from vskill_core.content import SkillFile
from vskill_core.findings import Severity
from vskill_core.naming import is_plain_name
from vskill_platform.actions.skills.scopes import AT_ONCE
from vskill_platform.domain.blocklist import BlockEntry, parse_target
from vskill_platform.domain.skills.names import hashed_name
from vskill_platform.store.recall.blocklist import add_block
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.store.skills.collections import add_skills, create_collection
from vskill_platform.store.skills.installs import installs_by_skill
from vskill_platform.web.app import create_app
from vskill_platform.web.clients.wellknown import SCHEMA

pytestmark = pytest.mark.anyio

INDEX = "/.well-known/agent-skills/index.json"
OLDER = "/.well-known/skills/index.json"
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


async def test_a_short_name_stays_with_its_holder_and_is_never_inherited(shelf):
    """A client that follows a name must not get another owner's skill when the first one goes away."""
    await shelf.publish("lint")
    assert set(await names(shelf)) == {"lint"}
    await shelf.publish("lint", repo="https://github.com/other/tools")
    assert set(await names(shelf)) == {"lint", "lint-other"}
    assert set(await names(shelf, "/acme/tools")) == {"lint"}
    await block(shelf, "https://github.com/acme/tools/tree/main/skills/lint")
    assert set(await names(shelf)) == {"lint-other"}


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
        await shelf.publish_folder(folder, "plain")
    found = set(await names(shelf))
    assert found == {"my-skill-v2", hashed_name("acme/tools/日本")}


async def test_a_blocked_skill_is_in_no_index_and_its_files_are_closed(shelf):
    await shelf.publish("bad", extra=EXTRA)
    address = (await names(shelf))["bad"]["url"]
    older = "/.well-known/skills/bad/SKILL.md"
    assert (await shelf.client.get(older)).status_code == 200
    await block(shelf, "https://github.com/acme/tools/tree/main/skills/bad")
    for scope in ("", "/acme", "/acme/tools", "/acme/tools/bad"):
        for form in (INDEX, OLDER):
            emptied = await shelf.client.get(scope + form)
            assert (emptied.status_code, emptied.json()) == (200, {"skills": []})
    closed = await shelf.client.get(address)
    assert closed.status_code == 403 and "steals tokens" in closed.json()["error"]
    refused = await shelf.client.get(older)
    assert refused.status_code == 403 and "steals tokens" in refused.json()["error"]


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


async def test_no_list_is_cut(shelf):
    """Whatever the number: of the registry, an owner and a repository, in every form."""
    one = await shelf.publish("one")
    copies = 2 * AT_ONCE + 7
    await put_copies(shelf.env, one, copies)
    for scope in ("", "/acme", "/acme/tools"):
        found = await names(shelf, scope)
        assert len(found) == copies + 1
        older = (await shelf.client.get(scope + OLDER)).json()["skills"]
        assert [entry["name"] for entry in older] == list(found)
    for scope in ("", "/acme"):
        document = (await shelf.client.get(f"{scope}/marketplace.json")).json()
        assert [plugin["name"] for plugin in document["plugins"]] == list(found)
        assert "truncated" not in document["metadata"]
    last = list(found)[-1]
    assert (await shelf.client.get(f"/.well-known/skills/{last}/SKILL.md")).status_code == 200


async def test_a_burst_makes_an_index_once_and_a_change_makes_it_anew(shelf):
    await shelf.publish("one")
    kv = CountingKV(shelf.env.kv)
    app = create_app(msgspec.structs.replace(shelf.env, kv=kv))
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app), base_url="http://platform.test"
    ) as client:

        async def ask() -> set[str]:
            answers = await asyncio.gather(*(client.get(INDEX) for _ in range(10)))
            tags = {answer.headers["etag"] for answer in answers}
            again = await client.get(INDEX, headers={"if-none-match": tags.copy().pop()})
            assert again.status_code == 304 and not again.content
            return tags

        first = await ask()
        assert len(first) == 1 and kv.calls["select"] == 1
        await shelf.publish("two")
        assert len(await ask() | first) == 2 and kv.calls["select"] == 2


async def test_a_collection_is_a_scope(shelf):
    await shelf.publish("one", extra=EXTRA)
    await shelf.publish("two")
    with active_env(shelf.env):
        await create_collection("team", by="system", reason="a test")
        await add_skills("team", ["acme/tools/one"], by="system", reason="a test")
    found = await names(shelf, "/collections/team")
    served = await shelf.client.get(found["one"]["url"])
    assert found["one"]["digest"] == f"sha256:{hashlib.sha256(served.content).hexdigest()}"
    older = (await shelf.client.get(f"/collections/team{OLDER}")).json()["skills"]
    assert [entry["name"] for entry in older] == ["one"] == list(found)
    file = await shelf.client.get("/collections/team/.well-known/skills/one/scripts/run.sh")
    assert file.content == EXTRA[0].data
    with active_env(shelf.env):
        await add_skills("team", ["acme/tools/two"], by="system", reason="a test")
    assert list(await names(shelf, "/collections/team")) == ["one", "two"]
    for path in (f"/collections/none{INDEX}", "/collections/team/.well-known/skills/three/SKILL.md"):
        assert (await shelf.client.get(path)).status_code == 404


async def test_foreign_files_are_never_shown_as_pages(shelf):
    await shelf.publish("rich", extra=(SkillFile("page.html", "100644", b"<script>alert(1)</script>"),))
    answer = await shelf.client.get("/.well-known/skills/rich/page.html")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["x-content-type-options"] == "nosniff"
