"""Runs every check over the project and prints what it finds: `python -m tools`, status 1 for any problem."""

import sys
from collections.abc import Iterator
from pathlib import Path

from tools import code_rules, docs, hygiene, rules_page
from tools.files import ROOT, texts
from tools.problem import Problem


def check_project(root: Path = ROOT) -> list[Problem]:
    """Every problem in the project, in the order of the files."""
    contents = dict(texts(root))
    problems = [problem for path, text in contents.items() for problem in _check_file(path, text, root)]
    problems += docs.check_decision_records(sorted(contents), contents.get(docs.ADR_INDEX, ""))
    return sorted(problems)


def _check_file(path: str, text: str, root: Path) -> Iterator[Problem]:
    yield from hygiene.check_text(path, text)
    if path.endswith(".lock"):
        yield from hygiene.check_lock(path, text)
    elif path.endswith(".py"):
        yield from code_rules.check_module(path, text)
    elif path.endswith(".md"):
        yield from docs.check_links(path, text, root)
        yield from rules_page.check(path, text)


def main() -> int:
    problems = check_project()
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
