"""Revocations: one record per commit that changes which versions are withdrawn, at `revocation:{serial}`.

`store.skills.skills.skill_writes` adds these writes to every change of a skill, so no withdrawal or restoration can
leave them out. The serial is the number of such commits; no reader sees it, since it counts hidden ones. Two concurrent
commits conflict on the same key: one is refused, and retries with the next serial.
"""

import msgspec

from vskill_platform.domain import keys
from vskill_platform.domain.skills.skill import PublishedSkill, Revocation, RevocationStep, revocation_steps
from vskill_platform.ledger.kv.entries import ABSENT, Add, Operation, Put
from vskill_platform.records import decode, entries_of, read_record
from vskill_platform.worker_context import require_env

#: Events that are read at once.
PAGE = 500


async def revocation_writes(before: PublishedSkill, after: PublishedSkill) -> tuple[Operation, ...]:
    """The operations to commit with a skill's record; none if no list of revoked versions changes."""
    steps = revocation_steps(before, after)
    return () if steps is None else await _raise_serial(after.canonical, steps)


async def reader_writes() -> tuple[Operation, ...]:
    """The operations to commit if the readers of a namespace or the registry change, since that changes the lists."""
    return await _raise_serial("", ())


async def _raise_serial(skill: str, steps: tuple[RevocationStep, ...]) -> tuple[Operation, ...]:
    last = await read_serial()
    before, serial = await read_revocation(last), last + 1
    now = require_env("kv").kv.now()
    event = Revocation(serial, now if before is None else max(now, before.at + 1), skill, steps)
    return (
        Add(keys.CONTROL_REVOCATIONS),
        Put(keys.revocation_at(serial), msgspec.json.encode(event), ABSENT),
    )


async def read_serial() -> int:
    entry = await require_env("kv").kv.get(keys.CONTROL_REVOCATIONS)
    return 0 if entry is None else int(entry.value)


async def read_revocation(serial: int) -> Revocation | None:
    return (await read_record(keys.revocation_at(serial), Revocation))[0]


async def list_revocations(after: int, limit: int = PAGE) -> tuple[Revocation, ...]:
    page = await require_env("kv").kv.scan(
        keys.revocation.prefix, after=keys.revocation_at(after), limit=limit
    )
    return tuple(decode(entry, Revocation) for entry in entries_of(page))


async def find_serial(moment: int) -> int:
    """The serial of the last event up to a moment; 0 where all are later."""
    first, last = 0, await read_serial()
    while first < last:
        middle = (first + last + 1) // 2
        event = await read_revocation(middle)
        if event is not None and event.at <= moment:
            first = middle
        else:
            last = middle - 1
    return first
