"""What a decision keeps of the policy, in its own commit: the facts that its rules were asked about, and the counters
of those that matched. Another policy is tried on facts; they name accounts, so only admins read them, and they end."""

import msgspec

from vskill_platform.domain import keys
from vskill_platform.domain.signals import RecordedRule
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.domain.verdicts.facts import Facts
from vskill_platform.ledger.kv.entries import Operation, Put
from vskill_platform.store.verdicts.policy import PolicyInForce
from vskill_platform.store.verdicts.policy_figures import count_matched
from vskill_platform.store.verdicts.rule_figures import count_fired
from vskill_platform.worker_context import require_env

#: Of an encoded record.
MOST_BYTES = 32_768
#: Half a year: what a policy is tried on by default, twice.
KEPT_MS = 180 * 86_400_000


class DecidedFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `facts:{submission}:{run}`."""

    at: int
    #: What the decision table says without a rule: AUTO_APPROVED or NEEDS_REVIEW.
    floor: State
    facts: Facts
    #: Of the content, and of the scan: all findings and the whole card are stored under them.
    digest: str = ""
    ruleset: str = ""
    #: Lists of the facts that lost their end, because the record would be too large.
    cut: tuple[str, ...] = ()


class AskedPolicy(msgspec.Struct, frozen=True):
    """The policy as one decision asked it."""

    in_force: PolicyInForce
    floor: State
    matched: tuple[RecordedRule, ...] = ()
    #: None where no rule could change the decision.
    facts: Facts | None = None
    #: Rules that an earlier decision of this run has counted.
    counted: frozenset[str] = frozenset()

    async def writes(self, record: Submission) -> tuple[Operation, ...]:
        """To commit with the decision. Raises PolicyChanged where another policy is in force by now."""
        asserted = await self.in_force.assert_unchanged()
        new = [rule for rule in self.matched if rule.name not in self.counted]
        counted = count_matched(record, new, self.in_force.policy.digest)
        return (asserted, *count_fired(record), *counted, *self._facts_write(record))

    def _facts_write(self, record: Submission) -> tuple[Put, ...]:
        if self.facts is None:
            return ()
        ruleset = record.evidence.ruleset if record.evidence is not None else ""
        now = require_env("kv").kv.now()
        stored = DecidedFacts(now, self.floor, self.facts, record.digest or "", ruleset)
        key = keys.facts(record.id, str(record.run))
        return (Put(key, encode_facts(stored), quiet=True, ttl_ms=KEPT_MS),)


def counted_rules(record: Submission) -> frozenset[str]:
    """The rules that the decision has counted after which this run waited."""
    decided = record.decision if record.cooled_by else None
    return frozenset(rule.name for rule in decided.matched) if decided is not None else frozenset()


def encode_facts(stored: DecidedFacts) -> bytes:
    """The record within its bounds. The longest list is halved as long as it is too large; of texts, which have bounds
    of their own, nothing is cut."""
    encoded = msgspec.json.encode(stored)
    while len(encoded) > MOST_BYTES:
        facts = stored.facts
        lists = {("", "findings"): facts.findings} | {
            (card, name): getattr(getattr(facts, card), name)
            for card in ("card", "gained")
            for name in facts.card.__struct_fields__
        }
        (card, name), longest = max(lists.items(), key=lambda one: len(msgspec.json.encode(one[1])))
        if not longest:
            break
        kept = {name: longest[: len(longest) // 2]}
        changed = {card: msgspec.structs.replace(getattr(facts, card), **kept)} if card else kept
        cut = tuple(sorted({*stored.cut, f"{card}.{name}" if card else name}))
        stored = msgspec.structs.replace(stored, facts=msgspec.structs.replace(facts, **changed), cut=cut)
        encoded = msgspec.json.encode(stored)
    return encoded
