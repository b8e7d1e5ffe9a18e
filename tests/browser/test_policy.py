"""The policy by keyboard alone, on a phone and in the dark: set-up chooses `guarded`, a stranger's skill waits and says
why, a reviewer lets it through, and the dry run of `strict` names it."""

import os
import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import DESK, PHONE, serious_barriers, sign_in
from tests.browser.test_owners import make_author
from tests.browser.test_queue import skill_folder
from tests.support.patience import wait_until
from tools.browsing import serving

pytestmark = pytest.mark.browser

PASSWORD = "seven green boats at noon"
#: Where to put pictures of the journey, for people who look at them.
PICTURES = os.environ.get("POLICY_PICTURES")


@pytest.fixture
def registry(tmp_path_factory, chromium):
    with serving(tmp_path_factory.mktemp("policy"), examples=False) as running:
        yield running


def tab_to(page: Page, target: Locator) -> None:
    """Move the focus by the Tab key until it is there."""
    for _ in range(150):
        if target.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{target} cannot be reached by Tab")


def press(page: Page, name: str) -> None:
    tab_to(page, page.get_by_role("button", name=name, exact=True))
    page.keyboard.press("Enter")


def follow(page: Page, link: Locator, to: str) -> None:
    tab_to(page, link)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(to))
    page.wait_for_load_state()


def go_to_area(page: Page, name: str, to: str) -> None:
    """By the list of areas, which a phone folds."""
    areas = page.get_by_role("navigation", name="Admin")
    fold = areas.locator("summary")
    if fold.is_visible():
        tab_to(page, fold)
        page.keyboard.press("Enter")
    follow(page, areas.get_by_role("link", name=name, exact=True), to)


def look_at(page: Page, axe: str, name: str) -> None:
    """No barrier, nothing wider than the window, and a picture for whoever wants one."""
    assert serious_barriers(page, axe) == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    if PICTURES:
        page.screenshot(path=str(Path(PICTURES) / f"{name}.png"), full_page=True)


@pytest.mark.parametrize(("size", "theme"), [(PHONE, "dark"), (DESK, "light")], ids=["phone-dark", "desk"])
def test_set_up_waits_a_reviewer_and_a_dry_run(registry, opened, tmp_path, axe, size, theme):
    link = next(line for line in iter(registry.process.stdout) if "/setup?token=" in line).strip()
    page: Page = opened(base_url=registry.address, viewport=size, theme=theme)
    page.goto(link)
    for typed in ("ada", PASSWORD, PASSWORD):
        page.keyboard.type(typed)
        page.keyboard.press("Tab")
    expect(page.get_by_label("Open")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_label("Guarded")).to_be_checked()
    look_at(page, axe, f"set-up-{theme}")
    press(page, "Make the account")
    page.wait_for_url(re.compile("/admin/judges$"))

    author: Page = opened(base_url=registry.address, viewport=size, theme=theme)
    sign_in(author, "ann", make_author(registry, "ann"), "/submit")
    folder = skill_folder(tmp_path, "tidy", "Look first:\n\n```bash\ngit status\n```")
    chosen = author.get_by_role("button", name="Archive", exact=True)
    tab_to(author, chosen)
    # The window in which a file is chosen is the system's.
    chosen.set_input_files(shutil.make_archive(str(folder), "zip", folder))
    press(author, "Upload and submit")
    author.wait_for_url(re.compile("/submissions/sub_"))
    expect(author.locator("main")).to_contain_text(
        "nobody vouches for upload~ann yet, and no version of tidy is live"
    )
    look_at(author, axe, f"waits-{theme}")

    go_to_area(page, "Review", "/admin/review$")
    follow(page, page.get_by_role("link", name="cooling down"), "category=cooldown")
    follow(page, page.get_by_role("link", name="tidy", exact=True), "/submissions/sub_")
    follow(page, page.get_by_role("link", name="Review it"), "/admin/review/sub_")
    look_at(page, axe, f"review-{theme}")
    page.keyboard.press("a")
    expect(page.locator("[data-decide=a]").get_by_label("Reason")).to_be_focused()
    page.keyboard.type("I know ann.")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("tidy is approved")
    wait_until(lambda: bool(registry.json("/api/v1/skills")["skills"]), "it is not published")

    go_to_area(page, "Policy", "/admin/policy$")
    tab_to(page, page.get_by_label("Policy", exact=True))
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("extends: strict")
    press(page, "Try it")
    trial = page.locator("section", has=page.get_by_role("heading", name="What it would have done"))
    expect(trial.locator("tbody th")).to_contain_text("tidy")
    expect(trial).to_contain_text("Nothing was changed.")
    look_at(page, axe, f"dry-run-{theme}")
