"""The commands that the pages show, pasted: each is taken from the page as it is and run by the real client."""

import html
import shlex

import pytest

from tests.clients.registry import Registry, read_files, skill_md

pytestmark = pytest.mark.node

FILES = {"SKILL.md": skill_md("pasted"), "notes.txt": b"1\n"}


@pytest.fixture(scope="module")
def canonical(registry: Registry):
    return registry.publish("pasted", FILES)


def shown(registry: Registry, path: str) -> list[list[str]]:
    page = registry.get(path, headers={"accept": "text/html"})
    assert page.status_code == 200
    text = html.unescape(page.text)
    for tag in ("<code>", '<code class="command__text">', "</code>", "<pre>", "</pre>"):
        text = text.replace(tag, "\n")
    lines = (line.strip() for line in text.splitlines())
    return [shlex.split(line) for line in lines if line.startswith("npx ") and "<" not in line]


def of(words: list[list[str]], program: str, command: str) -> list[str]:
    """The arguments of the first such command."""
    return next(line[2:] for line in words if line[1] == program and command in line)


def test_the_page_about_clients(registry, canonical, skills, clawhub):
    words = shown(registry, "/docs/clients")
    skills.run(*of(words, "skills", "add"), "-y", "--agent", "claude-code")
    skills.run(*[one for one in words if one[1] == "skills"][1][2:], "-y", "--agent", "claude-code", "--copy")
    assert read_files(skills.folder("pasted")) == FILES
    base = {"CLAWHUB_REGISTRY": f"{registry.url}/clawhub"}
    assert "pasted" in clawhub.run(*of(words, "clawhub", "search")[:-1], "pasted", **base).text
    clawhub.run(*of(words, "clawhub", "install"), **base)
    flat = canonical.replace("/", "--")
    assert read_files(clawhub.folder(flat), (".clawhub/",)) == FILES
    assert "up to date" in clawhub.run(*of(words, "clawhub", "update"), **base).text


def test_the_install_box_of_a_skill(registry, canonical, skills, clawhub):
    page = html.unescape(registry.get(f"/skills/{canonical}", headers={"accept": "text/html"}).text)
    add = f"npx skills add {registry.url}/{canonical}"
    install = f"npx clawhub --registry {registry.url}/clawhub install {canonical.replace('/', '--')}"
    assert add in page and install in page
    skills.run(*shlex.split(add)[2:], "-y", "--agent", "claude-code", "--copy")
    assert read_files(skills.folder("pasted")) == FILES
    clawhub.run(*shlex.split(install)[2:])
    assert read_files(clawhub.folder(canonical.replace("/", "--")), (".clawhub/",)) == FILES
