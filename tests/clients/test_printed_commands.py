"""Every command that a page prints about clients is run, word for word, by the real client: from the registry's own pages,
from the documents, and from what `connect` says to type next. A line without a run has a written reason
(`printed.NOT_RUN`)."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.clients.clients import Claude, Installed, keep_for_git
from tests.clients.printed import (
    ADDRESSES,
    COMPANY,
    HOW_TO,
    REFERENCE,
    PrintedLine,
    document_lines,
    fragments,
    is_part,
    page_lines,
    said_lines,
)
from tests.clients.private import FILES as HIDDEN_FILES
from tests.clients.private import HIDDEN, PrivateRegistry, bearer
from tests.clients.registry import Registry, skill_md, write_files
from tests.clients.terminal import Terminal
from tools.blocks import blocks
from tools.files import ROOT
from vskill_platform.web.clients.commands import marketplace_name

MARKETPLACE = "vskill-platform"
TEAM = "team"
FILES = {"SKILL.md": skill_md("pasted"), "notes.txt": b"1\n"}
WHY = ("--reason", "for a test of clients")
#: What `connect` knows.
CONNECTED = ("claude", "codex", "copilot", "opencode", "gemini", "skills", "clawhub", "vskill")
#: What each client asks, and somebody answers.
TYPED = {"gemini": "y\n"}
#: A line with one of these leaves a skill behind.
INSTALLS = (" install ", " plugin add ", "skills add ", "connect opencode", "unzip ")


@pytest.fixture(scope="module")
def canonical(registry: Registry):
    made = registry.publish("pasted", FILES)
    registry.command("collection", "create", TEAM, "--title", "The team", *WHY)
    registry.command("collection", "add", TEAM, made, *WHY)
    return made


@pytest.fixture(scope="module")
def token(registry: Registry):
    return registry.token("paula")


def values(registry: Registry, canonical: str, token: str, folder: str) -> dict[str, str]:
    """For the placeholders of the pages; the longer ones first."""
    addresses = dict.fromkeys(ADDRESSES, registry.url)
    return {
        **addresses,
        "OWNER--REPO--SKILL": canonical.replace("/", "--"),
        "OWNER/REPO/SKILL": canonical,
        "OWNER": canonical.partition("/")[0],
        "MARKETPLACE": MARKETPLACE,
        "SKILL": canonical.rpartition("/")[2],
        "login URL": f"login {registry.url}",
        "NAME": TEAM,
        "WORDS": canonical.rpartition("/")[2],
        "FOLDER": folder,
        "TOKEN": token,
        "vsk_...": token,
    }


def run_lines(
    lines: Iterable[PrintedLine],
    terminals: Mapping[str, Terminal],
    filled: Mapping[str, str],
    files: Mapping[str, bytes],
) -> None:
    """Each in its order, in the terminal of its client; whoever was told to install something has it."""
    told: set[str] = set()
    for line in lines:
        if line.why_not:
            continue
        terminal, text = terminals[line.client], line.fill(filled)
        given = f"{filled['TOKEN']}\n" if " login http" in text else TYPED.get(line.client, "")
        if " publish " in text:
            write_files(terminal.project / filled["FOLDER"], {"SKILL.md": skill_md(filled["FOLDER"])})
        terminal.paste(text, given)
        if any(one in f"{text} " for one in INSTALLS) and "--list" not in text:
            told.add(line.client)
    if "opencode" in told:
        terminals["opencode"].paste("opencode debug skill")
    missing = [client for client in told if not terminals[client].installed(files)]
    assert told and missing == []


@pytest.fixture
def terminals(installed, registry: Registry, wheels, tmp_path):
    return Terminals(installed, registry, tmp_path, wheels)


class Terminals(dict[str, Terminal]):
    """One for each client, made when it is asked for."""

    def __init__(self, installed: Installed, registry: Registry, folder: Path, wheels: Path) -> None:
        super().__init__()
        self._made = lambda place: Terminal(installed, registry, place, wheels)
        self._folder = folder

    def __missing__(self, client: str) -> Terminal:
        place = self._folder / client.replace(" ", "-")
        place.mkdir()
        self[client] = terminal = self._made(place)
        return terminal


@pytest.mark.node
def test_the_page_about_clients(registry, canonical, token, terminals):
    lines = page_lines(registry, "/docs/clients")
    assert {one.client for one in lines} >= {
        "skills",
        "clawhub",
        "claude",
        "codex",
        "copilot",
        "gemini",
        "vskill-client",
        "curl",
    }
    run_lines(lines, terminals, values(registry, canonical, token, "by-page"), FILES)
    assert "Connected" in terminals["claude"].paste("claude mcp list")


@pytest.mark.node
def test_the_page_of_a_skill(registry, canonical, token, terminals):
    lines = page_lines(registry, f"/skills/{canonical}")
    run_lines(lines, terminals, values(registry, canonical, token, "by-skill-page"), FILES)


@pytest.mark.node
def test_the_page_of_a_private_skill(private: PrivateRegistry, installed, wheels, tmp_path):
    """With the token where the page says so: in git's helper, and in the settings of Claude Code."""
    registry = private.registry
    terminals = Terminals(installed, registry, tmp_path, wheels)
    for client in ("skills", "claude", "codex", "copilot"):
        keep_for_git(terminals[client].home, private.url, private.member)
    page = f"/skills/{HIDDEN}"
    lines = page_lines(registry, page, **bearer(private.member))
    address = f"{private.url}/{HIDDEN}/marketplace.json"
    assert address in registry.get(page, headers={"accept": "text/html", **bearer(private.member)}).text
    source = {"source": "url", "url": address, "headers": bearer(private.member)}
    claude = Claude(installed, registry, tmp_path / "claude")
    known = {marketplace_name(HIDDEN): {"source": source}}
    claude.settings().write_text(json.dumps({"extraKnownMarketplaces": known}))
    claude.start_session()
    run_lines(lines, terminals, values(registry, HIDDEN, private.member, "by-private-page"), HIDDEN_FILES)
    assert {one.client for one in lines} >= {
        "skills",
        "clawhub",
        "claude",
        "codex",
        "copilot",
        "vskill-client",
        "curl",
    }


@pytest.mark.node
def test_connect_a_client(registry, canonical, token, terminals, installed, wheels, tmp_path):
    """What is typed inside Claude Code adds the document, and what is typed outside the repository, of one name."""
    (tmp_path / "inside").mkdir()
    inside = Terminals(installed, registry, tmp_path / "inside", wheels)
    lines, filled = document_lines(HOW_TO), values(registry, canonical, token, "by-how-to")
    run_lines([one for one in lines if one.text[0] != "/"], terminals, filled, FILES)
    run_lines([one for one in lines if one.text[0] == "/"], inside, filled, FILES)


@pytest.mark.node
def test_for_everybody_in_the_company(registry, canonical, token, terminals, installed, tmp_path):
    """Each client with the file that the page shows for it, in the place that the page names."""
    filled = values(registry, canonical, token, "by-company")
    shown = [one for one in blocks((ROOT / COMPANY).read_text("utf-8")) if one.language in ("json", "toml")]
    texts = [PrintedLine(COMPANY, one.text).fill(filled) for one in shown]
    for client, path, text in (
        ("claude", ".claude/settings.json", texts[0]),
        ("copilot", ".copilot/settings.json", texts[0]),
        ("codex", ".codex/config.toml", texts[1]),
        ("opencode", ".config/opencode/opencode.json", texts[2]),
    ):
        place = terminals[client].home / path
        place.parent.mkdir(parents=True)
        place.write_text(text)
    Claude(installed, registry, tmp_path / "claude").start_session()
    run_lines(document_lines(COMPANY), terminals, filled, FILES)
    terminals["opencode"].paste("opencode debug skill")
    terminals["claude"].paste(f"claude plugin install pasted@{TEAM}")
    terminals["codex"].paste(f"codex plugin add pasted@{TEAM}")
    terminals["copilot"].paste(f"copilot plugin install pasted@{TEAM}")
    for client in ("claude", "opencode", "codex", "copilot"):
        assert terminals[client].installed(FILES), client


@pytest.mark.node
@pytest.mark.parametrize("client", CONNECTED)
def test_what_connect_says_to_type_next(registry, canonical, token, terminals, installed, tmp_path, client):
    terminal = terminals[client]
    said = terminal.paste(f"vskill-platform --registry {registry.url} connect {client} --yes")
    lines = said_lines(f"connect {client}", said)
    if client == "opencode":
        terminal.paste("opencode debug skill")
        assert terminal.installed(FILES) and not lines
        return
    assert lines, said
    if client == "claude":
        Claude(installed, registry, tmp_path / client).start_session()
    if client != "vskill":
        run_lines(lines, terminals, values(registry, canonical, token, "by-next"), FILES)


def test_whatever_the_reference_says_of_a_command_is_part_of_one_that_is_run(registry, canonical):
    lines = [*document_lines(HOW_TO), *document_lines(COMPANY), *page_lines(registry, "/docs/clients")]
    run = [one.text.replace(registry.url, ADDRESSES[0]) for one in lines if not one.why_not]
    named = [one for one in fragments(REFERENCE) if not PrintedLine(REFERENCE, one).why_not]
    untried = [one for one in named if not any(is_part(one, command) for command in run)]
    assert untried == []


def test_a_fragment_and_a_line_that_nobody_runs_are_found():
    assert not is_part("codex plugin remove", "codex plugin add SKILL@MARKETPLACE")
    assert is_part(
        "clawhub login --token vsk_…", "npx clawhub --registry http://HOST/clawhub login --token TOKEN"
    )
    assert PrintedLine("", "vskill find WORDS").why_not and not PrintedLine("", "codex plugin list").why_not
    (line,) = said_lines("", "Gemini CLI keeps no list: gemini extensions install http://HOST/x.git")
    assert line.text == "gemini extensions install http://HOST/x.git"
