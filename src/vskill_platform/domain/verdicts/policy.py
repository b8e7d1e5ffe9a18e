"""The policy: one YAML text by which the operator says what is not published without a reviewer, or not at all.

`load_policy` reads a text, with line and column of what is wrong; `match_rules` asks every rule about one skill. The
decision takes what matched and only raises by it: the table of `decision` holds whatever a policy says.
"""

import enum
import hashlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import msgspec
import re2
import yaml

from vskill_core.errors import InvalidInput
from vskill_core.identity import Identity
from vskill_platform.domain.judges import MOST_JUDGES
from vskill_platform.domain.signals import MatchedRule, RuleEffect, SignalKind
from vskill_platform.domain.verdicts.expressions import (
    Expression,
    ExpressionError,
    context_of,
    describe_failure,
)
from vskill_platform.domain.verdicts.facts import Facts

#: Characters of a text.
LONGEST_TEXT = 65_536
#: Rules of a text, those that it extends not counted.
MOST_RULES = 100
#: What the rules of a text may cost together; some 0.3 s on one core, for a skill that fills every list.
MOST_STEPS = 1_000_000
#: Entries of each other list.
MOST_ENTRIES = 200
#: The longest wait that a rule may ask for.
MOST_WAIT_MS = 30 * 24 * 3_600_000
_UNITS_MS = {"h": 3_600_000, "d": 24 * 3_600_000}
#: Of a sentence that a rule says, once its facts are in it.
LONGEST_REASON = 4_000
#: How deep a text nests: a rule within the rules.
_DEEPEST = 4
_FIX = "docs/reference/policy.md shows every key and fact"


class Preset(enum.StrEnum):
    """The policies that come with this release, the mildest first."""

    OPEN = "open"
    GUARDED = "guarded"
    STRICT = "strict"

    @property
    def summary(self) -> str:
        """What it means for authors, as its file begins."""
        lines = _PRESETS[self].splitlines()
        return " ".join(
            line.removeprefix("# ") for line in takewhile(lambda line: line.startswith("#"), lines)
        )


_PRESETS = {
    one: (Path(__file__).parent / "policies" / f"{one.value}.yaml").read_text("utf-8") for one in Preset
}
#: The policy where none is chosen.
DEFAULT_POLICY = f"extends: {Preset.OPEN.value}\n"


class Needs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Verdicts that must be there before a skill is published without a reviewer."""

    #: How many judges must have answered; 0 publishes while they are down.
    judges: Annotated[int, msgspec.Meta(ge=0, le=MOST_JUDGES)] = 0
    #: Analysers that must pass it: `bandit`, `semgrep`, remote ones.
    analysers: Annotated[
        tuple[Annotated[str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9-]{0,39}$")], ...],
        msgspec.Meta(max_length=20),
    ] = ()


class WaitText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a rule does that lets a skill wait."""

    #: Hours or days from the first sight of its bytes, such as `12h` or `3d`; at most `30d`.
    wait: Annotated[str, msgspec.Meta(pattern="^[1-9][0-9]{0,2}[hd]$")]

    @property
    def ms(self) -> int:
        return int(self.wait[:-1]) * _UNITS_MS[self.wait[-1]]


class RuleText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule as it is written."""

    #: Lower-case letters, digits and hyphens; a rule of the same name in what is extended is replaced.
    name: Annotated[str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9-]{0,59}$")]
    #: An expression over the facts that is true or false.
    when: str
    #: What happens to a skill that it matches: `refuse`, `review`, `{wait: 3d}` or `note`.
    then: RuleEffect | WaitText
    #: The sentence for the author and the reviewer; `{…}` is an expression over the facts.
    say: Annotated[str, msgspec.Meta(max_length=1_000)] = ""

    @property
    def effect(self) -> str:
        """What it does, in a word, or in two where it waits."""
        return f"wait {self.then.wait}" if isinstance(self.then, WaitText) else self.then.value


class PolicyText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of a policy."""

    #: A preset whose rules and lists this one adds to.
    extends: Preset | None = None
    #: Owners whose skills count as a trusted vendor's, such as `github.com/acme`.
    trusted: Annotated[
        tuple[Annotated[str, msgspec.Meta(pattern=r"^[^\s/]+/[^\s/]+$")], ...],
        msgspec.Meta(max_length=MOST_ENTRIES),
    ] = ()
    #: Verdicts that must be there before a skill is published without a reviewer; asked before the rules.
    needs: Needs = Needs()
    #: Hosts that never count as unknown, such as `pkg.corp.example` or `*.corp.example`.
    own_hosts: Annotated[
        tuple[Annotated[str, msgspec.Meta(pattern=r"^(\*\.)?[a-z0-9.-]{1,253}$")], ...],
        msgspec.Meta(max_length=MOST_ENTRIES),
    ] = ()
    #: All are looked at, and the strictest that matches counts.
    rules: Annotated[tuple[RuleText, ...], msgspec.Meta(max_length=MOST_RULES)] = ()


_IN_BRACES = r"\{([^{}]*)\}"


def expressions_in(sentence: str) -> list[str]:
    """What a rule's sentence asks the facts for."""
    return list(re2.findall(_IN_BRACES, sentence))


class _Sentence:
    """A text with expressions in it."""

    def __init__(self, text: str) -> None:
        pieces = re2.split(_IN_BRACES, text)
        self._texts = pieces[::2]
        self._expressions = [Expression(source) for source in pieces[1::2]]
        if any("{" in one or "}" in one for one in self._texts):
            raise ExpressionError("a { has no }, or the other way round")
        self.steps = sum(one.steps for one in self._expressions)

    def say(self, context: Any) -> str:
        values = [_shown(one.evaluate(context)) for one in self._expressions]
        said = "".join(text + value for text, value in zip(self._texts, [*values, ""], strict=True))
        return " ".join(said.split())[:LONGEST_REASON]


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


class PolicyRule:
    """A rule, compiled."""

    def __init__(self, text: RuleText, when: Expression, say: _Sentence) -> None:
        self.text = text
        self._when, self._say = when, say
        self._signals = tuple(
            kind for kind in SignalKind if f"signals.{kind.value.replace('-', '_')}" in text.when
        )

    def is_ruled_out(self, context: Any) -> bool:
        """Whether it certainly does not match."""
        try:
            return not self._when.evaluate(context)
        except Exception:  # noqa: BLE001 - `match` says what is wrong with it
            return False

    def match(self, context: Any, to_say: Callable[[], Any] | None = None) -> MatchedRule | None:
        """None where it does not match. What cannot be evaluated asks for a reviewer: unknown is not harmless. `to_say`
        makes the context of its sentence, where that is another one."""
        name = self.text.name
        try:
            if not self._when.evaluate(context):
                return None
            reason = self._say.say(to_say() if to_say else context) or f"the rule {name} applies"
            then = self.text.then
            if isinstance(then, WaitText):
                return MatchedRule(name, RuleEffect.WAIT, reason, self._signals, then.ms)
            return MatchedRule(name, then, reason, self._signals)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a rule, the decision goes on
            reason = f"rule {name} could not be evaluated: {describe_failure(error)}"
            return MatchedRule(name, RuleEffect.REVIEW, reason, self._signals, failed=True)


class Policy:
    """A policy with all that it extends."""

    def __init__(self, text: str, keys: PolicyText, rules: dict[str, PolicyRule]) -> None:
        self.text, self.keys, self.rules = text, keys, rules
        whole = msgspec.json.encode((keys, [rule.text for rule in rules.values()]))
        #: Names what decides: the keys and rules, those that it extends included.
        self.digest = hashlib.sha256(whole).hexdigest()
        listed = (place.partition("/") for place in keys.trusted)
        self._trusted = {Identity(host.lower(), owner, "_").repo_key for host, _, owner in listed}

    def trusts(self, identity: Identity) -> bool:
        """Whether the operator trusts this owner on this host."""
        return Identity(identity.host, identity.owner, "_").repo_key in self._trusted

    def owns(self, host: str) -> bool:
        """Whether it is one of the operator's own hosts."""
        name = host.lower().rstrip(".").partition(":")[0]
        return any(
            name.endswith(one[1:]) if one.startswith("*.") else name == one for one in self.keys.own_hosts
        )


def match_rules(policy: Policy, facts: Facts) -> tuple[MatchedRule, ...]:
    """Every rule that matches, in the order in which they are written."""
    context = context_of(facts)
    found = (rule.match(context) for rule in policy.rules.values())
    return tuple(one for one in found if one is not None)


@lru_cache(maxsize=16)
def load_policy(text: str) -> Policy:
    """Read and compile a text; InvalidInput names line and column of what is wrong. A text without rules is valid, and
    adds nothing to the table."""
    keys, places = _read_keys(text)
    base = None if keys.extends is None else load_policy(_PRESETS[keys.extends])
    rules = dict(base.rules) if base else {}
    own: set[str] = set()
    steps = 0
    for at, rule in enumerate(keys.rules):
        path = f"$.rules[{at}]"
        if rule.name in own:
            raise _invalid(
                places[f"{path}.name"], f"there are two rules {rule.name}", "give each its own name"
            )
        own.add(rule.name)
        _check_wait(rule, path, places)
        key = "when"
        try:
            when = Expression(rule.when, is_condition=True)
            key = "say"
            sentence = _Sentence(rule.say)
        except ExpressionError as error:
            problem = f"`{key}` of the rule {rule.name}: {error}"
            raise _invalid(places[f"{path}.{key}"], problem, _FIX) from None
        steps += when.steps + sentence.steps
        if steps > MOST_STEPS:
            problem = (
                f"up to the rule {rule.name}, the rules take too many steps for a skill that can do much"
            )
            raise _invalid(places[path], problem, "use fewer macros, and nest them as little as possible")
        rules[rule.name] = PolicyRule(rule, when, sentence)
    return Policy(text, _join(base.keys if base else PolicyText(), keys), rules)


def _check_wait(rule: RuleText, path: str, places: dict[str, "_Place"]) -> None:
    if rule.then is RuleEffect.WAIT:
        problem = f"the rule {rule.name} does not say how long it waits"
        raise _invalid(places[f"{path}.then"], problem, "write then: {wait: 3d}")
    if isinstance(rule.then, WaitText) and rule.then.ms > MOST_WAIT_MS:
        problem = f"the rule {rule.name} waits for {rule.then.wait}, and 30d are allowed"
        raise _invalid(places[f"{path}.then.wait"], problem, "write 30d or less")


def _join(base: PolicyText, own: PolicyText) -> PolicyText:
    """The keys that are no rules: lists are joined, and of what is needed the more counts."""
    analysers = _joined(base.needs.analysers, own.needs.analysers)
    return PolicyText(
        trusted=_joined(base.trusted, own.trusted),
        needs=Needs(max(base.needs.judges, own.needs.judges), analysers),
        own_hosts=_joined(base.own_hosts, own.own_hosts),
    )


def _joined(base: tuple[str, ...], own: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*base, *own)))


# The text: from the events of YAML to plain data, and where each value stands. Values are built here, so nothing that a
# policy never needs is constructed.

#: Line and column, from 1.
_Place = tuple[int, int]
#: How `msgspec` ends a message about a value in a document.
_AT = re2.compile(r"(?s)^(.*?)(?: - at `(\$[^`]*)`)?$")


def _read_keys(text: str) -> tuple[PolicyText, dict[str, _Place]]:
    if len(text) > LONGEST_TEXT:
        raise _invalid((1, 1), f"it has {len(text)} characters, and {LONGEST_TEXT} are allowed", "shorten it")
    reader = _Reader(text)
    data = reader.read()
    try:
        return msgspec.convert(data, PolicyText, strict=False), reader.places
    except msgspec.ValidationError as error:
        found = _AT.match(str(error))
        problem, path = (found[1], found[2] or "$") if found else (str(error), "$")
        raise _invalid(
            reader.places.get(path, (1, 1)), f"{problem} at {path[2:] or 'the top'}", _FIX
        ) from None


class _Reader:
    """One pass over the events of a text."""

    def __init__(self, text: str) -> None:
        #: By path, as `msgspec` names it.
        self.places: dict[str, _Place] = {"$": (1, 1)}
        self._events = self._plain_events(text)

    def read(self) -> object:
        """The one document of the text; without one, no keys."""
        first = next(self._events, None)
        data = {} if first is None else self._node(first, "$", 0)
        for event in self._events:
            raise _invalid(_place(event), "the policy goes on after its one document", "remove the rest")
        return {} if data == "" else data

    def _plain_events(self, text: str) -> Iterator[yaml.Event]:
        try:
            for event in yaml.parse(text, Loader=yaml.CBaseLoader):
                if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
                    raise _invalid(_place(event), "the policy uses an alias (& or *)", "write the value out")
                if isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
                    yield event
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            fix = "put quotes around a value that holds ': ', '#', or begins with a special character"
            raise _invalid(place, f"it is not valid YAML ({error.problem})", fix) from None
        except yaml.YAMLError:
            raise _invalid((1, 1), "it holds a character that YAML forbids", "remove it") from None

    def _node(self, event: yaml.Event, path: str, depth: int) -> object:
        self.places[path] = _place(event)
        if isinstance(event, yaml.ScalarEvent):
            return event.value
        if depth >= _DEEPEST:
            raise _invalid(_place(event), f"the policy nests deeper than {_DEEPEST}", "flatten it")
        return (
            self._table(path, depth) if isinstance(event, yaml.MappingStartEvent) else self._list(path, depth)
        )

    def _table(self, path: str, depth: int) -> dict[str, object]:
        items: dict[str, object] = {}
        for event in self._events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            if not isinstance(event, yaml.ScalarEvent):
                raise _invalid(_place(event), "a key is not plain text", "write a word before the ':'")
            if event.value in items:
                raise _invalid(
                    _place(event), f"the key {event.value[:80]} is there twice", "keep one of them"
                )
            items[event.value] = self._node(next(self._events), f"{path}.{event.value}", depth + 1)
        return items

    def _list(self, path: str, depth: int) -> list[object]:
        items: list[object] = []
        for event in self._events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            items.append(self._node(event, f"{path}[{len(items)}]", depth + 1))
        return items


def _place(event: yaml.Event) -> _Place:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


def _invalid(place: _Place, problem: str, fix: str) -> InvalidInput:
    line, column = place
    return InvalidInput(
        f"Line {line}, column {column}: {problem}.", field="text", fix=fix, line=line, column=column
    )
