"""How often each rule fired here, and how often a reviewer agreed with it: counters, raised by the commits in which a
run is decided and in which a reviewer decides. They name rules and nothing else."""

from collections.abc import Iterable

import msgspec

from vskill_platform.domain import keys
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.kv.entries import Add
from vskill_platform.records import iter_entries, read_count

FIRED, AGREED, DISAGREED = "fired", "agreed", "disagreed"
#: So many decisions of reviewers must speak before a rule is called mostly wrong.
ENOUGH_DECISIONS = 3


class RuleFigures(msgspec.Struct, frozen=True):
    """The counters of one rule."""

    #: runs whose content it fired in
    fired: int = 0
    #: what it held and a reviewer rejected
    agreed: int = 0
    #: what it held and a reviewer approved, or suppressed it for
    disagreed: int = 0

    @property
    def is_mostly_wrong(self) -> bool:
        decided = self.agreed + self.disagreed
        return decided >= ENOUGH_DECISIONS and self.disagreed > self.agreed


async def read_rule_figures() -> dict[str, RuleFigures]:
    """Of every rule that has fired or was decided about: three small counters for each."""
    counts: dict[str, dict[str, int]] = {}
    async for entry in iter_entries(keys.rule_figure.prefix):
        rule, what = keys.parse(entry.key).parts
        counts.setdefault(rule, {})[what] = read_count(entry)
    return {rule: RuleFigures(**figures) for rule, figures in counts.items()}


def count_fired(record: Submission) -> tuple[Add, ...]:
    """The rules that fired in a run, for the commit that decides it: each once, in one order for every writer. What has
    waited by a rule of the policy was counted when that began."""
    evidence = None if record.cooled_by else record.evidence
    rules = evidence.rules if evidence is not None and evidence.digest == record.digest else ()
    return tuple(Add(keys.rule_figure(rule, FIRED)) for rule in sorted(rules))


def count_decided(rules: Iterable[str], *, agreed: bool, n: int = 1) -> tuple[Add, ...]:
    """A reviewer's word on rules; `n` of -1 takes it back."""
    what = AGREED if agreed else DISAGREED
    return tuple(Add(keys.rule_figure(rule, what), n) for rule in sorted(set(rules)))


def rules_that_held(record: Submission) -> tuple[str, ...]:
    """The rules that the decision names; codes of errors are in lower case."""
    return tuple(rule for rule in (record.decision.rule_ids if record.decision else ()) if rule.isupper())
