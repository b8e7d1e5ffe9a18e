"""What a rule set would take down, kept until all live versions are judged, and the brake that stops it there."""

import msgspec

from vskill_core.errors import TransitionError
from vskill_platform.domain import keys
from vskill_platform.domain.audience import EVERYTHING
from vskill_platform.domain.skills.skill import Certification
from vskill_platform.domain.verdicts.brake import Brake, HeldTakeDown
from vskill_platform.ledger.kv.collections import SKILLS
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.ledger.kv.entries import ABSENT, Delete, Operation, Put
from vskill_platform.records import decode, persist
from vskill_platform.store.people.audit import record_audit, was_audited
from vskill_platform.worker_context import require_env


def hold_take_down(ruleset: str, held: HeldTakeDown) -> Put:
    return Put(keys.rescan(ruleset, held.canonical, held.digest), msgspec.json.encode(held))


async def settle_take_down(ruleset: str, canonical: str, digest: str, *, done: bool) -> tuple[Operation, ...]:
    """What notes that a held take-down was done, or forgets one that is not needed any more."""
    entry = await require_env("kv").kv.get(keys.rescan(ruleset, canonical, digest))
    if entry is None:
        return ()
    if not done:
        return (Delete(entry.key, entry.version),)
    held = msgspec.structs.replace(decode(entry, HeldTakeDown), done=True)
    return (Put(entry.key, msgspec.json.encode(held), entry.version),)


async def list_take_downs(ruleset: str) -> list[HeldTakeDown]:
    """All of a rule set, done or not, in the order of their names."""
    found: list[HeldTakeDown] = []
    async for page in iterate_pages(require_env("kv").kv, keys.rescans_by(ruleset)):
        for error in page.failed.values():
            raise error
        found += [decode(entry, HeldTakeDown) for entry in page.items]
    return found


async def count_live_skills() -> int:
    counts = await require_env("kv").kv.count_by(SKILLS.prefix, "certification", audiences=EVERYTHING)
    return sum(counts.get(level.value, 0) for level in Certification)


async def read_brake() -> tuple[Brake | None, int]:
    """The record and its version, ABSENT where no rule set has stopped."""
    entry = await require_env("kv").kv.get(keys.CONTROL_RESCANS)
    return (None, ABSENT) if entry is None else (decode(entry, Brake), entry.version)


async def stop_rescans(ruleset: str, skills: int, live: int) -> None:
    """Stop before the first take-down; the record says for how many, and since when."""

    async def write() -> None:
        kv = require_env("kv").kv
        known, version = await read_brake()
        since = known.since if known is not None and known.ruleset == ruleset else kv.now()
        brake = Brake(ruleset, skills, live, since)
        if brake != known:
            await kv.commit([Put(keys.CONTROL_RESCANS, msgspec.json.encode(brake), version)])

    await persist(write)


async def forget_brake(*, other_than: str | None = None) -> None:
    """Its cause is gone: the rules have changed, or too little is left to stop for."""

    async def write() -> None:
        brake, version = await read_brake()
        if brake is not None and brake.ruleset != other_than and brake.holds:
            await require_env("kv").kv.commit([Delete(keys.CONTROL_RESCANS, version)])

    await persist(write)


async def continue_rescans(ruleset: str, *, by: str, reason: str) -> Brake:
    """An admin lets the rule set go on. Raises TransitionError where this rule set is not stopped."""
    env = require_env("kv")
    entry_id = env.clock.new_id()

    async def write() -> Brake:
        brake, version = await read_brake()
        if brake is not None and await was_audited(entry_id):
            return brake
        if brake is None or brake.ruleset != ruleset or not brake.holds:
            message = f"The rules {ruleset} are not stopped, so there is nothing to continue."
            raise TransitionError(message, ruleset=ruleset)
        on = msgspec.structs.replace(brake, continued_by=by)
        details = {"skills": str(brake.skills), "live": str(brake.live)}
        audited = record_audit(
            "rescan continue", ruleset, by=by, reason=reason, details=details, entry_id=entry_id
        )
        await env.kv.commit([Put(keys.CONTROL_RESCANS, msgspec.json.encode(on), version), audited])
        return on

    return await persist(write)
