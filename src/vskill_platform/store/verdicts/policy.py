"""The policy in force: one text for all processes at `control:policy`, and where nobody has set one, that of
`VSKILL_POLICY`. The commit of a decision asserts its version, so none rests on a policy that was replaced meanwhile."""

import msgspec

from vskill_core.errors import InvalidInput, TransitionError
from vskill_platform.domain import keys
from vskill_platform.domain.signals import MatchedRule, RuleEffect
from vskill_platform.domain.verdicts.facts import Facts
from vskill_platform.domain.verdicts.policy import Policy, load_policy, match_rules
from vskill_platform.ledger.kv.entries import ABSENT, Assert, Operation, Put
from vskill_platform.records import read_record
from vskill_platform.store.people.audit import AuditNote, commit_audited
from vskill_platform.worker_context import require_env


class StoredPolicy(msgspec.Struct, frozen=True):
    """The record at `control:policy`."""

    text: str
    by: str
    at: int
    reason: str


class PolicyChanged(Exception):
    """Another policy is in force than the one that decided."""


class PolicyInForce(msgspec.Struct, frozen=True):
    """A policy as it was read, and what its decisions assert."""

    policy: Policy
    asserted: Assert
    #: None where the settings say it.
    stored: StoredPolicy | None = None
    #: Why the stored text cannot be used, so that everything goes to a reviewer; empty where it can.
    problem: str = ""

    def match(self, facts: Facts) -> tuple[MatchedRule, ...]:
        """The rules that match; those that fail are counted and logged."""
        if self.problem:
            reason = f"the policy in force cannot be used: {self.problem}"
            return (MatchedRule("policy", RuleEffect.REVIEW, reason, failed=True),)
        matched, env = match_rules(self.policy, facts), require_env("metrics")
        for rule in matched:
            if rule.failed:
                env.metrics.policy_rule_failures.inc()
                env.log.warning(
                    "a rule of the policy could not be evaluated", rule=rule.name, reason=rule.reason
                )
        return matched

    async def assert_unchanged(self) -> Assert:
        """To commit with a decision. Raises PolicyChanged; a change after this look makes that commit fail."""
        entry = await require_env("kv").kv.get(keys.CONTROL_POLICY)
        if (ABSENT if entry is None else entry.version) != self.asserted.version:
            raise PolicyChanged
        return self.asserted


async def read_policy() -> PolicyInForce:
    """The policy that decides now. One that a later release cannot read any more holds everything for a reviewer."""
    stored, version = await read_record(keys.CONTROL_POLICY, StoredPolicy)
    asserted = Assert(keys.CONTROL_POLICY, version)
    text = require_env("settings").policy_text if stored is None else stored.text
    try:
        return PolicyInForce(load_policy(text), asserted, stored)
    except InvalidInput as error:
        return PolicyInForce(load_policy(""), asserted, stored, error.message)


async def plan_policy(text: str, *, by: str, reason: str) -> tuple[PolicyInForce, Put]:
    """The policy that is in force, and what replaces it by a valid text."""
    before = await read_policy()
    stored = StoredPolicy(text, by, require_env("kv").kv.now(), reason)
    return before, Put(keys.CONTROL_POLICY, msgspec.json.encode(stored), before.asserted.version)


async def set_policy(text: str, replaced: str = "", *, by: str, reason: str) -> PolicyInForce:
    """Let a valid text be in force. `replaced` is the digest of the one that it is meant to replace: TransitionError
    where another one is."""
    policy = load_policy(text)
    details: dict[str, str] = {"digest": policy.digest}

    async def write() -> tuple[None, list[Operation]]:
        before, put = await plan_policy(text, by=by, reason=reason)
        if replaced and before.policy.digest != replaced:
            message = "Another policy has been set since: look at that one, and set yours again."
            raise TransitionError(message, digest=before.policy.digest)
        details["replaced"] = before.policy.digest
        return None, [put]

    await commit_audited(AuditNote("policy set", policy.digest, by, reason, details), write)
    return await read_policy()
