"""The files that device management puts on machines, as the page for companies shows them and where it says: each client
reads its own there, and has the marketplace or the skills, with nothing in the home of whoever uses it. Each runs with an
`/etc` of its own, so that nothing of this machine changes."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.clients.clients import Claude, Client, Codex, Copilot, OpenCode
from tests.clients.printed import ADDRESSES, COMPANY, block_lines
from tests.clients.registry import Registry, read_files, skill_md
from tests.clients.terminal import Terminal
from tools.blocks import blocks
from tools.files import ROOT

pytestmark = pytest.mark.node

TEAM = "team"
FILES = {"SKILL.md": skill_md("managed"), "notes.txt": b"1\n"}
WHY = ("--reason", "for a test of clients")
#: The file of each client, and which block of the page goes into it.
MANAGED = {
    "claude": ("claude-code/managed-settings.json", "json", "extraKnownMarketplaces"),
    "copilot": ("github-copilot/managed-settings.json", "json", "extraKnownMarketplaces"),
    "codex": ("codex/config.toml", "toml", "marketplaces"),
    "opencode": ("opencode/opencode.json", "json", '"urls"'),
}


@pytest.fixture(scope="module")
def published(registry: Registry):
    made = registry.publish("managed", FILES)
    registry.command("collection", "create", TEAM, "--title", "The team", *WHY)
    registry.command("collection", "add", TEAM, made, *WHY)
    return registry


def give(client: Client, folder: Path, path: str, language: str, words: str, slug: str = "managed") -> None:
    """Put the block of the page that has these words into the file that the page names."""
    page = (ROOT / COMPANY).read_text("utf-8")
    assert f"`/etc/{path}`" in page
    (shown,) = [one.text for one in blocks(page) if one.language == language and words in one.text]
    for address in ADDRESSES:
        shown = shown.replace(address, client.registry.url)
    client.etc = folder / "etc"
    shutil.copytree("/etc", client.etc, symlinks=True, ignore=_unreadable)
    target = client.etc / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(shown.replace("SKILL@", f"{slug}@"))


def _unreadable(folder: str, names: list[str]) -> list[str]:
    """What only root may read, and what is no file."""
    places = {name: Path(folder, name) for name in names}
    return [name for name, one in places.items() if not one.is_symlink() and not _is_readable(one)]


def _is_readable(place: Path) -> bool:
    return place.is_dir() or (place.is_file() and os.access(place, os.R_OK))


def test_claude_code_has_the_marketplace_from_its_first_start_and_takes_no_other(
    published, claude: Claude, tmp_path
):
    give(claude, tmp_path, *MANAGED["claude"])
    claude.start_session()
    (known,) = json.loads(claude.plugin("marketplace", "list", "--json").text)
    assert known["url"] == f"{published.url}/collections/{TEAM}.git"
    claude.plugin("install", f"managed@{TEAM}")
    assert read_files(claude.folder(TEAM, "managed")) == FILES
    refused = claude.plugin("marketplace", "add", f"{published.url}/marketplace.git", code=1).text
    assert "polic" in refused, refused


def test_copilot_has_the_marketplace_and_takes_no_other(published, copilot: Copilot, tmp_path):
    give(copilot, tmp_path, *MANAGED["copilot"])
    assert TEAM in copilot.plugin("marketplace", "list").text
    copilot.plugin("install", f"managed@{TEAM}")
    assert read_files(copilot.folder(TEAM, "managed")) == FILES
    refused = copilot.plugin("marketplace", "add", f"{published.url}/marketplace.git", code=1).text
    assert "polic" in refused, refused


def test_codex_has_the_marketplace(published, codex: Codex, tmp_path):
    give(codex, tmp_path, *MANAGED["codex"])
    codex.plugin("marketplace", "upgrade", TEAM)
    codex.plugin("add", f"managed@{TEAM}")
    assert read_files(codex.folder(TEAM, "managed")) == FILES


def test_opencode_has_the_skills(published, opencode: OpenCode, tmp_path):
    give(opencode, tmp_path, *MANAGED["opencode"])
    assert read_files(opencode.skills()["managed"].parent) == FILES


@pytest.mark.parametrize("name", ["claude", "codex", "copilot"])
def test_the_recall_line_of_the_page_takes_a_skill_from_the_model(
    published, installed, request, model, tmp_path, name, wheels
):
    """What the managed file turned on, and what a person chose: both are given before, and neither afterwards."""
    client: Claude | Codex | Copilot = request.getfixturevalue(name)
    slugs = [f"{word}-{name}" for word in ("on", "chosen")]
    made = [published.publish(slug, {"SKILL.md": skill_md(slug)}) for slug in slugs]
    for canonical in made:
        published.command("collection", "add", TEAM, canonical, *WHY)
    place, language, words = MANAGED[name]
    give(client, tmp_path, place, language, words, slugs[0])
    for _ in range(2):
        client.ask_model(model)
    if name == "codex":
        client.plugin("marketplace", "upgrade", TEAM)
    for slug in slugs if name == "codex" else slugs[1:]:
        client.plugin("add" if name == "codex" else "install", f"{slug}@{TEAM}")
    assert [slug for slug in slugs if f"called {slug}," in client.ask_model(model)] == slugs
    for canonical in made:
        published.command("skill", "takedown", canonical, "--reason", "it steals tokens")
    terminal = Terminal(installed, published, tmp_path, wheels)
    terminal.etc = client.etc
    (line,) = [one for one in block_lines(COMPANY) if one.client == name]
    terminal.paste(line.text)
    assert [slug for slug in slugs if f"called {slug}," in client.ask_model(model)] == []
    assert client.plugin("list").text.count(".withdrawn") == len(slugs)


@pytest.mark.parametrize("name", ["claude", "codex", "copilot"])
def test_a_fresh_install_of_a_recalled_skill_is_listed_as_withdrawn(published, request, name):
    """Its client says that it is installed. The name cannot say more: Codex refuses a plugin that is called otherwise."""
    client: Claude | Codex | Copilot = request.getfixturevalue(name)
    slug = f"late-{name}"
    published.command(
        "skill", "takedown", published.publish(slug, {"SKILL.md": skill_md(slug)}), "--reason", "it steals"
    )
    client.plugin("marketplace", "add", f"{published.url}/marketplace.git")
    client.plugin("add" if name == "codex" else "install", f"{slug}@vskill-platform")
    assert ".withdrawn" in client.plugin("list").text.partition(f"{slug}@")[2]
    told = [one.read_text() for one in client.home.rglob("plugin.json") if slug in one.read_text()]
    assert told and all("WITHDRAWN" in one and "it steals" in one for one in told)
