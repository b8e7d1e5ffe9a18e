"""A policy tried on decisions that were made before: what it would do with each skill, beside another policy. Pure; the
facts are those of the day of the decision."""

import enum
from collections.abc import Sequence
from typing import Any

import msgspec

from vskill_core.identity import Identity
from vskill_platform.domain.signals import MatchedRule, RuleEffect
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.verdicts.expressions import context_of
from vskill_platform.domain.verdicts.facts import CapabilityFacts, CardFacts, Facts
from vskill_platform.domain.verdicts.policy import Policy


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


class PolicyDifference:
    """Two policies, and a quick answer where they cannot differ: only rules that one of them alone has are asked then,
    and only what these name is handed over, which is most of what a trial costs."""

    def __init__(self, before: Policy, after: Policy) -> None:
        self.policies = (before, after)
        texts = [{rule.text for rule in one.rules.values()} for one in self.policies]
        shared = texts[0] & texts[1]
        self._own = [rule for one in self.policies for rule in one.rules.values() if rule.text not in shared]
        words = " ".join(f"{rule.text.when} {rule.text.say}" for rule in self._own)
        parts = (*CardFacts.__struct_fields__, *CapabilityFacts.__struct_fields__)
        self._facts = [name for name in Facts.__struct_fields__ if name in words]
        self._card = frozenset(name for name in parts if name in words)

    def is_same(self, facts: Facts) -> bool:
        """Whether both surely do the same with this skill."""
        if self.policies[0].keys != self.policies[1].keys:
            return False
        context = context_of(self._named(facts))
        return not any(rule.match(context) for rule in self._own)

    def _named(self, facts: Facts) -> dict[str, Any]:
        data = {name: msgspec.to_builtins(getattr(facts, name)) for name in self._facts}
        for card in ("card", "gained"):
            for kind, entries in data.get(card, {}).items():
                kept = entries if kind in self._card else ()
                data[card][kind] = [
                    {field: one[field] for field in one if field in self._card} for one in kept
                ]
        return data


def try_policies(
    policies: Sequence[Policy], floor: State, facts: Facts, owner: Identity | None = None
) -> tuple[TriedPolicy, ...]:
    """What each policy does. `floor` is what the table says without rules. A rule that several policies have is asked
    once, by one handing-over of the facts.

    What `trusted` changes about findings, and what analysers would say, is not known afterwards."""
    contexts: list[tuple[Facts, Any, dict[object, MatchedRule | None]]] = []
    tried: list[TriedPolicy] = []
    for policy in policies:
        seen = _as_seen_by(policy, facts, owner)
        known = next((one for one in contexts if one[0] == seen), None)
        if known is None:
            known = (seen, context_of(seen), {})
            contexts.append(known)
        _, context, answers = known
        for rule in policy.rules.values():
            if rule.text not in answers:
                answers[rule.text] = rule.match(context)
        found = [answers[rule.text] for rule in policy.rules.values()]
        tried.append(_decide(policy, floor, facts, [one for one in found if one is not None]))
    return tuple(tried)


def _decide(policy: Policy, floor: State, facts: Facts, matched: list[MatchedRule]) -> TriedPolicy:
    refusing = tuple(one for one in matched if one.then is RuleEffect.REFUSE)
    if refusing:
        return TriedPolicy(PolicyOutcome.REFUSED, refusing)
    holding = [one for one in matched if one.then is not RuleEffect.NOTE]
    if facts.judge.answered < policy.keys.needs.judges:
        reason = f"it needs {policy.keys.needs.judges} judges, and {facts.judge.answered} answered"
        holding.append(MatchedRule("needs", RuleEffect.REVIEW, reason))
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
