"""What was shown with which client: the table of the reference, made of the tests themselves.

A test says what it shows with `@pytest.mark.shows("codex", "add", "install")`. It counts only if it compares files in
the client's home and every exit status on the way: one that leaves a status open, or looks at no file, is refused. What
no test shows has its reason in `WHY_NOT`. So the page claims neither more nor less than the tests do.
"""

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.files import ROOT
from tools.tables import table

TESTS = ROOT / "tests" / "clients"
MARK = "shows"
STEPS = ("add", "find", "install", "update", "revoked", "wrong name", "down", "token")

#: By the name in a mark: how the page writes it, and where its version is pinned.
CLIENTS: Mapping[str, tuple[str, str]] = {
    "claude": ("Claude Code", "@anthropic-ai/claude-code-linux-x64"),
    "codex": ("Codex", "@openai/codex-linux-x64"),
    "copilot": ("Copilot CLI", "@github/copilot-linux-x64"),
    "gemini": ("Gemini CLI", "@google/gemini-cli"),
    "opencode": ("OpenCode", "opencode-linux-x64"),
    "skills": ("`skills`", "skills"),
    "clawhub": ("`clawhub`", "clawhub"),
    "git": ("git", ""),
    "sdk": ("MCP SDK for Python", "mcp"),
    "inspector": ("MCP inspector", "@modelcontextprotocol/inspector"),
}
#: They keep nothing: what they are given is compared instead.
KEEP_NO_FILES = frozenset({"sdk", "inspector"})
_NO_LIST = "it keeps no list of skills or registries"
WHY_NOT: Mapping[tuple[str, str], str] = {
    ("gemini", "add"): _NO_LIST,
    ("gemini", "find"): f"{_NO_LIST}; the registry's pages have the address of each skill",
    ("opencode", "token"): "it sends none, so private skills are not there for it",
}

_PINNED = ROOT / "tests" / "clients" / "node" / "package.json"
_LOCK = ROOT / "requirements-dev.lock"
_COMPARES = frozenset({"read_files", "exists", "read_bytes", "read_text"})


@dataclass(frozen=True)
class Shown:
    """One test, and a cell that it says it shows."""

    file: str
    node: ast.FunctionDef | ast.AsyncFunctionDef
    client: str
    step: str

    @property
    def place(self) -> str:
        return f"{self.file}::{self.node.name}"


def render() -> str:
    """The table, and below it why something is not in it."""
    shown = {(one.client, one.step) for one in read_marks()}
    reasons = list(dict.fromkeys(WHY_NOT[cell] for cell in WHY_NOT))
    rows = []
    for client, (title, _) in CLIENTS.items():
        why = {step: WHY_NOT[client, step] for step in STEPS if (client, step) in WHY_NOT}
        numbers = {step: f"no ({reasons.index(reason) + 1})" for step, reason in why.items()}
        cells = ["yes" if (client, step) in shown else numbers.get(step, "no") for step in STEPS]
        rows.append((f"{title} {version_of(client)}".strip(), *cells))
    notes = "\n".join(f"{number}. {reason}" for number, reason in enumerate(reasons, start=1))
    return f"{table(('client', *STEPS), rows)}\n\nNo, because:\n\n{notes}"


def version_of(client: str) -> str:
    """As it is locked for the tests; empty for a program of the machine."""
    package = CLIENTS[client][1]
    if client == "sdk":
        found = re.search(rf"^{package}==([\d.]+)", _LOCK.read_text("utf-8"), re.MULTILINE)
        return found[1] if found else ""
    pinned = json.loads(_PINNED.read_text("utf-8"))
    wanted = {**pinned["dependencies"], **pinned["optionalDependencies"]}.get(package, "")
    found = re.search(r"(\d+\.\d+\.\d+)", wanted)
    return found[1] if found else ""


def read_marks(folder: Path = TESTS) -> list[Shown]:
    """What every test of clients says that it shows."""
    return [
        Shown(path.name, node, client, step)
        for path in sorted(folder.glob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for client, *steps in _marks(node)
        for step in steps
    ]


def _marks(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[list[str]]:
    for one in node.decorator_list:
        if isinstance(one, ast.Call) and ast.unparse(one.func) == f"pytest.mark.{MARK}":
            yield [str(ast.literal_eval(word)) for word in one.args]


def problems(folder: Path = TESTS) -> list[str]:
    """Claims that do not count, cells that nobody shows and reasons for what is shown."""
    found, shown = [], read_marks(folder)
    for one in shown:
        if one.client not in CLIENTS or one.step not in STEPS:
            found.append(f"{one.place} shows {one.client}, {one.step}: no such cell")
        if "code=None" in ast.unparse(one.node):
            found.append(f"{one.place} leaves an exit status open")
    comparing = {path.name: _comparing(path) for path in sorted(folder.glob("test_*.py"))}
    found += [
        f"{one.place} compares no file of {one.client}"
        for one in shown
        if one.client not in KEEP_NO_FILES and one.node.name not in comparing[one.file]
    ]
    cells = {(client, step) for client in CLIENTS for step in STEPS}
    have = {(one.client, one.step) for one in shown}
    found += [f"no test shows {cell}, and nothing says why" for cell in sorted(cells - have - WHY_NOT.keys())]
    found += [f"{cell} is shown, and has a reason why not" for cell in sorted(have & WHY_NOT.keys())]
    return sorted(set(found))


def _comparing(path: Path) -> set[str]:
    """The functions of a file that look at files, themselves or by another function of it."""
    calls: dict[str, set[str]] = defaultdict(set)
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = (one for one in ast.walk(node) if isinstance(one, ast.Call))
            calls[node.name] |= {ast.unparse(one.func).rpartition(".")[2] for one in inside}
    found = {name for name, called in calls.items() if called & _COMPARES}
    while more := {name for name, called in calls.items() if called & found} - found:
        found |= more
    return found
