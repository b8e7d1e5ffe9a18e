"""The generated parts of the documents. A page says where a part goes, between two lines:

    <!-- generated: settings (make reference) -->
    <!-- end: settings -->

What stands around them is written by hand. `PARTS` names each part and the function that writes it from the code;
`python -m tools` compares, and `python -m tools.reference` writes.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tools import (
    client_matrix,
    commands_page,
    declared_schema,
    monitoring,
    routes_page,
    rules_page,
    states_page,
    tables,
)
from tools.files import ROOT, texts
from tools.problem import Problem

COMMAND = "make reference"

#: A part's name and the function that writes it.
PARTS: Mapping[str, Callable[[], str]] = {
    "actions": tables.actions,
    "alerts": tables.alerts,
    "audit-fields": tables.audit_fields,
    "client-matrix": client_matrix.render,
    "commands": commands_page.render,
    "errors": tables.errors,
    "facts": tables.facts,
    "jobs": tables.jobs,
    "limits": tables.limits,
    "metrics": tables.metrics,
    "notes": tables.notes,
    "policy-keys": tables.policy_keys,
    "routes": routes_page.render,
    "rules": rules_page.render,
    "settings": tables.settings,
    "state-flags": states_page.flags,
    "state-steps": states_page.steps,
}
#: Files that are generated as a whole.
FILES: Mapping[str, Callable[[], str]] = {
    states_page.PICTURE: states_page.picture,
    monitoring.RULES: monitoring.rules,
    monitoring.DASHBOARD: monitoring.dashboard,
    declared_schema.SQLITE: declared_schema.sqlite,
    declared_schema.POSTGRES: declared_schema.postgres,
}

_PART = re.compile(
    rf"^<!-- generated: (?P<name>[a-z-]+) \({COMMAND}\) -->\n.*?^<!-- end: (?P=name) -->$",
    re.MULTILINE | re.DOTALL,
)


def fill(text: str) -> str:
    """A page with every part as the code says it now."""
    return _PART.sub(lambda part: _write_part(part["name"]) if part["name"] in PARTS else part[0], text)


def without_parts(text: str) -> str:
    """What of a page is written by hand."""
    return _PART.sub("", text)


def _write_part(name: str) -> str:
    return f"<!-- generated: {name} ({COMMAND}) -->\n{PARTS[name]().strip()}\n<!-- end: {name} -->"


def check(path: str, text: str) -> Iterator[Problem]:
    """A page or file that is not what the code says, or that asks for a part which nothing writes."""
    for name in {part["name"] for part in _PART.finditer(text)} - PARTS.keys():
        yield Problem(path, 1, f"asks for the generated part {name}, which is none of {', '.join(PARTS)}")
    if text != _generated(path, text):
        yield Problem(path, 1, f"is not what the code says: run '{COMMAND}'")


def check_present(contents: Mapping[str, str]) -> Iterator[Problem]:
    """A part that no page holds, and a file that is missing."""
    placed = {part["name"] for text in contents.values() for part in _PART.finditer(text)}
    for name in PARTS.keys() - placed:
        yield Problem("docs", 1, f"no page holds the generated part {name}")
    for path in FILES.keys() - contents.keys():
        yield Problem(path, 1, f"is missing: run '{COMMAND}'")


def _generated(path: str, text: str) -> str:
    if path in FILES:
        return FILES[path]()
    return fill(text) if path.endswith(".md") else text


def write(contents: Mapping[str, str], root: Path = ROOT) -> list[str]:
    """Write what differs; the paths of what was written."""
    changed = []
    for path, text in {**dict.fromkeys(FILES, ""), **contents}.items():
        new = _generated(path, text)
        if new != text:
            place = root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(new, "utf-8")
            changed.append(path)
    return changed


if __name__ == "__main__":
    for path in write(dict(texts())):
        sys.stdout.write(f"reference: wrote {path}\n")
