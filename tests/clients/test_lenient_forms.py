"""A skill that is lenient about its form reaches every client with a valid name and description, byte for byte."""

import io
import zipfile
from typing import Any

import pytest

from tests.clients.lenient_forms import LENIENT
from tests.support.envs import active_env, run_until_quiet
from tests.support.shelf import Shelf, open_shelf
from vskill_core.content import SkillFile
from vskill_core.naming import is_plain_name
from vskill_platform.intake.submit import submit_repository

pytestmark = pytest.mark.anyio

REPO = "https://github.com/acme/tools"


@pytest.fixture
async def shelf(tmp_path):
    async with open_shelf(tmp_path) as opened:
        for folder, text in LENIENT.items():
            opened.sources.put(REPO, f"skills/{folder}", (SkillFile("SKILL.md", "100644", text),))
            with active_env(opened.env):
                await submit_repository(REPO, f"skills/{folder}")
        with active_env(opened.env):
            await run_until_quiet(opened.env)
        yield opened


async def get(shelf: Shelf, path: str) -> Any:
    answer = await shelf.client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def is_described(text: object) -> bool:
    return isinstance(text, str) and 0 < len(text) <= 1024


async def test_every_index_names_them_validly_and_serves_them_byte_for_byte(shelf):
    listed = (await get(shelf, "/.well-known/agent-skills/index.json"))["skills"]
    assert len(listed) == len(LENIENT)
    assert all(is_plain_name(one["name"]) and is_described(one["description"]) for one in listed)
    served = {(await shelf.client.get(one["url"])).content for one in listed}
    assert served == set(LENIENT.values())
    older = (await get(shelf, "/.well-known/skills/index.json"))["skills"]
    assert {one["name"] for one in older} == {one["name"] for one in listed}
    assert all(is_described(one["description"]) for one in older)


async def test_the_marketplace_of_Claude_Code_has_a_plugin_for_each(shelf):
    plugins = (await get(shelf, "/marketplace.json"))["plugins"]
    assert len(plugins) == len(LENIENT)
    assert all(is_plain_name(one["name"]) and is_described(one["description"]) for one in plugins)


async def test_ClawHub_lists_them_and_serves_archives_with_the_same_bytes(shelf):
    items = (await get(shelf, "/clawhub/api/v1/skills?limit=50"))["items"]
    assert len(items) == len(LENIENT) and all(
        one["displayName"] and is_described(one["summary"]) for one in items
    )
    found = set()
    for one in items:
        answer = await shelf.client.get("/clawhub/api/v1/download", params={"slug": one["slug"]})
        found.add(zipfile.ZipFile(io.BytesIO(answer.content)).read("SKILL.md"))
    assert found == set(LENIENT.values())


async def test_the_notes_are_on_the_pages_and_in_the_answers(shelf):
    skills = (await get(shelf, "/api/v1/skills?limit=50"))["skills"]
    notes = {}
    for one in skills:
        report = await get(shelf, f"/api/v1/skills/{one['name']}/security")
        assert report["overallVerdict"] == "PASS"
        slug = one["name"].rpartition("/")[2]
        notes[slug] = [note["code"] for note in report["notes"]]
        page = (await shelf.client.get(f"/skills/{one['name']}/security")).text
        assert all(code in page for code in notes[slug])
        assert ("Notes on form" in page) == bool(notes[slug])
        for note in report["notes"]:
            assert note["field"] and note["line"] > 0 and note["sentence"] and note["fix"]
    assert notes == {
        "spaced_name": ["name-invalid"],
        "long-text": ["description-long"],
        "windows": [],
        "bare-colon": ["front-matter-not-yaml"],
        "tabs": ["front-matter-not-yaml"],
        "unnamed": ["name-missing"],
        "undescribed": ["description-missing"],
        "open-end": ["front-matter-open"],
        "no-front-matter": ["front-matter-missing"],
    }


async def test_the_author_sees_them_at_the_submission(shelf):
    submissions = (await get(shelf, "/api/v1/submissions?limit=50"))["submissions"]
    (record,) = [one for one in submissions if one["skillName"] == "no-front-matter"]
    assert record["state"] == "PUBLISHED"
    (note,) = (await get(shelf, f"/api/v1/submissions/{record['id']}/findings"))["notes"]
    assert (note["code"], note["field"], note["line"]) == ("front-matter-missing", "front matter", 1)
    page = (await shelf.client.get(f"/submissions/{record['id']}")).text
    assert "Notes on form" in page and "SKILL.md has no front matter" in page
