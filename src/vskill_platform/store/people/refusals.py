"""Refusals in the audit: requests that were not permitted, sign-ins that failed, and tokens that are not valid.

What an account is refused is written at once; the same again within the minute is counted, and so is, in one line, what
goes beyond `MOST_OF_ACCOUNT` kinds: however much an account tries, a process writes some fifty lines in a minute. What
strangers are refused is only counted, and each process writes its counts at the minute's end: one line for each address
and kind, and all processes together at most `MOST_LINES` in a minute.
"""

import asyncio
from contextlib import suppress

from vskill_core.errors import PlatformError
from vskill_platform.domain import keys
from vskill_platform.domain.people.refusal import (
    ANONYMOUS,
    BEYOND,
    MANY,
    AuditOutcome,
    Counted,
    RefusedAttempt,
)
from vskill_platform.domain.people.token import ActingToken
from vskill_platform.ledger.kv.entries import ABSENT, Operation, Put
from vskill_platform.records import persist, read_count
from vskill_platform.store.people.audit import AuditEntry, put_entry, was_audited
from vskill_platform.worker_context import Env, require_env, run_with_worker_env

MINUTE_MS = 60_000
#: Lines about strangers in one minute.
MOST_LINES = 60


async def note_refusal(
    action: str,
    reason: str,
    *,
    target: str = "",
    by: str = ANONYMOUS,
    account: str = "",
    token: ActingToken | None = None,
    session: str = "",
) -> None:
    """Count a refusal, and write it if it is an account's first of its kind in this minute. `account` is one whose name
    or token a stranger has shown; names that no account has are never kept, since people type passwords there."""
    env = require_env("kv")
    origin, now = env.origin, env.kv.now()
    refusal = RefusedAttempt(
        by,
        action,
        target or account,
        reason,
        now,
        origin.address if origin else "",
        origin.request_id if origin else "",
        account,
        token,
        session,
    )
    env.metrics.refusals.labels("anonymous" if refusal.is_anonymous else "account").inc()
    is_first = env.refusals.add(refusal, now // MINUTE_MS, int(refusal.is_anonymous))
    if is_first and not refusal.is_anonymous:
        try:
            await env.kv.commit(_line(Counted(refusal, 1), env.clock.new_id()))
        except PlatformError as error:
            env.refusals.add(refusal, now // MINUTE_MS)
            env.log.warning("refusal not audited yet", reason=error.message)


async def write_refusals(*, before: int | None = None) -> None:
    """Write what was counted, or what was before a minute. Where that fails, the number is kept, and written later."""
    env = require_env("kv")
    taken, others = env.refusals.take(before), env.refusals.others
    if not taken and not others:
        return
    env.refusals.others = 0
    ids = [env.clock.new_id() for _ in range(len(taken) + 1)]

    async def write() -> int:
        if await was_audited(ids[0]):
            return 0
        operations, left = await _plan(taken, others, ids)
        await env.kv.commit(operations)
        return left

    try:
        env.refusals.others += await persist(write)
    except PlatformError:
        env.refusals.others += others + sum(one.count for one in taken)
        raise


async def _plan(taken: list[Counted], others: int, ids: list[str]) -> tuple[list[Operation], int]:
    """The lines, at most as many about strangers as this minute has left, and how many refusals wait for the next."""
    kv = require_env("kv").kv
    now = kv.now()
    counter = keys.refused(str(now // MINUTE_MS))
    entry = await kv.get(counter)
    written = read_count(entry)
    lines = [one for one in taken if not one.first.is_anonymous]
    strangers = [one for one in taken if one.first.is_anonymous]
    room = max(MOST_LINES - written, 0)
    if len(strangers) + bool(others) > room:
        shown = max(room - 1, 0)
        others += sum(one.count for one in strangers[shown:])
        strangers = strangers[:shown]
    if others and room:
        rest = RefusedAttempt(ANONYMOUS, MANY, "", BEYOND, now)
        strangers, others = [*strangers, Counted(rest, others)], 0
    operations: list[Operation] = []
    for one, entry_id in zip([*lines, *strangers], ids, strict=False):
        operations += _line(one, entry_id)
    version = ABSENT if entry is None else entry.version
    text = str(written + len(strangers)).encode()
    operations.append(Put(counter, text, version, quiet=True, ttl_ms=2 * MINUTE_MS))
    return operations, others


def _line(counted: Counted, entry_id: str) -> tuple[Put, ...]:
    refusal, now = counted.first, require_env("kv").kv.now()
    entry = AuditEntry(
        entry_id,
        now,
        refusal.by,
        refusal.action,
        refusal.target,
        refusal.reason,
        token=refusal.token,
        outcome=AuditOutcome.REFUSED,
        request_id=refusal.request_id,
        session=refusal.session,
        count=counted.count,
        since=refusal.at,
    )
    return put_entry(entry, refusal.address)


async def run_refusals(env: Env, stop: asyncio.Event) -> None:
    """Write the counts of each minute when it is over, until `stop` is set."""
    while not stop.is_set():
        with suppress(TimeoutError):
            async with asyncio.timeout((MINUTE_MS - env.kv.now() % MINUTE_MS) / 1000):
                await stop.wait()
        await write_counted(env, env.kv.now() // MINUTE_MS)


async def write_counted(env: Env, before: int | None = None) -> None:
    """Write what was counted, also of this minute unless `before` is one. What a store that is away cannot take stays
    counted."""
    try:
        await run_with_worker_env(env, lambda: write_refusals(before=before))
    except PlatformError as error:
        env.log.warning("refusals not audited yet", reason=error.message)
