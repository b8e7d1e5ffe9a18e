"""An environment variable that a page, a document or a printed command shows for a client is one that the published
client reads. A client ignores any other, asks its public service instead, and sends it the names of private skills.

`CLIENTS` is written by hand, from the code of the published packages: look a variable up there before you add it.
"""

import re
from html import unescape

import httpx2
import msgspec
import pytest

from tests.support.memory_env import memory_env
from tools import blocks
from tools.files import ROOT, texts
from tools.hygiene import unknown_installs
from tools.reference import without_parts
from vskill_client.registries import ID_TOKEN_VARIABLE, REGISTRY_VARIABLE, TOKEN_VARIABLE
from vskill_platform.settings import (
    CHOSEN,
    load_settings,
    variable,
)
from vskill_platform.web.app import create_app
from vskill_platform.web.clients.commands import install_commands


class PublishedClient(msgspec.Struct, frozen=True):
    """What was looked up in the package of a client."""

    #: The npm package's version that was read.
    version: str
    #: The variables that decide which server it asks.
    reads: frozenset[str]
    #: What makes a command of it ask this registry: one of these is in the command or exported before it.
    pointers: tuple[str, ...]


CLIENTS = {
    "vskill": PublishedClient(
        "1.0.21", frozenset({"VSKILL_API_BASE", "VSKILL_API_URL"}), ("VSKILL_API_BASE=",)
    ),
    "skills": PublishedClient(
        "1.7.4", frozenset({"SKILLS_API_URL", "SKILLS_DOWNLOAD_URL"}), ("SKILLS_API_URL=", " add http")
    ),
    "clawhub": PublishedClient(
        "0.23.3", frozenset({"CLAWHUB_REGISTRY", "CLAWHUB_SITE"}), ("CLAWHUB_REGISTRY=", "--registry http")
    ),
}
#: `vskill` takes what it installs from elsewhere.
INSTALLING = CLIENTS.keys() - {"vskill"}
#: Reads what was installed, from the address that it was installed from.
WITHOUT_AN_ADDRESS = ("npx skills update",)
OURS = frozenset(variable(field) for field in CHOSEN) | {
    REGISTRY_VARIABLE,
    TOKEN_VARIABLE,
    ID_TOKEN_VARIABLE,
}

#: Of programs that are no clients of a registry.
OTHERS = frozenset(
    {
        "OLLAMA_CONTEXT_LENGTH",
        *("AWS_ENDPOINT_URL", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    }
)

_SET = re.compile(r"(?<![\w$\"'-])([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)=")
_OF_A_CLIENT = re.compile(r"\b(?:VSKILL|SKILLS|CLAWHUB|CLAWDHUB)_[A-Z][A-Z0-9_]*[A-Z0-9]\b")
_CALL = re.compile(rf"npx ({'|'.join(CLIENTS)})\b")
_SPAN = re.compile(r"`([^`\n]+)`")
_COMMAND = re.compile(r'class="command__text">([^<]*)<')

PAGES = {path: text for path, text in texts() if blocks.is_page(path)}
#: Where a page's words or a printed command may come from.
PRINTED = {
    path: text
    for path, text in texts()
    if path in PAGES
    or path.startswith(
        ("src/vskill_platform/web/", "src/vskill_platform/cli/", "src/vskill_platform/client/", "deploy/")
    )
}


def wrong_commands(commands: list[str]) -> list[str]:
    """Of commands that are typed one after the other, those with a variable that their client does not read, and
    those that ask somebody else's registry."""
    exported: list[str] = []
    wrong = []
    for command in commands:
        call = _CALL.search(command)
        if call is None:
            exported.append(command)
            continue
        client, seen = CLIENTS[call[1]], " ".join([*exported, command])
        foreign = set(_SET.findall(command)) - client.reads
        is_pointed = command in WITHOUT_AN_ADDRESS or any(one in seen for one in client.pointers)
        if foreign or not is_pointed:
            wrong.append(command)
    return wrong


def commands_in(text: str) -> list[list[str]]:
    """The commands of a document: each span alone, each block as a sequence."""
    shown = [block.text.replace("\\\n", " ").splitlines() for block in blocks.blocks(text)]
    return [*([span] for span in _SPAN.findall(text)), *shown]


def test_a_shown_variable_of_a_client_is_read_by_it():
    known = OURS.union(OTHERS, *(client.reads for client in CLIENTS.values()))
    shown = {(path, name) for path, text in PRINTED.items() for name in _OF_A_CLIENT.findall(text)}
    # Generated parts and deployments set variables of programs that are no clients.
    others = {path: text for path, text in PRINTED.items() if not path.startswith("deploy/")}
    shown |= {(path, name) for path, text in others.items() for name in _SET.findall(without_parts(text))}
    assert [one for one in sorted(shown) if one[1] not in known] == []


@pytest.mark.parametrize(
    "path", sorted(path for path, text in PAGES.items() if _CALL.search(without_parts(text)))
)
def test_a_client_in_a_document_is_pointed_at_the_registry_by_what_it_reads(path):
    assert [wrong for run in commands_in(without_parts(PAGES[path])) for wrong in wrong_commands(run)] == []


@pytest.mark.parametrize("with_token", [False, True])
def test_the_install_box_points_each_client_at_the_registry_by_what_it_reads(with_token):
    ways = install_commands("http://registry.test", "a/b/demo", "demo", listed="demo", with_token=with_token)
    assert {way.id for way in ways} >= INSTALLING and "vskill" not in {way.id for way in ways}
    for way in ways:
        assert wrong_commands(list(way.commands)) == []
        assert unknown_installs("\n".join(way.commands)) == []
        client = CLIENTS.get(way.id)
        assert set(_SET.findall(" ".join(way.commands))) <= (client.reads if client else frozenset())


@pytest.mark.anyio
async def test_the_page_about_clients_points_each_at_the_registry_by_what_it_reads():
    transport = httpx2.ASGITransport(create_app(memory_env()))
    async with httpx2.AsyncClient(transport=transport, base_url="http://registry.test") as opened:
        page = (await opened.get("/docs/clients", headers={"accept": "text/html"})).text
    seen = set()
    for section in page.split("<section")[1:]:
        commands = [unescape(one) for one in _COMMAND.findall(section)]
        assert wrong_commands(commands) == []
        name = section.partition('<h2 id="c-')[2].partition('"')[0]
        client = CLIENTS.get(name)
        assert set(_SET.findall(" ".join(commands))) <= (client.reads if client else frozenset())
        seen.add(name)
    assert seen >= INSTALLING


def test_our_own_command_ignores_what_the_client_reads():
    given = dict.fromkeys(CLIENTS["vskill"].reads, "http://registry.test")
    assert load_settings(given) == load_settings({})


def test_the_versions_are_those_that_the_tests_install():
    pinned = (ROOT / "tests/clients/node/package.json").read_text("utf-8")
    for name in ("skills", "clawhub"):
        assert f'"{name}": "{CLIENTS[name].version}"' in pinned
    reference = (ROOT / "docs/reference/clients.md").read_text("utf-8")
    (claude,) = set(re.findall(r'"@anthropic-ai/claude-code-[\w-]+": "([\d.]+)"', pinned))
    assert f"npm `@anthropic-ai/claude-code` {claude}" in reference
    assert set(re.findall(r"Claude Code ([\d.]+)", reference)) == {claude}


@pytest.mark.parametrize(
    "command",
    [
        "SKILLS_URL=http://registry.test npx skills find WORDS",
        "SKILLS_DOWNLOAD_URL=http://registry.test npx skills find WORDS",
        "SKILLS_API_URL=http://x.test VSKILL_PLATFORM_URL=http://x.test npx skills find WORDS",
        "npx clawhub install a--b--c",
        "npx skills find WORDS",
    ],
)
def test_a_command_that_would_ask_a_public_service_is_found(command):
    assert wrong_commands([command]) == [command]


def test_no_client_reads_the_variables_of_our_own_command():
    assert not {REGISTRY_VARIABLE, TOKEN_VARIABLE} & {name for one in CLIENTS.values() for name in one.reads}
