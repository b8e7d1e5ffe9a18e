"""`docs/reference/rules.md`, written from the scanner's rules so that it cannot drift.

`python -m tools.rules_page > docs/reference/rules.md` writes it; `make check` and a test compare.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby

from tools.problem import Problem
from vskill_platform.domain.scan import Category
from vskill_platform.scan.ruleset import Example, TextRule, bundled_rules
from vskill_platform.scan.structure import RULES, Rule

PATH = "docs/reference/rules.md"
COMMAND = f"python -m tools.rules_page > {PATH}"
#: Of an example; what is longer is cut, and says so.
LONGEST = 700

_LONG_WORD = re.compile(r"[\w/+.-]{16,}")

HEAD = """\
# Rules of the scanner

What the static scan looks for, by family. `malice` and `mismatch` count towards score and verdict; a `capability`
only informs. Each rule shows something that it finds, something close that it does not, and what the author can do.
The examples are tests: they are run with every change. An example without a file name is the text of SKILL.md.

This page is written from the rules themselves: `python -m tools.rules_page > docs/reference/rules.md`.
"""


def render() -> str:
    """The whole page."""
    return "\n".join([HEAD, *_structural(RULES), *_families(bundled_rules().rules)])


def check(path: str, text: str) -> Iterator[Problem]:
    if path == PATH and text != render():
        yield Problem(path, 1, f"is not what the rules say: run '{COMMAND}'")


def _structural(rules: Iterable[Rule]) -> Iterator[str]:
    yield "## structure and known content\n"
    yield "| rule | severity | kind | why it matters | what to do |\n|---|---|---|---|---|"
    for rule in rules:
        certain = ", certain" if rule.certain else ""
        yield f"| {rule.id} | {rule.severity}{certain} | {rule.kind} | {rule.why} | {rule.remedy} |"
    yield ""


def _families(rules: Iterable[TextRule]) -> Iterator[str]:
    ordered = sorted(rules, key=lambda rule: (rule.category, rule.id))
    for family, members in groupby(ordered, key=lambda rule: rule.category):
        yield f"## {family}\n"
        for rule in members:
            yield from _section(rule)


def _section(rule: TextRule) -> Iterator[str]:
    yield f"### {rule.id}: {rule.title}\n"
    certain = ", certain" if rule.certain else ""
    yield f"{rule.severity} {rule.kind}{certain}, version {rule.version}. {_line(rule.why)}\n"
    yield f"What to do: {_line(rule.remedy)}\n"
    if known := [*rule.references, *(f"originally {one}" for one in rule.originally)]:
        yield f"References: {', '.join(known)}.\n"
    yield from _shown("Finds", rule, rule.examples.match[0])
    yield from _shown("Does not find", rule, rule.examples.near_miss[0])


def _shown(title: str, rule: TextRule, example: Example) -> Iterator[str]:
    files = {"SKILL.md": example} if isinstance(example, str) else example
    for path, content in files.items():
        named = "" if isinstance(example, str) else f" (`{path}`)"
        text = content if isinstance(content, str) else content.decode("utf-8", "backslashreplace")
        if rule.category is Category.SECRET:
            # Whoever publishes this page would be told that it leaks a secret.
            text = _LONG_WORD.sub(lambda word: word[0][:6] + "[...]", text)
        yield f"{title}{named}:\n\n{_fenced(text)}\n"


def _fenced(text: str) -> str:
    # What cannot be seen is written out, so that the page itself hides nothing.
    visible = "".join(one if one.isprintable() or one == "\n" else ascii(one)[1:-1] for one in text)
    cut = visible[:LONGEST] + ("\n[and more]" if len(visible) > LONGEST else "")
    mark = "`" * max(4, _longest_run(cut) + 1)
    return f"{mark}text\n{cut.rstrip()}\n{mark}"


def _longest_run(text: str) -> int:
    return max((len(list(run)) for mark, run in groupby(text) if mark == "`"), default=0)


def _line(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    sys.stdout.write(render())
