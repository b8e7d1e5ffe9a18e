"""The code blocks of the documents: every one says what it is, and one that looks runnable is run by a test.

A fence names its language. `sh`, `console` and `python` are run, page by page and in order, by
`tests/docs/test_blocks_run.py`; the exception is a block whose first line is `# illustration: <why it is not run>`,
which every reader sees. Anything else (`text`, `json`, `yaml`) is there to be read.
"""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from tools.problem import Problem

RUN = frozenset({"sh", "console", "python"})
READ = frozenset({"text", "json", "yaml", "ini", "toml", "sql", "http", "xml", "nginx", "systemd"})
#: Where newcomers read; other Markdown in the project is data.
ROOT_PAGES = frozenset({"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"})

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})\s*(\S*)\s*$")
_ILLUSTRATION = re.compile(r"^# illustration: \S")


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    #: Of its opening fence.
    line: int
    language: str
    text: str

    @property
    def is_illustration(self) -> bool:
        return bool(_ILLUSTRATION.match(self.text))

    @property
    def is_run(self) -> bool:
        return self.language in RUN and not self.is_illustration


def is_page(path: str) -> bool:
    return path in ROOT_PAGES or (path.startswith("docs/") and path.endswith(".md"))


def blocks(text: str) -> Iterator[Block]:
    """Every fenced block, in order; a fence closes only with its own mark, at least as long."""
    mark, language, begun = "", "", 0
    held: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        match = _FENCE.match(line)
        if not mark:
            if match:
                mark, language, begun, held = match[1], match[2], number, []
        elif match and match[1].startswith(mark) and not match[2]:
            # A block in a list is as far to the right as its text.
            yield Block(begun, language, textwrap.dedent("\n".join(held)) + "\n")
            mark = ""
        else:
            held.append(line)


def check(path: str, text: str) -> Iterator[Problem]:
    """Blocks that do not say what they are, and commands that escape the tests by standing outside a fence."""
    if not is_page(path):
        return
    for block in blocks(text):
        if block.language not in RUN | READ:
            known = ", ".join(sorted(RUN | READ))
            yield Problem(
                path, block.line, f"a block of code needs a language: one of {known}, not {block.language!r}"
            )
    yield from _check_indented(path, text)


def _check_indented(path: str, text: str) -> Iterator[Problem]:
    """A code block made by four spaces has no language, so nobody could tell whether it runs."""
    inside, before_blank, in_list = "", True, False
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _FENCE.match(line):
            inside = "" if inside and match[1].startswith(inside) else inside or match[1]
        elif not inside:
            in_list = (in_list and (not line or line[0] == " ")) or bool(re.match(r"\s*([-*]|\d+\.) ", line))
            if line.startswith("    ") and before_blank and not in_list:
                yield Problem(path, number, "code by indentation: use a fence with a language")
        before_blank = not line.strip()
