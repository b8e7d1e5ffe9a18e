"""Runs every check over the project and prints what it finds: `python -m tools`, status 1 for any problem."""

import sys
from collections.abc import Iterator
from pathlib import Path

from tools import blocks, callers, code_rules, docs, hygiene, measures, reference, usage
from tools.files import ROOT, texts
from tools.problem import Problem


def check_project(root: Path = ROOT) -> list[Problem]:
    """Every problem in the project, in the order of the files."""
    contents = dict(texts(root))
    problems = [problem for path, text in contents.items() for problem in _check_file(path, text, root)]
    paths = sorted(contents)
    problems += docs.check_decision_records(paths, contents.get(docs.ADR_INDEX, ""))
    problems += docs.check_index(paths, contents.get(docs.INDEX, ""))
    problems += reference.check_present(contents)
    problems += callers.check(contents)
    problems += usage.check_usage(contents)
    problems += measures.check(contents)
    return sorted(problems)


def _check_file(path: str, text: str, root: Path) -> Iterator[Problem]:
    yield from hygiene.check_text(path, text)
    yield from reference.check(path, text)
    if path.endswith(".lock"):
        yield from hygiene.check_lock(path, text)
    elif path.endswith(".py"):
        yield from code_rules.check_module(path, text)
    elif path.endswith(".html"):
        yield from code_rules.check_template(path, text)
    elif path.endswith(".md"):
        yield from docs.check_links(path, text, root)
        yield from docs.check_named_tests(path, text, root)
        yield from blocks.check(path, text)


def main() -> int:
    problems = check_project()
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
