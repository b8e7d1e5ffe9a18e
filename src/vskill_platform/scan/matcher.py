"""Every pattern of every rule in one pass: compiles the leaves of a rule set into YARA-X, which searches in time
linear in the text whatever the patterns are, and answers which leaf matched where.

A scanner object is costly to make and cheap to use, and belongs to one thread at a time.
"""

from collections.abc import Iterable, Iterator

import yara_x

from vskill_platform.scan.ruleset import InvalidRule, Leaf, Ruleset

#: More places than a report shows of one rule in one file, even where most are dropped by role.
MOST_MATCHES = 200

HINT = (
    "Patterns see text whose typographic quotes, dashes and spaces are already ASCII; other characters beyond ASCII "
    "may stand in an alternation, not in brackets."
)

Match = tuple[int, int, int]


class Matcher:
    """Searches texts for the patterns of one rule set."""

    def __init__(self, ruleset: Ruleset) -> None:
        self._leaves = {_name(leaf): leaf for leaf in ruleset.leaves if leaf.pattern is not None}
        self._windows = {
            leaf.number: leaf.condition.window for leaf in self._leaves.values() if leaf.condition.words
        }
        self._scanner = yara_x.Scanner(_compiled(ruleset, self._leaves.values()))
        self._scanner.max_matches_per_pattern(MOST_MATCHES)

    def matches(self, text: bytes) -> Iterator[Match]:
        """Leaf number, offset and length of each match."""
        for found in self._scanner.scan(text).matching_rules:
            number = self._leaves[found.identifier].number
            window = self._windows.get(number)
            for match in found.patterns[0].matches:
                if window is None or match.length <= window:
                    yield number, match.offset, match.length


def _name(leaf: Leaf) -> str:
    return f"leaf_{leaf.number}"


def _compiled(ruleset: Ruleset, leaves: Iterable[Leaf]) -> yara_x.Rules:
    compiler = yara_x.Compiler(relaxed_re_syntax=False, includes_enabled=False)
    for leaf in leaves:
        try:
            compiler.add_source(source(leaf))
        except yara_x.CompileError as error:
            rule = ruleset.by_leaf[leaf.number]
            message = f"{rule.id}: the pattern {leaf.pattern!r} is not accepted: {error} {HINT}"
            raise InvalidRule(message, rule=rule.id, field="match") from None
    return compiler.build()


def source(leaf: Leaf) -> str:
    """One YARA rule per leaf, so that only leaves that matched are looked at."""
    modifier = "" if leaf.condition.case else " nocase"
    return f"rule {_name(leaf)} {{ strings: $a = /{literal(leaf.pattern or '')}/{modifier} condition: $a }}"


def literal(pattern: str) -> str:
    """A pattern as it stands between two slashes on one line."""
    written: list[str] = []
    escaped = False
    for char in pattern:
        if not escaped and char == "/":
            written.append("\\")
        written.append({"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char, char))
        escaped = char == "\\" and not escaped
    return "".join(written)
