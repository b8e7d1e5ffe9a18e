"""The journey that a registry is for: somebody who mistypes finds a skill and installs it, without a mouse. What is
reached is named by what people read, and the copied command is run as it was copied, by the real client."""

import io
import os
import re
import subprocess
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.places import CSV
from tests.clients.clients import MODULES, NOWHERE
from tools.browsing import command

pytestmark = pytest.mark.browser

#: More steps to something that somebody wants are too many.
MOST_TABS = 40
NAME_OF_FOCUSED = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText"


def tab_to(page: Page, name: str) -> None:
    """Press the tabulator until what bears this name has the focus."""
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if page.evaluate(NAME_OF_FOCUSED).strip() == name:
            return
    raise AssertionError(f"{MOST_TABS} steps did not lead to {name!r}")


@pytest.fixture
def terminal(tmp_path):
    """A folder, and what a shell there is given, in which `npx skills` is the pinned client."""
    node, client = next(MODULES.glob("node-*/bin/node"), None), MODULES / "skills" / "bin" / "cli.mjs"
    if node is None or not client.is_file():
        pytest.skip("the npm clients are not installed: run `make test-all`, or `make node` once")
    for name in ("programs", "home", "project"):
        (tmp_path / name).mkdir()
    npx = tmp_path / "programs" / "npx"
    npx.write_text(f'#!/bin/sh\n[ "$1" = skills ] && shift && exec {node} {client} "$@"\n')
    npx.chmod(0o755)
    return tmp_path / "project", {
        "PATH": f"{npx.parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
        # It asks nothing where an agent runs it, and it asks nobody but our own server.
        "AI_AGENT": "claude",
        "DISABLE_TELEMETRY": "1",
        "HTTP_PROXY": NOWHERE,
        "HTTPS_PROXY": NOWHERE,
        "NO_PROXY": "127.0.0.1,localhost",
    }


def test_a_mistyped_search_leads_to_an_installed_skill(opened, server, terminal):
    # What the schedule does within a minute of a publication.
    command(server.data, "queue", "jobs", "run", "vocabulary")

    page = opened(permissions=["clipboard-read", "clipboard-write"])
    page.goto("/")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search skills")).to_be_focused()
    page.keyboard.type("csv filez")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Did you mean")).to_be_visible()
    page.wait_for_load_state()
    tab_to(page, "csv files")
    page.keyboard.press("Enter")
    # Keys mean something once the page has its scripts, so all of it is waited for.
    page.wait_for_url(re.compile(r"/skills\?q=csv\+files"))
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("csv-cleaner")
    page.wait_for_load_state()
    tab_to(page, "Copy the command for skills")
    page.keyboard.press("Enter")
    expect(page.locator("#announce")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"npx skills add {server.address}{CSV.removeprefix('/skills')}"

    project, variables = terminal
    done = subprocess.run(copied, shell=True, cwd=project, env=variables, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    answer = page.request.get(f"/api/v1/skills{CSV.removeprefix('/skills')}/archive")
    archive = zipfile.ZipFile(io.BytesIO(answer.body()))
    (place, *_) = [one.parent for one in Path(project).rglob("SKILL.md")]
    assert {name: (place / name).read_bytes() for name in archive.namelist()} == {
        name: archive.read(name) for name in archive.namelist()
    }


def test_on_a_phone_a_command_is_broken_between_words_and_behind_slashes_alone(opened):
    """What is longer than a line is broken inside; what is selected is what the button copies."""
    page = opened(viewport={"width": 390, "height": 844})
    page.goto(CSV)
    page.locator("label[for=client-own]").click()
    shown = page.locator("#way-own .command__text")
    broken = shown.locator("span").evaluate_all(
        "all => all.filter(one => one.offsetHeight > 1.5 * all[0].offsetHeight).map(one => one.innerText)"
    )
    assert all(one.endswith(".whl") for one in broken), broken
    assert shown.inner_text() == page.locator("#way-own [data-copy]").get_attribute("data-copy")
