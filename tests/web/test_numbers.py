"""C13: two numbers that look alike and are not, skills to install and submissions whose latest run was published, each
have one definition and say which they are."""

import re

import pytest

from tests.support.envs import run_until_quiet
from tests.support.shelf import open_shelf
from vskill_core.content import SkillFile

pytestmark = pytest.mark.anyio

REPO = "https://github.com/acme/tools"
NAMES = ("lint", "draw", "sort")


@pytest.fixture
async def shelf(tmp_path):
    async with open_shelf(tmp_path, rate_limits="off") as opened:
        for name in NAMES:
            await opened.publish(name)
        yield opened


def numbers(text: str) -> dict[str, str]:
    """What stands on the cards of a page, by label."""
    found = re.findall(r'stat__value"[^>]*>([^<]*)</span><span class="stat__label">([^<]*)<', text)
    return {label: value for value, label in found}


async def submit_something_worse(shelf) -> None:
    """A newer run of one of them ends otherwise; what is published of it stays."""
    shelf.sources.put(REPO, "skills/lint", (SkillFile("SKILL.md", "100644", b"not text: \xff"),))
    body = {"repoUrl": REPO, "skillPath": "skills/lint"}
    await shelf.client.post("/api/v1/submissions", json=body)
    await run_until_quiet(shelf.env)


async def test_C13_a_skill_stays_while_a_newer_run_of_it_fails(shelf):
    before = numbers((await shelf.client.get("/queue")).text)
    assert (before["All"], before["Published"], before["Needs review"]) == ("3", "3", "0")
    await submit_something_worse(shelf)
    queue = (await shelf.client.get("/queue")).text
    cards = numbers(queue)
    assert (cards["All"], cards["Published"]) == ("3", "2")
    assert "by its latest run" in queue
    home = (await shelf.client.get("/")).text
    assert "Search 3 skills" in home and "3 submissions in all" in home
    facets = (await shelf.client.get("/api/v1/skills/facets")).json()
    stats = (await shelf.client.get("/api/v1/submissions/stats")).json()
    assert (facets["total"], stats["total"], stats["byState"]["PUBLISHED"]) == (3, 3, 2)
