"""How often a skill was installed: one counter a day, raised atomically, and nothing about who did it."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from vskill_platform.domain import keys
from vskill_platform.ledger.kv.entries import Add, Entry
from vskill_platform.records import iter_entries, read_count
from vskill_platform.worker_context import require_env


async def count_installs(canonicals: Iterable[str]) -> None:
    """One more install today of each of these skills, which the caller has looked up."""
    kv = require_env("kv").kv
    day = datetime.fromtimestamp(kv.now() / 1000, UTC).date().isoformat()
    await kv.commit([Add(keys.installs(name, day)) for name in dict.fromkeys(canonicals)])


async def count_installs_until_now(canonical: str) -> int:
    """All counters of one skill, today's too, added up: one read."""
    return sum([read_count(entry) async for entry in iter_entries(keys.installs.under(canonical))])


def keys_of_days(canonical: str, days: int) -> dict[str, str]:
    """The keys of the counters of the last days, today's too, by day (`2026-11-16`)."""
    today = datetime.fromtimestamp(require_env("kv").kv.now() / 1000, UTC).date()
    names = ((today - timedelta(days=back)).isoformat() for back in range(days))
    prefix = keys.installs.under(canonical)
    return {day: prefix + day for day in names}


def installs_in(entries: Mapping[str, Entry], wanted: Mapping[str, str]) -> dict[str, int]:
    """The counts by day of what was found under `keys_of_days`."""
    return {day: read_count(entries[key]) for day, key in wanted.items() if key in entries}


async def installs_by_skill() -> dict[str, int]:
    """All counters, added up by skill: for the job that keeps each skill's standing."""
    totals: dict[str, int] = {}
    async for entry in iter_entries(keys.installs.prefix):
        canonical = keys.parse(entry.key).parts[0]
        totals[canonical] = totals.get(canonical, 0) + read_count(entry)
    return totals
