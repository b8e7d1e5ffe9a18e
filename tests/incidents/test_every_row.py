"""docs/incidents.md and the tests agree: every row has a test, and every test's id is a row."""

import ast
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "incidents.md").read_text("utf-8")
ROW = re.compile(r"^\| ([A-E]\d+[a-z]?) \| (.+?) \| (.+?) \| (.+) \|$", re.MULTILINE)
LETTER = re.compile(r"^\| ([a-p]) \| (.+?) \| (.+) \|$", re.MULTILINE)
LINK = re.compile(r"\]\(\.\./([^)]+)\)")
ID = r"[A-E]\d+[a-z]?"
NAMED = re.compile(rf"^test_({ID}(?:_{ID})*)_")

ROWS = {match[1]: match for match in ROW.finditer(PAGE)}
LETTERS = {match[1]: match for match in LETTER.finditer(PAGE)}


@pytest.fixture(scope="module")
def tests() -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every test function of the suite, all of them at the top of a module, with the path of its file."""
    return [
        (path.relative_to(ROOT).as_posix(), node)
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]


def _rows_of(name: str) -> list[str]:
    match = NAMED.match(name)
    return match[1].split("_") if match else []


@pytest.fixture(scope="module")
def covered(tests) -> set[tuple[str, str]]:
    return {(row, path) for path, node in tests for row in _rows_of(node.name)}


def test_the_page_lists_every_row() -> None:
    """A row that was cut from the page by mistake would be forgotten."""
    assert len(ROWS) == 63
    assert sorted(LETTERS) == list("abcdefghijklmnop")


def test_every_row_has_its_test(covered) -> None:
    """The files that the page links to hold a test of that row."""
    for row in ROWS:
        files = LINK.findall(ROWS[row][4])
        assert files, f"{row} names no test"
        for file in files:
            assert (row, file) in covered, f"{file} has no test_{row}_..."


def test_every_id_in_a_test_is_a_row(covered) -> None:
    """A misspelt id would look like a covered row."""
    assert {row for row, _ in covered} <= set(ROWS)


def test_every_queue_failure_has_its_test(tests) -> None:
    """A test of one of the rows that the page names has the letter in its docstring, or the page names the test."""
    for letter, match in LETTERS.items():
        if match[3].startswith("`tests/"):
            path, _, name = match[3].strip("`").partition("::")
            assert (path, name) in {(file, node.name) for file, node in tests}, letter
            continue
        mentions = re.compile(rf"\((?:[a-p], )*{letter}(?:, [a-p])*\)")
        for row in match[3].split(", "):
            docstrings = [ast.get_docstring(node) or "" for _, node in tests if row in _rows_of(node.name)]
            assert any(mentions.search(text) for text in docstrings), f"no test of {row} names ({letter})"
