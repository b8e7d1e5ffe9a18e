"""The commands that people copy: from the pages of a running registry, from the documents about clients, and from what
`connect` prints. Each is a line with the placeholders of its page, and is run as it stands once they are filled in."""

import html
import re
from collections.abc import Iterator, Mapping

import msgspec

from tests.clients.registry import Registry
from tools.blocks import blocks
from tools.files import ROOT

HOW_TO = "docs/how-to/connect-a-client.md"
COMPANY = "docs/how-to/for-everybody-in-the-company.md"
REFERENCE = "docs/reference/clients.md"
#: How the documents write the registry's address.
ADDRESSES = ("http://127.0.0.1:8080", "https://skills.example.org", "http://HOST")
#: What stands for a program of its own at the beginning of a line.
PROGRAMS = (
    "npx",
    "claude",
    "codex",
    "copilot",
    "gemini",
    "opencode",
    "vskill-platform",
    "vskill-client",
    "uv",
    "uvx",
    "/plugin",
    "curl",
)
#: Begin a command only where a document leaves `npx` out.
SHORT = ("skills", "clawhub", "vskill")

#: Why a line is not run here, by how it begins.
NOT_RUN = {
    "vskill ": "the package is not to be had without its public service: tests/clients/test_vskill.py replays it",
    "export VSKILL_API_BASE=": "for the package before",
    "vskill-platform git-credential": "git runs it: tests/clients/test_connect.py",
    "vskill-platform install": "by the wheel, in an environment of its own: tests/cli/test_laptop.py",
}

_COMMAND = re.compile(r'class="command__text">(.*?)</code>')
_SPAN = re.compile(r"`([^`\n]+)`")
_ASSIGNED = r"(?:[A-Z_]+=\S+ )*"
_BEGINS = re.compile(rf"{_ASSIGNED}(?:{'|'.join(map(re.escape, PROGRAMS))}) \S|export \S")
_PLACEHOLDER = re.compile(r"^[A-Z]+$|SKILL|…")
_BEGINS_SHORT = re.compile(rf"(?:{'|'.join((*PROGRAMS, *SHORT))}) \S")


class PrintedLine(msgspec.Struct, frozen=True):
    """One command of a page."""

    page: str
    text: str

    @property
    def why_not(self) -> str:
        """Empty where it is run."""
        if self.text.endswith("/clawhub login"):
            return "it waits for a person: tests/clients/test_npm_clawhub.py types its code"
        return next((why for beginning, why in NOT_RUN.items() if self.text.startswith(beginning)), "")

    @property
    def client(self) -> str:
        """Whose it is: lines of one client share a home and a folder."""
        words = [one for one in self.text.split() if "=" not in one]
        if words[0] == "npx":
            return words[1]
        if "connect" in words:
            # What it writes is read by the client itself, and by none that was told before.
            told = words[words.index("connect") + 1]
            return told if told == "opencode" else f"connect {told}"
        others = {
            "/plugin": "claude",
            "export": "clawhub",
            "unzip": "curl",
            "uv": "vskill-client",
            "uvx": "vskill-client",
        }
        return others.get(words[0], words[0])

    def fill(self, values: Mapping[str, str]) -> str:
        """With the values of placeholders, in their order. Inside Claude Code a line begins with a slash; the same
        words are a command of the program, and a session would need an account."""
        text = self.text
        for name, value in values.items():
            text = re.sub(rf"(?<![A-Z]){re.escape(name)}(?![A-Z_])", value.replace("\\", r"\\"), text)
        return f"claude {text[1:]}" if text.startswith("/plugin ") else text


def page_lines(registry: Registry, path: str, **headers: str) -> list[PrintedLine]:
    """Of a page of the registry."""
    page = registry.get(path, headers={"accept": "text/html", **headers})
    assert page.status_code == 200
    return [PrintedLine(path, html.unescape(re.sub("<.*?>", "", one))) for one in _COMMAND.findall(page.text)]


def document_lines(path: str) -> list[PrintedLine]:
    """The commands in a document's sentences and tables, and those of its blocks that no test of documents runs."""
    text = (ROOT / path).read_text("utf-8")
    found = dict.fromkeys(one for one in _SPAN.findall(_without_blocks(text)) if _BEGINS.match(one))
    whole = [PrintedLine(path, one) for one in found] + block_lines(path)
    # The first words of a line are no command of their own.
    return [one for one in whole if not any(other.text.startswith(f"{one.text} http") for other in whole)]


def said_lines(page: str, output: str) -> list[PrintedLine]:
    """What a command of ours says to type next."""
    parts = (part.strip() for line in output.splitlines() for part in re.split(r"[:;] ", line))
    return [PrintedLine(page, part) for part in parts if _BEGINS.match(part)]


def block_lines(path: str) -> list[PrintedLine]:
    """The commands of blocks that no test of documents runs."""
    shown = (one for one in blocks((ROOT / path).read_text("utf-8")) if not one.is_run)
    lines = (line.strip() for one in shown for line in one.text.splitlines())
    return [PrintedLine(path, line) for line in lines if _BEGINS.match(line)]


def fragments(path: str) -> list[str]:
    """Words of commands that a document speaks of, without all of their arguments."""
    spans = _SPAN.findall(_without_blocks((ROOT / path).read_text("utf-8")))
    return [one for one in dict.fromkeys(spans) if _BEGINS_SHORT.match(one)]


def is_part(fragment: str, command: str) -> bool:
    """Whether the words of a fragment stand in a command, in this order; what is written in capitals may be anything."""
    left = iter(with_one_address(command).split())
    words = (one for one in with_one_address(fragment).split() if not _PLACEHOLDER.search(one))
    return all(word in left for word in words)


def with_one_address(text: str) -> str:
    for address in ADDRESSES:
        text = text.replace(address, ADDRESSES[0])
    return text.replace("/collections/NAME", "/collections/team")


def _without_blocks(text: str) -> str:
    return "\n".join(_outside(text))


def _outside(text: str) -> Iterator[str]:
    inside = False
    for line in text.splitlines():
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            yield line
