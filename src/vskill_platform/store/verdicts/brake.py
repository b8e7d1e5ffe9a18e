"""What a rule set would take down, kept until all live versions are judged, and the brake that stops it there."""

import msgspec

from vskill_core.errors import TransitionError
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.skills.skill import Certification
from vskill_platform.domain.verdicts.brake import Brake, HeldTakeDown
from vskill_platform.ledger.kv.collections import SKILLS
from vskill_platform.ledger.kv.entries import Delete, Operation, Put
from vskill_platform.records import decode, iter_entries, persist, read_record
from vskill_platform.store.people.audit import AuditNote, commit_audited
from vskill_platform.worker_context import require_env


def hold_take_down(ruleset: str, held: HeldTakeDown) -> Put:
    return Put(keys.rescan(ruleset, held.canonical, held.digest), msgspec.json.encode(held))


async def settle_take_down(ruleset: str, canonical: str, digest: str, *, done: bool) -> tuple[Operation, ...]:
    """What notes that a held take-down was done, or forgets one that is not needed any more."""
    key = keys.rescan(ruleset, canonical, digest)
    held, version = await read_record(key, HeldTakeDown)
    if held is None:
        return ()
    if not done:
        return (Delete(key, version),)
    return (Put(key, msgspec.json.encode(msgspec.structs.replace(held, done=True)), version),)


async def list_take_downs(ruleset: str) -> list[HeldTakeDown]:
    """All of a rule set, done or not, in the order of their names."""
    return [decode(entry, HeldTakeDown) async for entry in iter_entries(keys.rescan.under(ruleset))]


async def count_live_skills() -> int:
    counts = await require_env("kv").kv.count_by(SKILLS.prefix, "certification", audiences=EVERYTHING)
    return sum(counts.get(level.value, 0) for level in Certification)


async def read_brake() -> tuple[Brake | None, int]:
    return await read_record(keys.CONTROL_RESCANS, Brake)


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
    details: dict[str, str] = {}

    async def write() -> tuple[Brake, list[Operation]]:
        brake, version = await read_brake()
        if brake is None or brake.ruleset != ruleset or not brake.holds:
            message = f"The rules {ruleset} are not stopped, so there is nothing to continue."
            raise TransitionError(message, ruleset=ruleset)
        details.update(skills=str(brake.skills), live=str(brake.live))
        on = msgspec.structs.replace(brake, continued_by=by)
        return on, [Put(keys.CONTROL_RESCANS, msgspec.json.encode(on), version)]

    return await commit_audited(AuditNote("rescan continue", ruleset, by, reason, details), write)
