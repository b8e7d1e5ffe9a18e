"""A policy tried on decisions that were made before: what it would do with each skill, beside another policy. Pure; the
facts are those of the day of the decision."""

import enum
from collections.abc import Iterable
from functools import partial
from typing import Any

import msgspec

from vskill_core.identity import Identity
from vskill_platform.domain.signals import NEEDS_RULE, MatchedRule, RuleEffect
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.verdicts.expressions import context_of, facts_read
from vskill_platform.domain.verdicts.facts import CardFacts, Facts
from vskill_platform.domain.verdicts.policy import Policy, PolicyRule, RuleText, expressions_in

#: Different facts, as far as rules name them, whose answers are kept: most skills have those of many others.
_MOST_KEPT = 1_000


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
        read = [facts_read(one) for one in expressions]
        self._is_whole = None in read
        #: By the path of a fact: its fields, or those of a list's entries, with the ways to go through it.
        self._fields: dict[tuple[str, ...], tuple[set[str], set[str]]] = {}
        for path, fields, macros in (use for uses in read if uses for use in uses):
            known = self._fields.setdefault(path, (set(), set()))
            known[0].update(fields)
            known[1].update(macros)

    def of(self, facts: Facts) -> dict[str, Any]:
        if self._is_whole:
            return {name: getattr(facts, name) for name in Facts.__struct_fields__}
        handed: dict[str, Any] = {}
        for path, (fields, macros) in self._fields.items():
            fact, into = facts, handed
            for name in path[:-1]:
                fact, into = getattr(fact, name), into.setdefault(name, {})
            value = getattr(fact, path[-1])
            if isinstance(value, msgspec.Struct):
                into[path[-1]] = {field: getattr(value, field) for field in fields}
            elif macros:
                found: Iterable[tuple[Any, ...]] = (
                    tuple([getattr(one, field) for field in fields]) for one in value
                )
                # One of several equal ones is enough where nobody counts.
                found = dict.fromkeys(found) if macros <= {"all", "exists"} else found
                into[path[-1]] = [dict(zip(fields, one, strict=True)) for one in found]
            else:
                into[path[-1]] = value
        return handed


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
