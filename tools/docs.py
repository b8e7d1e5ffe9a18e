"""Documents that cannot drift: links lead somewhere, and every decision record is listed.

Only relative links are followed; addresses on the network are not ours to promise.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from tools.problem import Problem

ADR_FOLDER = "docs/adr/"
ADR_INDEX = "docs/adr/README.md"

_LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
_CODE_SPAN = re.compile(r"`[^`]*`")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_ADR_NAME = re.compile(r"^(\d{4})-[a-z0-9-]+\.md$")


def check_links(path: str, text: str, root: Path) -> Iterator[Problem]:
    """Every relative link of a markdown file names an existing file and, after `#`, a heading in it."""
    for number, target in _links(text):
        name, _, fragment = target.partition("#")
        linked = (root / path).parent / unquote(name) if name else root / path
        if not linked.exists():
            yield Problem(path, number, f"links to {target}, which does not exist")
        elif fragment and linked.suffix == ".md" and fragment not in anchors(linked.read_text("utf-8")):
            yield Problem(path, number, f"links to {target}, but there is no such heading")


def check_decision_records(paths: list[str], index: str) -> Iterator[Problem]:
    """Every decision record has a number of its own and is linked from the index."""
    listed = {target for _, target in _links(index)}
    seen: dict[str, str] = {}
    for path in paths:
        name = path.removeprefix(ADR_FOLDER)
        if not path.startswith(ADR_FOLDER) or path == ADR_INDEX:
            continue
        if not (match := _ADR_NAME.match(name)):
            yield Problem(path, 1, "is not named like 0001-what-was-decided.md")
            continue
        if name not in listed:
            yield Problem(path, 1, f"is not listed in {ADR_INDEX}")
        if match[1] in seen:
            yield Problem(path, 1, f"has the number of {seen[match[1]]}")
        seen.setdefault(match[1], name)


def anchors(text: str) -> set[str]:
    """The names under which a page's headings can be linked to: lower case, hyphens, no punctuation."""
    found: set[str] = set()
    for _, line in _prose(text):
        if match := _HEADING.match(line):
            plain = re.sub(r"[^\w\- ]", "", match[1].lower()).replace(" ", "-")
            repeats = sum(1 for anchor in found if re.fullmatch(rf"{re.escape(plain)}(-\d+)?", anchor))
            found.add(f"{plain}-{repeats}" if repeats else plain)
    return found


def _links(text: str) -> Iterator[tuple[int, str]]:
    for number, line in _prose(text):
        for match in _LINK.finditer(_CODE_SPAN.sub("", line)):
            if not _SCHEME.match(match[1]):
                yield number, match[1]


def _prose(text: str) -> Iterator[tuple[int, str]]:
    """Lines outside fenced code."""
    fenced = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced:
            yield number, line
