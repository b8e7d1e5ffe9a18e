"""Rules are data: this reads `rules/*.yaml`, refuses what is wrong by file, rule and field, and names the result.

A rule says what to look for, where it counts and why it matters, and carries the examples that prove it. The
matcher compiles the patterns of all rules together; the engine evaluates each rule's condition. The name of a rule
set changes with any of its rules and with the engine's version, and is part of every report.
"""

import hashlib
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any

import msgspec
import re2
import yaml

from vskill_core.errors import PlatformError
from vskill_core.findings import FindingCategory, FindingKind, Severity
from vskill_scan.model import (
    ACTING,
    ALL_ROLES,
    ANY_POLARITY,
    FACTS,
    SPEAKING,
    Polarity,
    TextRole,
    Unit,
)
from vskill_scan.rules.checksums import CHECKS

#: Raised with every change of the engine that can change a verdict.
ENGINE_VERSION = 20
RULES_FOLDER = Path(__file__).parent
LEAST_MATCHES, LEAST_NEAR_MISSES, LEAST_BENIGN = 2, 1, 1
#: A capital letter that is no class of characters such as `\\S`. Texts are searched in lower case.
_UPPER = re2.compile(r"(?:^|[^\\])(?:\\\\)*[A-Z]")

RuleId = Annotated[str, msgspec.Meta(pattern="^[A-Z]{2,4}-[0-9]{3}$")]
Text = Annotated[str, msgspec.Meta(min_length=1)]
Wanted = str | tuple[str, ...]
#: Content is text, or bytes where YAML says `!!binary`; one type for both is more than msgspec can tell apart.
Example = str | dict[str, Any]


class InvalidRule(PlatformError):
    """A rule of the scanner is not valid."""

    code = "invalid_rule"


class Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A node of the condition tree: a pattern or a fact, or other conditions joined."""

    any: tuple["Condition", ...] = ()
    all: tuple["Condition", ...] = ()
    none: tuple["Condition", ...] = ()
    #: in what `all` and `none` must hold together; the outer condition's unit by default
    within: Unit | None = None
    #: linear time: no look-around, no backreferences
    re: str | None = None
    #: whether upper and lower case differ
    case: bool = False
    #: what the match must pass besides: a name of `checksums.CHECKS`
    check: str = ""
    #: frequent in honest texts or slow to find, so it is looked for only in files in which the rest of its rule stands
    later: bool = False
    fact: str | None = None
    #: wanted attributes of the fact: a shell pattern or a list of them
    where: dict[str, Wanted] = {}
    to: Wanted = ()
    source: Wanted = msgspec.field(default=(), name="from")
    what: Wanted = ()
    how: Wanted = ()
    #: instead of the rule's own; of a group they hold for all that is in it
    roles: tuple[TextRole, ...] = ()
    polarity: tuple[Polarity, ...] = ()
    #: shell patterns of the path
    files: tuple[str, ...] = ()

    @property
    def is_leaf(self) -> bool:
        return self.re is not None or self.fact is not None

    @property
    def attributes(self) -> dict[str, tuple[str, ...]]:
        """What the fact's attributes must be like."""
        short = {"to": self.to, "what": self.what, "from": self.source, "how": self.how}
        return {key: as_tuple(value) for key, value in (short | self.where).items() if value}

    def children(self) -> Iterator["Condition"]:
        yield from (*self.all, *self.any, *self.none)


class Examples(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a rule must and must not find. A text is the prose of SKILL.md, a mapping a small skill."""

    match: tuple[Example, ...] = ()
    near_miss: tuple[Example, ...] = ()
    benign: tuple[Example, ...] = ()


class TextRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that the text or the code of a skill must not show."""

    id: RuleId
    version: Annotated[int, msgspec.Meta(ge=1)]
    title: Text
    severity: Severity
    kind: FindingKind
    why: Text
    remedy: Text
    match: Condition
    examples: Examples
    #: the family's by default
    category: FindingCategory
    references: tuple[str, ...] = ()
    #: ids of the original platform's patterns with the same meaning
    originally: tuple[str, ...] = ()
    certain: bool = False
    roles: tuple[TextRole, ...] = tuple(sorted(ACTING))
    polarity: tuple[Polarity, ...] = (Polarity.NEUTRAL,)
    files: tuple[str, ...] = ()


class Leaf(msgspec.Struct, frozen=True):
    """A condition without children, with everything decided about where it counts."""

    number: int
    condition: Condition
    roles: frozenset[TextRole]
    polarity: frozenset[Polarity]
    files: tuple[str, ...]
    #: false under `none`: it only forbids
    counts: bool = True
    later: bool = False

    @property
    def excuses(self) -> bool:
        """Whether it forbids only where somebody speaks of a thing: in prose, quotes, comments and tests."""
        return not self.counts and self.roles <= SPEAKING


class RuleNode(msgspec.Struct, frozen=True):
    """A condition whose children are numbered leaves or nodes of their own."""

    within: Unit
    condition: Condition
    all: tuple["RuleNode | Leaf", ...] = ()
    any: tuple["RuleNode | Leaf", ...] = ()
    none: tuple["RuleNode | Leaf", ...] = ()


class Ruleset:
    """All rules that are applied together, and the name of exactly this set."""

    def __init__(
        self, rules: Iterable[TextRule], known_files: Iterable[str] = (), known_skills: Iterable[str] = ()
    ) -> None:
        """`known_files` are the hashes of files that the operator has listed, `known_skills` the digests of skills."""
        self.known_files = frozenset(known_files)
        self.known_skills = frozenset(known_skills)
        self.rules = tuple(sorted(rules, key=lambda rule: rule.id))
        self.leaves: list[Leaf] = []
        self.conditions = {rule.id: self._tree(rule) for rule in self.rules}

    @cached_property
    def version(self) -> str:
        canonical = msgspec.json.encode(self.rules, order="sorted")
        if self.known_files:
            canonical += msgspec.json.encode(sorted(self.known_files))
        if self.known_skills:
            canonical += msgspec.json.encode({"skills": sorted(self.known_skills)})
        return f"{ENGINE_VERSION}-{hashlib.sha256(canonical).hexdigest()[:12]}"

    @cached_property
    def by_leaf(self) -> dict[int, TextRule]:
        """Which rule a leaf belongs to."""
        return {number: rule for rule in self.rules for number in self.leaf_numbers[rule.id]}

    @cached_property
    def leaf_numbers(self) -> dict[str, tuple[int, ...]]:
        """The leaves of each rule."""
        return {
            rule.id: tuple(leaf.number for leaf in leaves_of(self.conditions[rule.id])) for rule in self.rules
        }

    @cached_property
    def by_fact(self) -> dict[str, tuple[Leaf, ...]]:
        """The leaves that ask for a fact, by its name."""
        asked: dict[str, list[Leaf]] = {}
        for leaf in self.leaves:
            if leaf.condition.fact is not None:
                asked.setdefault(leaf.condition.fact, []).append(leaf)
        return {name: tuple(leaves) for name, leaves in asked.items()}

    def _tree(self, rule: TextRule) -> RuleNode:
        node = self._number(rule, rule.match, Unit.SEGMENT, counts=True)
        if isinstance(node, RuleNode):
            return node
        return RuleNode(rule.match.within or Unit.SEGMENT, Condition(), all=(node,))

    def _number(self, rule: TextRule, condition: Condition, within: Unit, *, counts: bool) -> RuleNode | Leaf:
        """`counts` is false under `none`: what forbids a finding may stand anywhere."""
        if condition.is_leaf:
            return self._leaf(rule, condition, counts=counts)
        own = {name: given for name in ("roles", "polarity", "files") if (given := getattr(condition, name))}
        inner = msgspec.structs.replace(rule, **own)
        unit = condition.within or within
        groups = {
            name: tuple(
                self._number(inner, child, unit, counts=counts and name != "none")
                for child in getattr(condition, name)
            )
            for name in ("all", "any", "none")
        }
        return RuleNode(unit, condition, **groups)

    def _leaf(self, rule: TextRule, condition: Condition, *, counts: bool) -> Leaf:
        # A comment beside code that runs does not make it harmless.
        forbidding = ALL_ROLES if TextRole.COMMENT in rule.roles else ALL_ROLES - {TextRole.COMMENT}
        roles = condition.roles or (rule.roles if counts else tuple(forbidding))
        # No title or sentence around it makes an indicator that is certain less so.
        anyhow = not counts or rule.certain
        polarity = condition.polarity or (tuple(ANY_POLARITY) if anyhow else rule.polarity)
        files = condition.files or (rule.files if counts else ())
        leaf = Leaf(
            len(self.leaves),
            condition,
            frozenset(roles),
            frozenset(polarity),
            files,
            counts,
            counts and condition.later,
        )
        self.leaves.append(leaf)
        return leaf


def leaves_of(node: RuleNode | Leaf) -> Iterator[Leaf]:
    if isinstance(node, Leaf):
        yield node
        return
    for child in (*node.all, *node.any, *node.none):
        yield from leaves_of(child)


def as_tuple(value: Wanted) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


# Reading.


@cache
def bundled_rules() -> Ruleset:
    """The rules that come with this release, read once."""
    return load_rules()


def load_rules(folder: Path = RULES_FOLDER) -> Ruleset:
    """Every rule of every file of the folder; InvalidRule names file, rule and field."""
    rules: dict[str, TextRule] = {}
    for path in sorted(folder.glob("*.yaml")):
        for rule in read_rules(path.name, path.read_bytes()):
            if rule.id in rules:
                raise _invalid(path.name, rule.id, "id", "is used by another rule; give it one of its own")
            rules[rule.id] = rule
    return Ruleset(rules.values())


def read_rules(name: str, data: bytes) -> Iterator[TextRule]:
    """The rules of one file."""
    try:
        content = yaml.load(data, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise _invalid(name, "", "", f"is not valid YAML: {error}") from None
    if (
        not isinstance(content, dict)
        or not isinstance(content.get("rules"), list)
        or not set(content) <= _KEYS
    ):
        raise _invalid(name, "", "", "needs the two fields 'family' and 'rules', and no others")
    family = _convert(name, "", content.get("family"), FindingCategory)
    for raw in content["rules"]:
        rule_id = str(raw.get("id", "?")) if isinstance(raw, dict) else "?"
        given = {"category": family.value, **raw} if isinstance(raw, dict) else raw
        rule: TextRule = _convert(name, rule_id, given, TextRule)
        _check(name, rule)
        yield rule


_KEYS = {"family", "rules"}


def _convert(name: str, rule_id: str, raw: object, kind: Any) -> Any:
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        problem, _, field = str(error).rpartition(" - at ")
        raise _invalid(name, rule_id, field.strip("`"), problem or str(error)) from None


def _check(name: str, rule: TextRule) -> None:
    """What the types cannot say."""
    for field, given, least in (
        ("match", rule.examples.match, LEAST_MATCHES),
        ("near_miss", rule.examples.near_miss, LEAST_NEAR_MISSES),
        ("benign", rule.examples.benign, LEAST_BENIGN),
    ):
        if len(given) < least:
            raise _invalid(name, rule.id, f"examples.{field}", f"has {len(given)}; give at least {least}")
        for example in given:
            if isinstance(example, dict) and not all(
                isinstance(one, str | bytes) for one in example.values()
            ):
                raise _invalid(name, rule.id, f"examples.{field}", "a file's content must be text or bytes")
    for problem in _problems(rule.match, "match"):
        raise _invalid(name, rule.id, *problem)
    if not _is_searched_first(rule.match):
        everything = (
            "looks for all of something later, and so never; take 'later' from a pattern of each 'all'"
        )
        raise _invalid(name, rule.id, "match", everything)


def _is_searched_first(condition: Condition) -> bool:
    """Whether wherever the condition holds, the file holds something that is not looked for later."""
    if condition.is_leaf:
        return not condition.later
    either = bool(condition.any) and all(map(_is_searched_first, condition.any))
    return either or any(map(_is_searched_first, condition.all))


def _problems(condition: Condition, field: str) -> Iterator[tuple[str, str]]:
    group = bool(condition.all or condition.any or condition.none)
    if (condition.re is not None) + (condition.fact is not None) + group != 1:
        yield field, "needs exactly one of re, fact, or a group of any, all and none"
    elif condition.none and not (condition.all or condition.any):
        yield field, "asks for nothing: 'none' alone would hold everywhere; put an 'all' or 'any' beside it"
    if not condition.case and _UPPER.search(condition.re or ""):
        yield field, "holds a capital letter: write it in lower case, or put 'case: true' beside it"
    if condition.check and (condition.re is None or condition.check not in CHECKS):
        yield f"{field}.check", f"must stand beside 're' and be one of {', '.join(CHECKS)}"
    if condition.fact is not None:
        yield from _fact_problems(condition, field)
    for number, child in enumerate(condition.children()):
        yield from _problems(child, f"{field}[{number}]")


def _fact_problems(condition: Condition, field: str) -> Iterator[tuple[str, str]]:
    known = FACTS.get(condition.fact or "")
    if known is None:
        yield f"{field}.fact", f"names {condition.fact!r}, which nothing reports; known: {', '.join(FACTS)}"
        return
    for attribute in condition.attributes:
        if attribute not in known:
            yield (
                f"{field}.{attribute}",
                f"is no attribute of {condition.fact}; it has {', '.join(known) or 'none'}",
            )


def _invalid(name: str, rule_id: str, field: str, problem: str) -> InvalidRule:
    where = " ".join(part for part in (name, rule_id, field) if part)
    return InvalidRule(f"{where}: {problem}", file=name, rule=rule_id, field=field)
