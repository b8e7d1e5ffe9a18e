"""Every pattern of every rule in one pass: compiles the leaves of a rule set into YARA-X, which searches in time
linear in the text whatever the patterns are, and answers which leaf matched where.

Patterns are grouped by the roles in which they count, so that a text is searched only for what could count in it. Apart
are those that only forbid a finding, which are looked for when there is one; those that are looked for later, where all
else that their rule asks for stands; and the few that tell upper from lower case: all others search a text in lower
case, for which the search engine needs tables many times as small. A scanner object is costly to make and cheap to use,
and belongs to one thread at a time.
"""

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping

import yara_x

from vskill_scan.model import TextRole
from vskill_scan.rules.ruleset import InvalidRule, Leaf, Ruleset

#: Of one pattern in one text, which people never write; beyond it the text counts as not searched to its end.
MOST_MATCHES = 25000
HINT = (
    "Patterns see text whose typographic quotes, dashes and spaces are already ASCII; other characters "
    "beyond ASCII "
    "may stand in an alternation, not in brackets."
)

Match = tuple[int, int, int]
#: Called when a pattern matches more often than is counted.
Flooded = Callable[[], None]

FORBIDDING, LATER = "forbidding", "later"
#: A scanner reserves 80 MB of addresses, so there are few groups.
GROUPS = (FORBIDDING, LATER, "load", "code", "data", "cased")
_LOADED = frozenset({TextRole.LOAD, TextRole.HIDDEN})


class Matcher:
    """Searches texts for the patterns of one rule set."""

    def __init__(self, ruleset: Ruleset, compiled: Mapping[str, bytes] | None = None) -> None:
        """`compiled` is what `serialised` of a matcher of the same rule set gave: compiling takes a
        second or more. A search has no time limit of its own: YARA's is on the wall's clock, which a busy machine uses
        up, and the system ends a process that exceeds its processor time."""
        given = compiled or {}
        # Compiling takes time even where there is nothing to compile.
        groups = {name: leaves for name, leaves in _group_leaves(ruleset).items() if leaves}
        self._file_names = {name: _file_name(name, leaves) for name, leaves in groups.items()}
        self._by_name = {
            name: _Group(ruleset, leaves, given.get(self._file_names[name]))
            for name, leaves in groups.items()
        }

    def serialised(self) -> dict[str, bytes]:
        return {self._file_names[name]: group.serialised() for name, group in self._by_name.items()}

    def matches(self, text: bytes, roles: frozenset[TextRole], flooded: Flooded) -> Iterator[Match]:
        """Leaf number, offset and length of each match of a pattern that may count in one of the roles."""
        lower = text.lower()
        for name, group in self._by_name.items():
            if name not in (FORBIDDING, LATER) and not roles.isdisjoint(group.roles):
                yield from group.matches(text, lower, flooded)

    def matches_of(self, name: str, text: bytes, flooded: Flooded) -> Iterator[Match]:
        """The same for the patterns of one group: those that forbid a finding, or those that are looked for later."""
        group = self._by_name.get(name)
        return group.matches(text, text.lower(), flooded) if group is not None else iter(())


def _file_name(name: str, leaves: Iterable[Leaf]) -> str:
    """A group's name on disk: one with other patterns, or in another order, must not be taken for it."""
    bodies = "\n".join(map(body, leaves)).encode()
    return f"{name}-lower-{hashlib.sha256(bodies).hexdigest()[:12]}"


def _group_leaves(ruleset: Ruleset) -> dict[str, list[Leaf]]:
    """The leaves with patterns by the group that they are searched in."""
    leaves: dict[str, list[Leaf]] = {name: [] for name in GROUPS}
    for leaf in ruleset.leaves:
        if leaf.condition.re is not None:
            leaves[_group(leaf)].append(leaf)
    return leaves


def _group(leaf: Leaf) -> str:
    if not leaf.counts:
        return FORBIDDING
    if leaf.condition.case:
        return "cased"
    if leaf.later:
        return LATER
    if leaf.roles <= _LOADED:
        return "load"
    return "data" if TextRole.DATA in leaf.roles else "code"


class _Group:
    """Patterns that are compiled together; one that several leaves share is searched for once."""

    def __init__(self, ruleset: Ruleset, leaves: Iterable[Leaf], compiled: bytes | None) -> None:
        sharing: dict[str, list[Leaf]] = {}
        for leaf in leaves:
            sharing.setdefault(body(leaf), []).append(leaf)
        self._sharing = {f"pattern_{number}": shared for number, shared in enumerate(sharing.values())}
        self.roles = frozenset(role for shared in sharing.values() for leaf in shared for role in leaf.roles)
        #: whether it is searched for in lower case, which no pattern may mind
        self._lower = not any(leaf.condition.case for shared in sharing.values() for leaf in shared)
        if compiled is None:
            self._rules = _compile(ruleset, self._sharing, lower=self._lower)
        else:
            self._rules = yara_x.Rules.deserialize_from(io.BytesIO(compiled))
        # One must die in the thread that made it, so none is made before there is something to look for.
        self._scanner: yara_x.Scanner | None = None

    def _ready(self) -> yara_x.Scanner:
        if self._scanner is None:
            self._scanner = yara_x.Scanner(self._rules)
            self._scanner.max_matches_per_pattern(MOST_MATCHES)
        return self._scanner

    def serialised(self) -> bytes:
        file = io.BytesIO()
        self._rules.serialize_into(file)
        return file.getvalue()

    def matches(self, text: bytes, lower: bytes, flooded: Flooded) -> Iterator[Match]:
        """`lower` is the same text in lower case."""
        for found in self._ready().scan(lower if self._lower else text).matching_rules:
            matches = [(match.offset, match.length) for match in found.patterns[0].matches]
            if len(matches) >= MOST_MATCHES:
                flooded()
            for leaf in self._sharing[found.identifier]:
                for offset, length in matches:
                    yield leaf.number, offset, length


def _compile(ruleset: Ruleset, sharing: Mapping[str, list[Leaf]], *, lower: bool) -> yara_x.Rules:
    compiler = yara_x.Compiler(relaxed_re_syntax=False, includes_enabled=False)
    try:
        sources = (source(name, leaves[0], lower=lower) for name, leaves in sharing.items())
        compiler.add_source("\n".join(sources))
    except yara_x.CompileError:
        for leaves in sharing.values():
            _check_pattern(ruleset, leaves[0])
        raise
    return compiler.build()


def _check_pattern(ruleset: Ruleset, leaf: Leaf) -> None:
    try:
        yara_x.compile(source("pattern", leaf))
    except yara_x.CompileError as error:
        rule = ruleset.by_leaf[leaf.number]
        message = f"{rule.id}: the pattern {leaf.condition.re!r} is not accepted: {error} {HINT}"
        raise InvalidRule(message, rule=rule.id, field="match") from None


def source(name: str, leaf: Leaf, *, lower: bool = False) -> str:
    """One YARA rule per pattern, so that only patterns that matched are looked at.

    `lower` is for a text in lower case, for which the search engine needs tables many times as small. Such a text keeps
    its length, so what is found stands at the same place.
    """
    written = f"/{literal(leaf.condition.re or '')}/" if lower else body(leaf)
    return f"rule {name} {{ strings: $a = {written} condition: $a }}"


def body(leaf: Leaf) -> str:
    modifier = "" if leaf.condition.case else " nocase"
    return f"/{literal(leaf.condition.re or '')}/{modifier}"


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
