"""Two skills side by side: on the page, as JSON and by command, for those who may read both."""

import pytest

from tests.support.envs import active_env
from tests.support.html import Page
from tests.support.shelf import open_shelf
from vskill_core.content import SkillFile
from vskill_platform.store.skills.installs import count_installs

pytestmark = pytest.mark.anyio

SCRIPT = SkillFile("run.sh", "100644", b"#!/bin/sh\ncurl https://api.example.dev/x\n")
A, B = "acme/tools/quiet", "acme/tools/online"


@pytest.fixture
async def shelf(tmp_path):
    async with open_shelf(tmp_path) as opened:
        await opened.publish("quiet", "Tidies.")
        await opened.publish("online", "Fetches.", extra=(SCRIPT,))
        with active_env(opened.env):
            await count_installs([B])
        yield opened


async def test_what_differs_is_said_and_what_is_the_same_is_not_marked(shelf):
    found = (await shelf.client.get("/api/v1/compare", params={"a": A, "b": B})).json()
    facts = {one["fact"]: (one["a"], one["b"], one["differs"]) for one in found["facts"]}
    assert facts["Network"] == ("none found", "yes", True)
    assert facts["Scripts"] == ("none found", "yes", True)
    assert facts["Secrets"] == ("none found", "none found", False)
    assert facts["Installs"] == ("0", "1", True)
    assert facts["Owner"] == ("acme (unverified)", "acme (unverified)", False)
    assert facts["Size"][1].startswith("2 files")
    assert (found["a"]["name"], found["b"]["name"]) == (A, B)
    assert {one["value"] for one in found["capabilities"]["added"]} == {"api.example.dev", "curl"}
    assert found["capabilities"]["removed"] == []


async def test_a_skill_does_not_differ_from_itself(shelf):
    found = (await shelf.client.get("/api/v1/compare", params={"a": A, "b": "quiet"})).json()
    assert not any(one["differs"] for one in found["facts"])


async def test_the_page_marks_differences_and_leads_to_both(shelf):
    answer = await shelf.client.get("/compare", params={"a": A, "b": B}, headers={"accept": "text/html"})
    page = Page(answer.text)
    assert answer.status_code == 200 and {f"/skills/{A}", f"/skills/{B}"} <= set(page.links)
    assert page.has_class("compare__differs") and "Network (differs)" in page.text
    # Names do not say what each is for.
    assert "A small skill called quiet." in page.text and "A small skill called online." in page.text
    assert "Only online" in page.text and "api.example.dev" in page.text


async def test_the_page_asks_for_what_is_not_named_and_keeps_what_is(shelf):
    page = Page((await shelf.client.get("/compare", params={"a": A})).text)
    assert [one["value"] for one in page.all("input") if one.get("name") in ("a", "b")] == [A, ""]
    missing = await shelf.client.get("/compare", params={"a": A, "b": "nobody/has/this"})
    assert missing.status_code == 404 and "There is no skill nobody/has/this" in missing.text
    assert A in missing.text


@pytest.mark.parametrize("query", [{"a": A}, {"a": A, "b": ""}, {"a": A, "b": "x" * 401}])
async def test_both_names_are_needed_and_the_missing_one_is_named(shelf, query):
    answer = await shelf.client.get("/api/v1/compare", params=query)
    assert answer.status_code == 400 and answer.json()["field"] == "b"


async def test_a_skills_page_leads_to_the_comparison_with_related_ones(shelf):
    answer = await shelf.client.get(f"/skills/{A}", headers={"accept": "text/html"})
    assert f"/compare?a={A}&b={B}" in Page(answer.text).links


async def test_a_skills_page_leads_to_the_comparison_with_one_of_the_readers_choice(shelf):
    answer = await shelf.client.get(f"/skills/{A}", headers={"accept": "text/html"})
    assert f"/compare?a={A}" in Page(answer.text).links
    page = Page((await shelf.client.get("/compare", params={"a": A})).text)
    assert [one["name"] for one in page.all("input") if "autofocus" in one] == ["b"]
    chosen = Page((await shelf.client.get("/compare", params={"a": A, "b": "online"})).text)
    assert "Only online" in chosen.text and not any("autofocus" in one for one in chosen.all("input"))


async def test_the_palette_finds_the_comparison(shelf):
    assert "/compare" in Page((await shelf.client.get("/palette", params={"q": "compare"})).text).links
