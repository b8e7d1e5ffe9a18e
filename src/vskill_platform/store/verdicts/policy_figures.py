"""How often each rule of the policy matched, failed, and had reviewers agree: a counter a day, raised by the commits in
which a run is decided and in which a reviewer decides. Each is of one audience, so that readers get the numbers of what
they may read."""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta

import msgspec

from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import Audiences, may_read
from vskill_platform.domain.signals import RecordedRule, RuleEffect
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.ledger.kv.entries import Add
from vskill_platform.records import entries_of, read_count
from vskill_platform.store.verdicts.policy import read_policy
from vskill_platform.worker_context import require_env

#: What `/policy` shows.
DAYS = 30
MATCHED, AGREED, DISAGREED, FAILED = "matched", "agreed", "disagreed", "failed"


class PolicyFigures(msgspec.Struct, frozen=True):
    """The counters of one rule."""

    #: runs that it matched
    matched: int = 0
    #: of what it sent to a reviewer or refused: what a reviewer rejected, and what one approved
    agreed: int = 0
    disagreed: int = 0


def count_matched(record: Submission, rules: Collection[RecordedRule], digest: str) -> tuple[Add, ...]:
    """For the commit that decides a run."""
    found = [(rule.name, MATCHED) for rule in rules]
    found += [(rule.name, _failed(digest)) for rule in rules if rule.failed]
    return _adds(found, record)


def count_answered(record: Submission, *, agreed: bool) -> tuple[Add, ...]:
    """For the commit in which a reviewer decides: their word on the rules that held the submission."""
    rules = record.decision.matched if record.decision is not None else ()
    what = AGREED if agreed else DISAGREED
    return _adds([(rule.name, what) for rule in rules if rule.then is not RuleEffect.NOTE], record)


def _adds(counted: Iterable[tuple[str, str]], record: Submission) -> tuple[Add, ...]:
    """Each once, in one order for every writer."""
    day = _day(0)
    return tuple(
        Add(keys.policy_figure(day, rule, what, record.audience)) for rule, what in sorted(set(counted))
    )


def _day(back: int) -> str:
    now = require_env("kv").kv.now()
    return (datetime.fromtimestamp(now / 1000, UTC).date() - timedelta(days=back)).isoformat()


def _failed(digest: str) -> str:
    return f"{FAILED}-{digest[:12]}"


async def read_policy_figures(audiences: Audiences) -> dict[str, PolicyFigures]:
    """Of every rule that matched something of these audiences within 30 days."""
    counts: dict[str, dict[str, int]] = {}
    for rule, what, audience, count in await _read_since(DAYS - 1):
        if what in PolicyFigures.__struct_fields__ and may_read(audience, audiences):
            figures = counts.setdefault(rule, {})
            figures[what] = figures.get(what, 0) + count
    return {rule: PolicyFigures(**figures) for rule, figures in counts.items()}


async def find_failing_rules() -> tuple[str, ...]:
    """Rules that could not be evaluated yesterday or today under the policy that is in force now; or why that cannot be
    used at all."""
    in_force = await read_policy()
    if in_force.problem:
        return ("policy",)
    failed = _failed(in_force.policy.digest)
    return tuple(sorted({rule for rule, what, *_ in await _read_since(1) if what == failed}))


async def _read_since(days: int) -> list[tuple[str, str, str, int]]:
    """Rule, what, audience and count of each counter since so many days ago."""
    found: list[tuple[str, str, str, int]] = []
    kv, since = require_env("kv").kv, keys.policy_figure.under(_day(days))
    async for page in iterate_pages(kv, keys.policy_figure.prefix, after=since):
        for entry in entries_of(page):
            _, rule, what, audience = keys.parse(entry.key).parts
            found.append((rule, what, audience, read_count(entry)))
    return found
