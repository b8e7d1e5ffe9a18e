"""A policy tried on decisions that were made before: what it would do with each skill, beside another policy. Pure; the
facts are those of the day of the decision."""

import enum
from typing import Any

import msgspec

from vskill_core.identity import Identity
from vskill_platform.domain.signals import NEEDS_RULE, MatchedRule, RuleEffect
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.verdicts.expressions import context_of
from vskill_platform.domain.verdicts.facts import CapabilityFacts, CardFacts, Facts
from vskill_platform.domain.verdicts.policy import Policy

#: By the text of a rule; None where it does not match.
_Answers = dict[object, MatchedRule | None]


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
    """Policies that are asked about the same skills. Only what their rules name is handed over, which is most of what a
    trial costs, and a rule that several of them have is asked once."""

    def __init__(self, *policies: Policy) -> None:
        self._policies = policies
        rules = {rule.text for one in policies for rule in one.rules.values()}
        words = " ".join(f"{rule.when} {rule.say}" for rule in rules)
        parts = (*CardFacts.__struct_fields__, *CapabilityFacts.__struct_fields__)
        self._facts = [name for name in Facts.__struct_fields__ if name in words]
        self._card = frozenset(name for name in parts if name in words)

    def outcomes(self, floor: State, facts: Facts, owner: Identity | None = None) -> tuple[TriedPolicy, ...]:
        """What each policy does. `floor` is what the table says without rules.

        What `trusted` changes about findings, and what analysers would say, is not known afterwards."""
        asked: list[tuple[Facts, Any, _Answers]] = []
        tried: list[TriedPolicy] = []
        for policy in self._policies:
            seen = _as_seen_by(policy, facts, owner)
            known = next((one for one in asked if one[0] == seen), None)
            if known is None:
                known = (seen, context_of(self._named(seen)), {})
                asked.append(known)
            tried.append(_ask(policy, floor, *known))
        return tuple(tried)

    def _named(self, facts: Facts) -> dict[str, Any]:
        data = {name: msgspec.to_builtins(getattr(facts, name)) for name in self._facts}
        for card in ("card", "gained"):
            for kind, entries in data.get(card, {}).items():
                kept = entries if kind in self._card else ()
                data[card][kind] = [
                    {field: one[field] for field in one if field in self._card} for one in kept
                ]
        return data


def _ask(policy: Policy, floor: State, facts: Facts, context: Any, answers: _Answers) -> TriedPolicy:
    """What the policy does, by the rules that have answered and those that are asked now."""
    for rule in policy.rules.values():
        if rule.text not in answers:
            answers[rule.text] = rule.match(context)
    found = (answers[rule.text] for rule in policy.rules.values())
    matched = [one for one in found if one is not None]
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
