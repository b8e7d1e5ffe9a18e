"""The generated pages of the reference: one table of what is written from what, a check that compares, and
`python -m tools.reference`, which writes them all."""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tools import errors_page, routes_page, rules_page, states_page
from tools.files import ROOT
from tools.problem import Problem
from vskill_platform.cli import reference as commands

COMMAND = "python -m tools.reference"

#: Path and the function that gives its content.
GENERATED: Mapping[str, Callable[[], str]] = {
    "docs/reference/commands.md": commands.render,
    errors_page.PATH: errors_page.render,
    routes_page.PATH: routes_page.render,
    rules_page.PATH: rules_page.render,
    states_page.PATH: states_page.render,
    states_page.PICTURE: states_page.picture,
}


def check(path: str, text: str) -> Iterator[Problem]:
    """A generated page that is not what its source says now."""
    if path in GENERATED and text != GENERATED[path]():
        yield Problem(path, 1, f"is not what the code says: run '{COMMAND}'")


def check_present(paths: list[str]) -> Iterator[Problem]:
    for path in GENERATED:
        if path not in paths:
            yield Problem(path, 1, f"is missing: run '{COMMAND}'")


def write(root: Path = ROOT) -> list[str]:
    """Write what differs; the paths of what was written."""
    changed = []
    for path, render in GENERATED.items():
        text = render()
        place = root / path
        if not place.exists() or place.read_text("utf-8") != text:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, "utf-8")
            changed.append(path)
    return changed


if __name__ == "__main__":
    for path in write():
        sys.stdout.write(f"reference: wrote {path}\n")
