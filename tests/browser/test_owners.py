"""What an owner does, in a real browser, by keyboard and visible labels: claim a repository by a file, withdraw a version
and bring it back, hand the repository over, delete the skill."""

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import DESK, PHONE, serious_barriers
from tests.support.git_server import git_server, skill_md
from tests.support.patience import PATIENCE_S, wait_until
from tools.browsing import command, environment_of, serving
from vskill_platform.actions.people.owners import PROOF_FILE

pytestmark = pytest.mark.browser

URL = "https://github.com/ann/tools"
SKILL = "/skills/ann/tools/tools"
#: Makes an account an owner without a claim.
ADD_OWNER = """
import sys
import msgspec
from vskill_platform.cli.process import run_in_env
from vskill_core.identity import normalise
from vskill_platform.store.people.owners import Owner, change_ownership
from vskill_platform.worker_context import require_env

async def add():
    repo, kv = normalise(sys.argv[1]), require_env("kv").kv
    owner = Owner(sys.argv[2], kv.now(), "file")
    add_owner = lambda known: msgspec.structs.replace(known, owners=(*known.owners, owner))
    await change_ownership(repo, add_owner, action="owner proved", by="system", reason="a test", details={})

run_in_env(add)
"""
#: A folder for pictures of each step, for whoever changes these pages.
PICTURES = os.environ.get("PICTURES", "")


@pytest.fixture(scope="module")
def git(tmp_path_factory):
    with git_server(tmp_path_factory.mktemp("git")) as served:
        yield served


@pytest.fixture(scope="module")
def registry(tmp_path_factory, chromium, git):
    with serving(tmp_path_factory.mktemp("owners"), examples=False, source_rewrites=git.rewrite()) as running:
        yield running


@pytest.fixture(scope="module")
def repository(git, registry):
    """Two versions of one skill, submitted by nobody in particular."""
    repo = git.repo("ann/tools", {"skills/tools/SKILL.md": skill_md("tools", version="1.0.0")})
    publish(registry, "1.0.0")
    repo.commit({"skills/tools/SKILL.md": skill_md("tools", "More.", version="1.1.0")})
    publish(registry, "1.1.0")
    return repo


def publish(registry, version: str) -> None:
    asked = Request(
        f"{registry.address}/api/v1/submissions",
        json.dumps({"repoUrl": URL, "skillPath": "skills/tools"}).encode(),
        {"content-type": "application/json"},
    )
    urlopen(asked, timeout=PATIENCE_S).close()

    def is_published() -> bool:
        listed = registry.json("/api/v1/skills?owner=ann")["skills"]
        return bool(listed) and listed[0]["currentVersion"] == version

    wait_until(is_published, f"version {version} was not published")


@pytest.fixture(scope="module")
def passwords(registry) -> dict[str, str]:
    return {name: make_author(registry, name) for name in ("ann", "bob", "cat")}


def make_author(registry, name: str) -> str:
    made = command(registry.data, "admin", "create", name, "--role", "author", "--generate", "--json")
    password: str = json.loads(made)["password"]
    return password


def press(page: Page, name: str) -> None:
    """A button or a fold, by its visible words and the keyboard, once no script moves the focus any more."""
    page.wait_for_load_state()
    target = page.get_by_role("button", name=name, exact=True).or_(
        page.locator("summary").filter(has_text=name)
    )
    target.first.focus()
    page.keyboard.press("Enter")


def picture(page: Page, name: str) -> None:
    if PICTURES:
        page.screenshot(path=str(Path(PICTURES) / f"{name}.png"), full_page=True)


def test_an_owner_claims_withdraws_brings_back_hands_over_and_deletes(person, repository):
    page = person("ann")
    claim(page, repository)
    withdraw_and_bring_back(page)
    hand_over(page)
    other = person("bob")
    expect(other.locator("#repositories")).to_contain_text("handed over by ann: I move on.")
    delete(other)


def claim(page: Page, repository) -> None:
    expect(page.locator("#repositories")).to_contain_text("You control no repository yet")
    picture(page, "1-empty")
    page.goto("/owners/ann")
    expect(page.get_by_role("link", name="Claim the repository")).to_be_visible()
    picture(page, "2-owner")
    page.goto(SKILL)
    expect(page.get_by_text("This skill is yours")).to_have_count(0)
    picture(page, "2-not-mine")
    page.get_by_role("link", name="Is this yours? Claim it").focus()
    page.keyboard.press("Enter")
    # The way leads to the form, with the address in it.
    expect(page.get_by_label("Address of the repository")).to_be_focused()
    expect(page.get_by_label("Address of the repository")).to_have_value(URL)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Prove that github.com/ann/tools is yours")).to_be_visible()
    token = page.locator(".secret .command__text").first.inner_text()
    picture(page, "3-claimed")
    press(page, "Check now")
    expect(page.get_by_role("alert")).to_contain_text(f"There is no file {PROOF_FILE}")
    picture(page, "4-missing")
    repository.commit(
        {"skills/tools/SKILL.md": skill_md("tools", "More.", version="1.1.0"), PROOF_FILE: token}
    )
    press(page, "Check now")
    expect(page.get_by_role("status").first).to_contain_text("is yours now")
    picture(page, "5-mine")


def withdraw_and_bring_back(page: Page) -> None:
    page.goto(SKILL)
    expect(page.get_by_role("heading", name="This skill is yours")).to_be_visible()
    picture(page, "6-skill")
    page.get_by_role("link", name="list of versions").focus()
    page.keyboard.press("Enter")
    press(page, "Withdraw 1.1.0")
    page.keyboard.press("Tab")
    page.keyboard.type("It forgets the last line.")
    picture(page, "7-yank")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text(
        "Version 1.1.0 is withdrawn. Version 1.0.0 is current."
    )
    expect(page.locator("tbody")).to_contain_text("It forgets the last line.")
    picture(page, "8-yanked")
    press(page, "Bring 1.1.0 back")
    page.keyboard.press("Tab")
    page.keyboard.type("It was the reader's mistake.")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("Version 1.1.0 can be installed again.")


def hand_over(page: Page) -> None:
    page.goto("/account")
    press(page, "Hand over")
    page.get_by_label("To which account").fill("bob")
    page.get_by_label("Reason").fill("I move on.")
    page.get_by_label("Yes, I give it up").press("Space")
    picture(page, "9-transfer")
    press(page, "Hand it over")
    expect(page.get_by_role("status").first).to_contain_text(f"{URL} now belongs to bob.")
    expect(page.locator("#repositories")).to_contain_text("You control no repository yet")


def delete(page: Page) -> None:
    page.goto(SKILL)
    press(page, "Delete the skill")
    picture(page, "10-delete")
    page.get_by_label("Reason", exact=True).fill("Nobody maintains it.")
    press(page, "Delete tools")
    # The second step: nothing happens without the box.
    box = page.get_by_label("Yes, nobody can install it any more")
    assert box.evaluate("field => field.validity.valueMissing")
    box.press("Space")
    press(page, "Delete tools")
    expect(page.get_by_role("status").first).to_contain_text("The skill is deleted.")
    expect(page.locator("main")).to_contain_text("Nobody maintains it.")
    picture(page, "11-deleted")


@pytest.fixture(scope="module")
def second_owner(registry, repository, passwords) -> str:
    """Somebody who controls the repository beside whoever else does."""
    subprocess.run(
        [sys.executable, "-c", ADD_OWNER, URL, "cat"], env=environment_of(registry.data), check=True
    )
    return "cat"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_no_serious_barrier_and_no_sideways_scrolling(person, axe, second_owner, theme, size):
    """With everything unfolded: a claim that was just made, one that waits, a repository, and the skill's pages."""
    page = person(second_owner, theme=theme, viewport=size)
    press(page, "Claim a repository")
    page.get_by_label("Address of the repository").fill(
        "https://gitlab.example.org/a-long-group/a-long-repository-name"
    )
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Prove that gitlab.example.org")).to_be_visible()
    look(page, axe, size, f"claim-{theme}-{size['width']}")
    for name, path in {"account": "/account", "skill": SKILL, "versions": f"{SKILL}/versions"}.items():
        page.goto(path)
        look(page, axe, size, f"{name}-{theme}-{size['width']}")


def look(page: Page, axe: str, size, name: str) -> None:
    for fold in page.locator("details.fold > summary").all():
        if not fold.evaluate("one => one.parentElement.open"):
            fold.click()
    picture(page, name)
    assert serious_barriers(page, axe) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
