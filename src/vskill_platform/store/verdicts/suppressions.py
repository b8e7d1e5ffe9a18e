"""Suppressions: rules that do not count for one content, because a reviewer found them wrong about it. Each is bound to
the rule and the digest, so a change of any byte ends it. `actions.verdicts.suppressions` decides which rules may be
suppressed.

The record keeps who did it, when and why, also after the rule counts again.
"""

import msgspec

from vskill_core.errors import NotFound
from vskill_platform.domain import keys
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.records import decode, decode_readable, entries_of, iter_entries, persist, read_record
from vskill_platform.store.people.audit import record_audit
from vskill_platform.store.verdicts.rule_figures import count_decided
from vskill_platform.submission_store import require_reason
from vskill_platform.worker_context import require_env


class SuppressionStep(msgspec.Struct, frozen=True):
    """One change of a suppression."""

    #: `added` or `removed`
    action: str
    by: str
    at: int
    #: never empty
    reason: str


class Suppression(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `suppress:{digest}:{rule}`."""

    digest: str
    rule_id: str
    active: bool
    #: oldest first, never shortened
    history: tuple[SuppressionStep, ...]


class SuppressionPage(msgspec.Struct, frozen=True):
    """A page of suppressions; `skipped` records could not be read, and are in the log by key."""

    items: tuple[Suppression, ...]
    after: str | None = None
    skipped: int = 0


async def add_suppression(digest: str, rule_id: str, *, by: str, reason: str) -> Suppression:
    """From now on the rule does not count for this content. Once more changes nothing."""
    return await _change(digest, rule_id, active=True, by=by, reason=reason)


async def remove_suppression(digest: str, rule_id: str, *, by: str, reason: str) -> Suppression:
    """The rule counts again; NotFound where it was not suppressed."""
    return await _change(digest, rule_id, active=False, by=by, reason=reason)


#: There are none or a few, and every decision asks: so few are read without the detour that a long list takes.
_PAGE = 20


async def list_suppressions(digest: str) -> list[Suppression]:
    """Every suppression of this content by rule, also those that ended."""
    entries = iter_entries(keys.suppress.under(digest), page=_PAGE)
    return [decode(entry, Suppression) async for entry in entries]


async def page_suppressions(after: str | None, limit: int) -> SuppressionPage:
    """Suppressions of every content, by digest and rule."""
    page = await require_env("kv").kv.scan(keys.suppress.prefix, after=after, limit=limit)
    items = decode_readable(entries_of(page), Suppression, "suppressions")
    return SuppressionPage(tuple(items), page.after, len(page.items) - len(items))


async def suppressed_rules(digest: str) -> frozenset[str]:
    """The rules that do not count for this content. A read that fails raises: unknown is not "none"."""
    return frozenset(one.rule_id for one in await list_suppressions(digest) if one.active)


async def _change(digest: str, rule_id: str, *, active: bool, by: str, reason: str) -> Suppression:
    key = keys.suppress(digest, rule_id)
    require_reason(reason)

    async def write() -> Suppression:
        known, version = await read_record(key, Suppression)
        if known is None and not active:
            raise NotFound(f"Rule {rule_id} is not suppressed for {digest}.", digest=digest, rule=rule_id)
        if known is not None and known.active is active:
            return known
        now = require_env("kv").kv.now()
        step = SuppressionStep("added" if active else "removed", by, now, reason)
        changed = Suppression(digest, rule_id, active, (*(known.history if known else ()), step))

        action = "suppress" if active else "unsuppress"
        audit = record_audit(action, rule_id, by=by, reason=reason, details={"digest": digest})
        # A suppression says that the rule was wrong here; removing it takes that back.
        counted = count_decided([rule_id], agreed=False, n=1 if active else -1)
        await require_env("kv").kv.commit([Put(key, msgspec.json.encode(changed), version), *audit, *counted])
        return changed

    return await persist(write)
