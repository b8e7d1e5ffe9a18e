"""What a page mentions in passing exists: settings, commands with their options, make targets, modules, files,
addresses, metrics and alerts. The reference pages are held to the code by name elsewhere; these are the sentences
between them, where a renamed command or a moved file would otherwise live on."""

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.docs.test_client_variables import CLIENTS
from tests.docs.test_make import targets
from tools import blocks
from tools.files import HOMES, ROOT, texts
from tools.reference import without_parts
from vskill_client.registries import ID_TOKEN_VARIABLE, REGISTRY_VARIABLE, TOKEN_VARIABLE
from vskill_platform.actions.people.owners import PROOF_FILE
from vskill_platform.cli import cli
from vskill_platform.domain.skills.plugin_form import GENERATED
from vskill_platform.observing.metrics import DECLARED
from vskill_platform.settings import CHOSEN, variable
from vskill_platform.web.app import ENDPOINTS
from vskill_scan.plugins.parts import HOOKS

#: What is written by hand: in what is generated, examples of skills and all addresses are no mentions.
PAGES = {path: without_parts(text) for path, text in texts() if blocks.is_page(path)}
#: Where a path in a page may begin.
PLACES = (ROOT, ROOT / "src" / "vskill_platform", ROOT / "docs", *(ROOT / home for home in HOMES))

_SPAN = re.compile(r"`([^`\n]+)`")
_FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_SETTING = re.compile(r"\bVSKILL_[A-Z][A-Z_]*[A-Z]\b")
_METRIC = re.compile(r"\bvskill_[a-z_]+(?=$|[{ ])")
_COMMAND = re.compile(r"(?:^|[\s(])(?:\S*/)?vskill-platform ([a-z][^\n|;&>)]*)")
_MAKE = re.compile(r"(?:^|\s)make ([a-z][a-z-]*)")
_MODULE = re.compile(r"python3? -m ([a-z_]+(?:\.[a-z_]+)*)")
_PATH = re.compile(
    r"^(?:\.?[\w-]+/)+[\w.-]+\.(?:py|md|sql|yaml|conf|lock|sh|service|txt|json)$"
    r"|^(?:src|tests|tools|docs|deploy|bench|simulator|fuzz)/[\w./-]*$"
)
_ON_DISK = re.compile(r"/$|/(?:etc|opt|var|mnt|data)/")
_ADDRESS = re.compile(r"^(?:(GET|POST|PUT|PATCH|DELETE) )?(/[\w.{}/~:-]*)(?:\?\S*)?$")


def spans(text: str) -> list[str]:
    """The inline code of a page, outside its blocks."""
    return _SPAN.findall(_FENCE.sub("", text))


def code(path: str) -> list[str]:
    """All that a page shows as code: spans, and the lines of blocks that are run."""
    text = PAGES[path]
    shown = [one.text for one in blocks.blocks(text) if one.language in blocks.RUN]
    return [*spans(text), *(line for one in shown for line in one.replace("\\\n", " ").splitlines())]


def mentions(path: str, pattern: re.Pattern[str]) -> set[str]:
    return {match[match.re.groups] for one in code(path) for match in pattern.finditer(one)}


@pytest.mark.parametrize("path", sorted(PAGES))
def test_a_setting_that_a_page_mentions_exists(path):
    known = {variable(field) for field in CHOSEN} | CLIENTS["vskill"].reads
    known |= {REGISTRY_VARIABLE, TOKEN_VARIABLE, ID_TOKEN_VARIABLE}
    assert set(_SETTING.findall(PAGES[path])) - known == set()


@pytest.mark.parametrize("path", sorted(PAGES))
def test_a_command_that_a_page_mentions_exists_with_its_options(path):
    assert [one for one in sorted(mentions(path, _COMMAND)) if (_misspelt(one.split()))] == []


def test_a_command_is_looked_at_to_its_last_option():
    assert _misspelt(["queue", "health", "--json"]) == ""
    assert _misspelt(["submit", "my-skill", "--watch"]) == ""
    assert _misspelt(["queue", "helth"]) == "helth"
    assert _misspelt(["queue", "health", "--loud"]) == "--loud"


def _misspelt(words: list[str]) -> str:
    """The first word that is no command of its group, or an option that the command does not have."""
    command: click.Command = cli
    for word in words:
        if word.startswith("-"):
            names = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
            if word.partition("=")[0] not in {*names, "-h", "--help"}:
                return word
        elif isinstance(command, click.Group):
            found = command.get_command(click.Context(command), word)
            if found is None:
                return word
            command = found
    return ""


@pytest.mark.parametrize("path", sorted(PAGES))
def test_a_target_of_make_that_a_page_mentions_exists(path):
    assert mentions(path, _MAKE) - set(targets()) == set()


@pytest.mark.parametrize("path", sorted(PAGES))
def test_a_module_that_a_page_runs_exists(path):
    found = mentions(path, _MODULE)
    assert {one for one in found if importlib.util.find_spec(one) is None} == set()


@pytest.mark.parametrize("path", sorted(PAGES))
def test_a_file_or_folder_that_a_page_mentions_exists(path):
    """Of the project: what has a folder in front of it, or stands at the root of a place."""
    named = {one for one in spans(PAGES[path]) if _PATH.match(one) and not one.startswith("build/")}
    named -= {PROOF_FILE}  # it stands in the repositories of owners
    named -= {*GENERATED, *HOOKS}  # they stand in the repositories of plugins
    assert {one for one in named if not any((place / one).exists() for place in PLACES)} == set()


def patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    for endpoint in ENDPOINTS:
        parts = re.split(r"(\{[^}]*\})", endpoint.path)
        regex = "".join(
            (".+" if part.endswith(":path}") else "[^/]+") if part.startswith("{") else re.escape(part)
            for part in parts
        )
        yield endpoint.method, re.compile(regex)


ROUTES = tuple(patterns())


@pytest.mark.parametrize("path", sorted(PAGES))
def test_an_address_that_a_page_mentions_is_answered(path):
    named = {
        match for one in spans(PAGES[path]) if (match := _ADDRESS.match(one)) and not _ON_DISK.match(match[2])
    }
    assert [match[0] for match in sorted(named, key=str) if not _is_route(match[1] or "", match[2])] == []


def _is_route(method: str, address: str) -> bool:
    # A repository's address is the beginning of what git asks for; `/api/v1` is that of many addresses.
    asked = f"{address}/info/refs" if address.endswith(".git") else address
    if not method and any(one.path.startswith(f"{address}/") for one in ENDPOINTS):
        return True
    return any((not method or method == known) and route.fullmatch(asked) for known, route in ROUTES)


@pytest.mark.parametrize("path", sorted(PAGES))
def test_a_metric_that_a_page_mentions_exists(path):
    packages = {path.name for home in HOMES for path in (ROOT / home).glob("vskill_*")}
    known = {*packages, *(facts.name for facts in DECLARED)}
    assert mentions(path, _METRIC) - known == set()


def test_the_architecture_names_every_room():
    """A package or module of the product that the map leaves out is one that a newcomer does not find."""
    text = Path(ROOT, "ARCHITECTURE.md").read_text("utf-8")
    rooms = sorted(
        path.name + ("/" if path.is_dir() else "")
        for path in Path(ROOT, "src", "vskill_platform").iterdir()
        if (path.is_dir() and any(path.glob("*.*"))) or path.suffix == ".py"
    )
    unnamed = [one for one in rooms if not one.startswith("_") and f"`{one}" not in text]
    assert unnamed == []
