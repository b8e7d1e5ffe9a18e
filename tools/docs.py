"""Documents that cannot drift: links lead somewhere, every decision record and every page is listed, and a test that
a page names as its proof exists.

Only relative links are followed; addresses on the network are not ours to promise.
"""

import ast
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from tools.problem import Problem

ADR_FOLDER = "docs/adr/"
ADR_INDEX = "docs/adr/README.md"
INDEX = "docs/README.md"

_LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
_CODE_SPAN = re.compile(r"`[^`]*`")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_NAMED_TEST = re.compile(r"\b(tests/[\w/]+\.py)::(\w+)")
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


def check_index(paths: list[str], index: str) -> Iterator[Problem]:
    """Every page of the documentation is listed in its index; decision records have an index of their own."""
    listed = {
        posixpath.normpath(posixpath.join("docs", target.partition("#")[0])) for _, target in _links(index)
    }
    for path in paths:
        is_page = path.startswith("docs/") and path.endswith(".md") and path != INDEX
        if is_page and path not in listed and (path == ADR_INDEX or not path.startswith(ADR_FOLDER)):
            yield Problem(path, 1, f"is not listed in {INDEX}")


def check_named_tests(path: str, text: str, root: Path) -> Iterator[Problem]:
    """Whatever a page writes as `tests/some/file.py::test_name` is a test there."""
    for number, line in enumerate(text.splitlines(), start=1):
        for match in _NAMED_TEST.finditer(line):
            if match[2] not in _tests_in(root / match[1]):
                yield Problem(path, number, f"names {match[0]}, which is no test")


def _tests_in(file: Path) -> frozenset[str]:
    if not file.is_file():
        return frozenset()
    tree = ast.parse(file.read_text("utf-8"), filename=str(file))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in functions if node.name.startswith("test"))


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
