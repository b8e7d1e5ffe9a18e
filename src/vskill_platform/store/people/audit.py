"""The audit: who did what to what, when and why, at `audit:{id}`.

An entry is part of the commit that does the thing, so neither exists without the other. Entries are written once and
never changed.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from vskill_core.errors import CursorGone, InvalidInput, PlatformError
from vskill_platform.domain import keys
from vskill_platform.domain.people.token import ActingToken
from vskill_platform.ledger.kv.entries import ABSENT, Operation, Put
from vskill_platform.records import decode_readable, persist, read_entries, read_record
from vskill_platform.store.by_time import earlier_id, newest_keys
from vskill_platform.submission_store import require_reason
from vskill_platform.worker_context import require_env

T = TypeVar("T")

#: Longer texts are truncated instead of refused: auditing must not block the action.
MOST_TEXT = 2_000
MOST_DETAIL = 500
MOST_DETAILS = 20
#: Ids tell when an entry was made, not when it was committed: whoever goes on by ids begins so much earlier.
OVERLAP_MS = 3_600_000


class AuditEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `audit:{id}`."""

    #: Sorts by time; that of the history's event where there is one.
    id: str
    at: int
    #: `system`, `worker:<id>`, `admin:<name>` or `user:<name>`
    by: str
    #: What was done, in a word or two, such as `block` or `owner added`.
    action: str
    #: What it was done to, as people write it.
    target: str
    reason: str
    details: dict[str, str] = {}
    #: The token that it was done with; None: a session, a command, the system.
    token: ActingToken | None = None


class AuditNote(msgspec.Struct, frozen=True):
    """What the audit says about a change."""

    action: str
    target: str
    by: str
    reason: str
    details: Mapping[str, str] = {}


class AuditPage(msgspec.Struct, frozen=True):
    """Entries, the latest first; `before` asks for the next page. `skipped` ones are in the log by key."""

    items: tuple[AuditEntry, ...]
    before: str | None = None
    skipped: int = 0


class AuditTail(msgspec.Struct, frozen=True):
    """Entries in the order of their commits, the oldest first; `after` asks for those that follow."""

    items: tuple[AuditEntry, ...]
    after: str
    skipped: int = 0


def record_audit(
    action: str,
    target: str,
    *,
    by: str,
    reason: str,
    details: Mapping[str, str] | None = None,
    entry_id: str | None = None,
) -> Put:
    """The operation to commit together with what was done. A caller that may retry gives the id, and checks
    `was_audited` before it does."""
    env = require_env("kv")
    kept = {name: _cut(text, MOST_DETAIL) for name, text in list((details or {}).items())[:MOST_DETAILS]}
    entry = AuditEntry(
        id=entry_id or env.clock.new_id(),
        at=env.kv.now(),
        by=by,
        action=action,
        target=_cut(target, MOST_DETAIL),
        reason=_cut(reason, MOST_TEXT),
        details=kept,
        token=env.acting_token,
    )
    return Put(keys.audit(entry.id), msgspec.json.encode(entry), ABSENT)


def record_token_use(
    action: str, target: str, *, by: str, reason: str, details: Mapping[str, str]
) -> tuple[Put, ...]:
    """The entry of an action that is audited only if a token did it; empty otherwise."""
    if require_env("kv").acting_token is None:
        return ()
    return (record_audit(action, target, by=by, reason=reason, details=details),)


async def note(
    action: str, target: str, *, by: str, reason: str, details: Mapping[str, str] | None = None
) -> None:
    """Write an audit entry in its own commit, for actions outside the store (the queue, a job)."""
    entry = record_audit(action, target, by=by, reason=reason, details=details)
    await require_env("kv").kv.commit([entry])


async def find_audit(entry_id: str) -> AuditEntry | None:
    """The entry with this id; None where there is none."""
    return (await read_record(keys.audit(entry_id), AuditEntry))[0]


async def was_audited(entry_id: str) -> bool:
    """Whether the commit with this entry was applied, whatever its outcome looked like."""
    return await require_env("kv").kv.get(keys.audit(entry_id)) is not None


async def commit_audited(
    note: AuditNote,
    decide: Callable[[], Awaitable[tuple[T, Sequence[Operation]]]],
    *,
    entry_id: str | None = None,
) -> T:
    """Commit a change together with its audit entry. `decide` reads the current state and returns the result and the
    operations, none if nothing changes. It is called again after a conflict. A commit with an unknown outcome is
    recognised by its entry."""
    require_reason(note.reason)
    env = require_env("kv")
    entry_id = entry_id or env.clock.new_id()
    tried: list[T] = []

    async def is_written() -> bool:
        return bool(tried) and await was_audited(entry_id)

    async def write() -> T:
        # Checked after `decide` has read, so that a commit applied before that is recognised.
        try:
            outcome, operations = await decide()
        except PlatformError:
            if await is_written():
                return tried[-1]
            raise
        if await is_written():
            return tried[-1]
        if operations:
            tried.append(outcome)
            audit = record_audit(
                note.action,
                note.target,
                by=note.by,
                reason=note.reason,
                details=note.details,
                entry_id=entry_id,
            )
            await env.kv.commit([*operations, audit])
        return outcome

    return await persist(write)


async def list_audit(*, before: str | None = None, limit: int = 50) -> AuditPage:
    """The latest entries, or the latest ones before the id `before`. A read that fails raises."""
    page = await newest_keys(keys.audit.prefix, before=before, limit=limit)
    stored = await read_entries(page.keys)
    entries = [stored[key] for key in page.keys if key in stored]
    items = decode_readable(entries, AuditEntry, "list_audit")
    return AuditPage(tuple(items), page.before, len(entries) - len(items))


async def follow_audit(after: str = "", *, limit: int = 200) -> AuditTail:
    """The entries after a cursor, from the first one where it is empty: each at least once, in the order of their
    commits. Where the store does not keep its changes back to the cursor, or is another one, it goes on by ids, which
    are kept for ever, from a little earlier."""
    kv = require_env("kv").kv
    by_ids, last, place = _parse_tail(after)
    if not by_ids:
        try:
            changed = await kv.changes(keys.audit.prefix, after=place, limit=limit)
        except CursorGone:
            by_ids, last, place = True, earlier_id(last, OVERLAP_MS) if last else "", ""
        else:
            return await _tail([change.key for change in changed.items], last, f".{changed.after or place}")
    # Noted before the ids are read, so that nothing falls between both.
    place = place or await kv.change_cursor()
    page = await kv.list(keys.audit.prefix, after=keys.audit(last) if last else None, limit=limit)
    return await _tail(list(page.items), last, f"{'' if page.after is None else '+'}.{place}")


async def _tail(found: list[str], last: str, place: str) -> AuditTail:
    stored = await read_entries(found)
    entries = [stored[key] for key in found if key in stored]
    items = decode_readable(entries, AuditEntry, "follow_audit")
    latest = max([last, *(key.removeprefix(keys.audit.prefix) for key in found)])
    return AuditTail(tuple(items), latest + place, len(entries) - len(items))


def _parse_tail(after: str) -> tuple[bool, str, str]:
    """Whether it goes by ids, the latest id, and the place in the store's changes."""
    if not after:
        return True, "", ""
    last, _, place = after.partition(".")
    if not place or not f"0{last.removesuffix('+')}".isalnum():
        raise InvalidInput(
            "The cursor is not valid.", field="after", fix="use the `after` of the last answer"
        )
    return last.endswith("+"), last.removesuffix("+"), place


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"
