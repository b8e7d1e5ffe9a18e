"""A policy tried on stored runs, beside the one in force: the last run of each submission, the newest first, a bounded
number at a time. Runs are read a page at a time and asked about in a thread, so that the process goes on serving."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from vskill_core.identity import Identity
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import Audiences
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.verdicts.dry_run import PolicyOutcome, PolicyTrial, TriedPolicy
from vskill_platform.domain.verdicts.policy import Policy
from vskill_platform.ledger.kv.collections import SUBMISSIONS
from vskill_platform.ledger.kv.entries import Entry
from vskill_platform.ledger.kv.query import Between, Condition, In
from vskill_platform.records import Skips, entries_of, read_entries
from vskill_platform.store.verdicts.stored_facts import DecidedFacts
from vskill_platform.worker_context import require_env

#: Runs that one look goes through: some seconds.
MOST_RUNS = 10_000
#: What is in memory at a time.
PAGE_RUNS = 500
_EVERY_STATE = In(tuple(sorted(State)))
#: What a run ends in that a policy could have held.
_DECIDED = frozenset({State.PUBLISHED, State.NEEDS_REVIEW})


class _There(msgspec.Struct, frozen=True):
    """Of which only matters that it is there."""


class _RunFields(msgspec.Struct, frozen=True):
    """What a trial needs of a submission."""

    id: str
    run: int
    skill_name: str
    identity: Identity
    state: State
    approval: _There | None = None
    evidence: _There | None = None

    @property
    def facts_key(self) -> str:
        return keys.facts(self.id, str(self.run))


class _RunPage(NamedTuple):
    runs: Sequence[_RunFields]
    facts: Mapping[str, Entry]
    after: str | None


class TriedRun(msgspec.Struct, frozen=True):
    """A run that the two policies end differently."""

    submission: str
    run: int
    skill_name: str
    owner: str
    decided_at: int
    before: TriedPolicy
    after: TriedPolicy


class TrialFigures(msgspec.Struct):
    """What a look at stored runs has found so far."""

    tried: int = 0
    #: How many end differently, by how they do by the policy in force and by the other one.
    changes: Counter[tuple[PolicyOutcome, PolicyOutcome]] = msgspec.field(default_factory=Counter)
    different: list[TriedRun] = []
    #: Runs that were decided before facts were kept, or longer ago than they are.
    older: int = 0
    #: Runs whose facts lost the ends of lists.
    cut: int = 0
    #: Runs that end differently because a rule of the other policy cannot be evaluated.
    failed: int = 0
    skipped: int = 0
    #: Where the next look goes on; None at the end.
    after: str | None = None


async def try_on_stored(
    in_force: Policy,
    other: Policy,
    *,
    since: int,
    audiences: Audiences,
    after: str | None = None,
    most: int = MOST_RUNS,
) -> TrialFigures:
    """Decide the runs of submissions that changed since then again, by both policies."""
    env, found = require_env("kv"), TrialFigures(after=after)
    skips = Skips("policy_trial")
    where: dict[str, Condition] = {"state": _EVERY_STATE, "updated_at": Between(least=since)}
    limit, trial = min(most, PAGE_RUNS), PolicyTrial(in_force, other)

    async def read(after: str | None) -> _RunPage:
        page = await env.kv.select(
            SUBMISSIONS.prefix,
            audiences=audiences,
            where=where,
            order_by="updated_at",
            descending=True,
            after=after,
            limit=limit,
        )
        runs = skips.decode_all(entries_of(page), _RunFields)
        return _RunPage(runs, await read_entries(one.facts_key for one in runs), page.after)

    page = await read(after)
    for left in reversed(range(0, most, limit)):
        tried = asyncio.to_thread(_try_page, trial, page, found, skips)
        found.after = page.after
        if not left or page.after is None:
            await tried
            break
        # The next page is read meanwhile.
        page, _ = await asyncio.gather(read(page.after), tried)
    found.skipped = skips.count
    skips.report(env)
    return found


def _try_page(trial: PolicyTrial, page: _RunPage, found: TrialFigures, skips: Skips) -> None:
    for run in page.runs:
        entry = page.facts.get(run.facts_key)
        if entry is None:
            found.older += run.state in _DECIDED and run.evidence is not None and run.approval is None
        elif (stored := skips.decode(entry, DecidedFacts)) is not None:
            _try_run(trial, run, stored, found)


def _try_run(trial: PolicyTrial, run: _RunFields, stored: DecidedFacts, found: TrialFigures) -> None:
    found.tried += 1
    found.cut += bool(stored.cut)
    before, after = trial.outcomes(stored.floor, stored.facts, run.identity)
    if before.outcome is after.outcome:
        return
    found.changes[before.outcome, after.outcome] += 1
    found.failed += any(rule.failed for rule in after.rules)
    owner = stored.facts.owner.name
    found.different.append(TriedRun(run.id, run.run, run.skill_name, owner, stored.at, before, after))
