"""Claude Code and a private namespace. The marketplace's address takes a token from a header of the settings, from a
command of the settings under https, or from the address itself; the plugins behind it take it from git's credential
helper. Without one it is as if there were nothing."""

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.clients.clients import Claude, git, keep_for_git
from tests.clients.private import (
    ABSENT,
    FILES,
    HIDDEN,
    OWNER,
    SLUG,
    PrivateRegistry,
    bearer,
    repository_of,
    running_private,
    without_names,
)
from tests.clients.registry import Registry, read_files, skill_md
from tests.clients.tls import TlsProxy
from tools.blocks import blocks
from tools.files import ROOT

pytestmark = pytest.mark.node

MARKETPLACE = "upload-mia"
PLUGIN = f"{SLUG}@{MARKETPLACE}"
DOCUMENT = f"{OWNER}/marketplace.json"
#: What the client calls one installation.
_ITS_OWN = re.compile(r"plugin-\d|temp_git_\w+")
#: The page with the settings that readers copy.
PAGE = ROOT / "docs/how-to/connect-a-client.md"


@pytest.fixture
def registry(private: PrivateRegistry) -> Registry:
    """What the client is pointed at."""
    return private.registry


def shown_settings(url: str) -> str:
    """The settings that the page shows, with the names of this registry."""
    (shown,) = [one.text for one in blocks(PAGE.read_text("utf-8")) if "extraKnownMarketplaces" in one.text]
    named = shown.replace("https://skills.example.org", url).replace("/acme/", f"/{OWNER}/")
    return named.replace('"acme"', f'"{MARKETPLACE}"')


def files_with(folder: Path, secret: str) -> set[str]:
    found = (one for one in folder.rglob("*") if one.is_file() and secret.encode() in one.read_bytes())
    return {one.relative_to(folder).as_posix() for one in found}


def test_a_header_in_the_settings_reads_the_marketplace_and_a_helper_of_git_the_plugin(private, claude):
    private.registry.publish("grows", {"SKILL.md": skill_md("grows", "old")}, namespace="mia")
    settings = json.loads(shown_settings(private.url))
    source = settings["extraKnownMarketplaces"][MARKETPLACE]["source"]
    del source["headersHelper"]
    source["headers"] = {"Authorization": f"Bearer {private.member}"}
    claude.settings().write_text(json.dumps(settings))
    claude.start_session()
    refused = claude.plugin("install", PLUGIN, code=1).text
    assert "could not read Username" in refused
    keep_for_git(claude.home, private.url, private.member)
    for plugin in (PLUGIN, f"grows@{MARKETPLACE}"):
        claude.plugin("install", plugin)
    assert read_files(claude.folder(MARKETPLACE, SLUG)) == FILES
    new = {"SKILL.md": skill_md("grows", "new")}
    private.registry.publish("grows", new, namespace="mia")
    claude.plugin("marketplace", "update", MARKETPLACE)
    claude.plugin("update", f"grows@{MARKETPLACE}")
    assert read_files(claude.folder(MARKETPLACE, "grows", "1.0.1")) == new


def test_under_https_the_token_is_kept_by_git_alone(tmp_path_factory, tmp_path, installed):
    """The settings name a command that asks git for it, so that no file of Claude Code holds it."""
    folder = tmp_path_factory.mktemp("tls")
    proxy = TlsProxy(folder)
    with (
        running_private(folder, VSKILL_PUBLIC_URL=proxy.url) as private,
        proxy.leading_to(private.url),
    ):
        claude = Claude(installed, private.registry, tmp_path)
        claude.certificate = proxy.certificate
        git(claude.home, "config", "--global", "http.sslCAInfo", str(proxy.certificate))
        keep_for_git(claude.home, proxy.url, private.member)
        claude.settings().write_text(shown_settings(proxy.url))
        claude.start_session()
        claude.plugin("install", PLUGIN)
        claude.plugin("marketplace", "update", MARKETPLACE)
        assert read_files(claude.folder(MARKETPLACE, SLUG)) == FILES
        assert files_with(claude.home, private.member) == {".git-credentials"}


def test_a_token_in_the_address_is_sent_for_the_marketplace_only_and_kept_in_clear(private, claude):
    address = private.url.replace("://", f"://any:{private.member}@")
    claude.plugin("marketplace", "add", f"{address}/{DOCUMENT}")
    assert ".claude/settings.json" in files_with(claude.home, private.member)
    assert "could not read Username" in claude.plugin("install", PLUGIN, code=1).text


def test_a_document_that_was_downloaded_is_a_marketplace(private, claude):
    document = claude.project / "mia.json"
    document.write_bytes(private.registry.get(f"/{DOCUMENT}", headers=bearer(private.member)).content)
    assert "Validation passed" in claude.plugin("validate", str(document)).text
    claude.plugin("marketplace", "add", "./mia.json")
    keep_for_git(claude.home, private.url, private.member)
    claude.plugin("install", PLUGIN)
    assert read_files(claude.folder(MARKETPLACE, SLUG)) == FILES


def test_connects_over_mcp_with_the_token_in_a_header(private, claude):
    """The command of the page about clients."""
    (shown,) = re.findall(r"`claude (mcp add [^`]+)`", PAGE.read_text("utf-8"))
    pasted = shown.replace("http://127.0.0.1:8080", private.url).replace("TOKEN", private.member)
    claude.run(*shlex.split(pasted))
    assert re.search(rf"{private.url}/mcp.* Connected", claude.run("mcp", "list").text)


@pytest.mark.parametrize("who", ["no token", "another team", "expired"])
def test_a_marketplace_is_answered_as_one_that_is_not_there(private, claude, who):
    token = private.outsiders[who]
    base = private.url if token is None else private.url.replace("://", f"://any:{token}@")
    said = [
        without_names(claude.plugin("marketplace", "add", f"{base}/{path}/marketplace.json", code=1).text)
        for path in (HIDDEN, *ABSENT)
    ]
    assert said == [said[0]] * len(said)


@pytest.mark.parametrize("who", ["no token", "another team", "expired"])
def test_a_plugin_is_answered_as_one_that_is_not_there(private, claude, who):
    """Whoever still has a list of the plugins learns nothing from it."""
    plugins = [
        {"name": f"plugin-{place}", "source": {"source": "url", "url": repository_of(private.registry, name)}}
        for place, name in enumerate((HIDDEN, *ABSENT))
    ]
    document = {"name": MARKETPLACE, "owner": {"name": "mia"}, "plugins": plugins}
    (claude.project / "old.json").write_text(json.dumps(document))
    claude.plugin("marketplace", "add", "./old.json")
    said = []
    for plugin in plugins:
        token = private.outsiders[who]
        if token is not None:
            keep_for_git(claude.home, private.url, token)
        text = claude.plugin("install", f"{plugin['name']}@{MARKETPLACE}", code=1).text
        said.append(_ITS_OWN.sub("(own)", without_names(text)))
    assert said == [said[0]] * len(said)
