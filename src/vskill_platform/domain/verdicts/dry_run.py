"""A policy tried on decisions that were made before: what it would do with each skill, beside another policy. Pure; the
facts are those of the day of the decision."""

import enum
from collections.abc import Iterable
from functools import partial
from typing import Any

import msgspec
import re2

from vskill_core.identity import Identity
from vskill_platform.domain.signals import NEEDS_RULE, MatchedRule, RuleEffect
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.verdicts.expressions import context_of
from vskill_platform.domain.verdicts.facts import CardFacts, Facts
from vskill_platform.domain.verdicts.policy import Policy, PolicyRule, RuleText, expressions_in

#: Different facts, as far as rules name them, whose answers are kept: most skills have those of many others.
_MOST_KEPT = 1_000
_MACRO = r"(?:all|exists|exists_one|filter|map)\("
#: Facts with fields, and what follows them where an expression reads single fields of them.
_FIELD_USES = {
    "(?:card|gained)": rf"\.\w+\.{_MACRO}",
    "(?:findings|analysers)": rf"\.{_MACRO}",
    "(?:skill|owner|source|publisher|judge|signals)": r"\.\w",
}
_LISTS = re2.compile(r"[^.\w](card|gained|)\.?(\w+)\.(all|exists|exists_one|filter|map)\(\s*(\w+)\s*,")
_FIELDS = re2.compile(r"[^.\w](skill|owner|source|publisher|judge|signals)\.(\w+)")


class PolicyOutcome(enum.StrEnum):
    """What a policy does with a skill that the decision table does not stop, the mildest first."""

    PUBLISHED = "published"
    #: it waits for a time
    DELAYED = "delayed"
    #: it waits for a reviewer
    HELD = "held"
    REFUSED = "refused"


class TriedPolicy(msgspec.Struct, frozen=True):
    """What one policy does with one skill, and the rules that make it so."""

    outcome: PolicyOutcome
    rules: tuple[MatchedRule, ...] = ()


class PolicyTrial:
    """Policies that are asked about the same skills. A rule that several of them have is asked once, and what rules ask
    facts for alike is asked once for all skills."""

    def __init__(self, *policies: Policy) -> None:
        rules: dict[RuleText, PolicyRule] = {}
        for policy in policies:
            for rule in policy.rules.values():
                rules.setdefault(rule.text, rule)
        self._policies = [(one, [rules[rule.text] for rule in one.rules.values()]) for one in policies]
        self._rules = tuple(rules.values())
        self._asked = _Handed([rule.text.when for rule in self._rules])
        self._said = {rule: _Handed(expressions_in(rule.text.say)) for rule in self._rules}
        #: By facts as they are handed over: these, and the rules that they do not rule out.
        self._kept: dict[bytes, tuple[Any, list[PolicyRule]]] = {}

    def outcomes(self, floor: State, facts: Facts, owner: Identity | None = None) -> tuple[TriedPolicy, ...]:
        """What each policy does. `floor` is what the table says without rules.

        What `trusted` changes about findings, and what analysers would say, is not known afterwards."""
        asked: list[tuple[Facts, dict[PolicyRule, MatchedRule | None]]] = []
        tried: list[TriedPolicy] = []
        for policy, rules in self._policies:
            seen = _as_seen_by(policy, facts, owner)
            answers = next((answers for one, answers in asked if one == seen), None)
            if answers is None:
                answers = self._answers(seen)
                asked.append((seen, answers))
            matched = [one for rule in rules if (one := answers.get(rule)) is not None]
            tried.append(_outcome(policy, floor, seen, matched))
        return tuple(tried)

    def _answers(self, facts: Facts) -> dict[PolicyRule, MatchedRule | None]:
        """Of the rules that may match."""
        handed = self._asked.of(facts)
        key = msgspec.json.encode(handed)
        if key not in self._kept:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            context = context_of(handed)
            self._kept[key] = context, [rule for rule in self._rules if not rule.is_ruled_out(context)]
        context, rules = self._kept[key]
        return {rule: rule.match(context, partial(self._say_context, rule, facts)) for rule in rules}

    def _say_context(self, rule: PolicyRule, facts: Facts) -> Any:
        return context_of(self._said[rule].of(facts))


class _Handed:
    """Of the facts what some expressions need: handing facts over is most of what a trial costs."""

    def __init__(self, expressions: Iterable[str]) -> None:
        #: Facts that are handed over as they are.
        self._whole: set[str] = set()
        self._fields: dict[str, set[str]] = {}
        #: By the part of the card, if it is one, and the list: fields of its entries, and ways to go through it.
        self._lists: dict[tuple[str, str], tuple[set[str], set[str]]] = {}
        for one in expressions:
            # So that no name is at the beginning.
            text = f" {one}"
            if not _reads_fields(text):
                self._whole |= set(Facts.__struct_fields__)
            self._whole |= {"submitter", "now"}.intersection(re2.findall(r"\w+", text))
            for name, field in _FIELDS.findall(text):
                self._fields.setdefault(name, set()).add(field)
            for section, name, macro, entry in _LISTS.findall(text):
                if section or name in Facts.__struct_fields__:
                    fields, macros = self._lists.setdefault((section, name), (set(), set()))
                    fields.update(re2.findall(rf"[^.\w]{entry}\.(\w+)", text))
                    macros.add(macro)

    def of(self, facts: Facts) -> dict[str, Any]:
        handed: dict[str, Any] = {name: getattr(facts, name) for name in self._whole}
        if len(handed) == len(Facts.__struct_fields__):
            return handed
        for name, fields in self._fields.items():
            fact = getattr(facts, name)
            handed[name] = {field: getattr(fact, field) for field in fields}
        for (section, name), (fields, macros) in self._lists.items():
            holder, into = (
                (getattr(facts, section), handed.setdefault(section, {})) if section else (facts, handed)
            )
            entries: Iterable[tuple[Any, ...]] = (
                tuple([getattr(one, field) for field in fields]) for one in getattr(holder, name)
            )
            # One of several equal ones is enough where nobody counts.
            entries = dict.fromkeys(entries) if macros <= {"all", "exists"} else entries
            into[name] = [dict(zip(fields, one, strict=True)) for one in entries]
        return handed


def _reads_fields(text: str) -> bool:
    """Whether it reads single fields alone: nothing is compared, measured or listed whole."""
    uses = {name: rf"[^.\w]{name}{use}" for name, use in _FIELD_USES.items()}
    for name in re2.findall(rf"\.{_MACRO}\s*(\w+)\s*,", text):
        uses[name] = rf"(?:\.{_MACRO}\s*{name}\b|[^.\w]{name}\.)"
    return all(
        len(re2.findall(rf"[^.\w]{name}\b", text)) == len(re2.findall(use, text))
        for name, use in uses.items()
    )


def _outcome(policy: Policy, floor: State, facts: Facts, matched: list[MatchedRule]) -> TriedPolicy:
    refusing = tuple(one for one in matched if one.then is RuleEffect.REFUSE)
    if refusing:
        return TriedPolicy(PolicyOutcome.REFUSED, refusing)
    holding = [one for one in matched if one.then is not RuleEffect.NOTE]
    if facts.judge.answered < policy.keys.needs.judges:
        reason = f"it needs {policy.keys.needs.judges} judges, and {facts.judge.answered} answered"
        holding.append(MatchedRule(NEEDS_RULE, RuleEffect.REVIEW, reason))
    if floor is not State.AUTO_APPROVED or any(one.then is RuleEffect.REVIEW for one in holding):
        return TriedPolicy(PolicyOutcome.HELD, tuple(holding))
    return TriedPolicy(PolicyOutcome.DELAYED if holding else PolicyOutcome.PUBLISHED, tuple(holding))


def _as_seen_by(policy: Policy, facts: Facts, owner: Identity | None) -> Facts:
    """The facts with what this policy adds: its own hosts are known, and owners whom it trusts are vouched for."""
    if policy.keys.own_hosts:
        card, gained = (_with_own_hosts(policy, one) for one in (facts.card, facts.gained))
        facts = msgspec.structs.replace(facts, card=card, gained=gained)
    if owner is not None and policy.trusts(owner) and not facts.owner.trusted:
        trusted = msgspec.structs.replace(facts.owner, trusted=True, vouched=not facts.owner.blocks)
        facts = msgspec.structs.replace(facts, owner=trusted)
    return facts


def _with_own_hosts(policy: Policy, card: CardFacts) -> CardFacts:
    hosts = tuple(
        msgspec.structs.replace(one, known=one.known or policy.owns(one.value)) for one in card.hosts
    )
    return msgspec.structs.replace(card, hosts=hosts)
