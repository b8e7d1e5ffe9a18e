"""The audit: who did what to what, when and why, at `audit:{id}`.

An entry is part of the commit that does the thing, so neither exists without the other. Entries are written once and
never changed. The address of a request is a record of its own with an end, at `audit_address:{id}`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from vskill_core.errors import CursorGone, InvalidInput, PlatformError
from vskill_platform.domain import keys
from vskill_platform.domain.people.refusal import AuditOutcome
from vskill_platform.domain.people.token import ActingToken
from vskill_platform.ledger.clock import sortable_id
from vskill_platform.ledger.kv.entries import ABSENT, Operation, Put
from vskill_platform.records import decode, decode_readable, persist, read_entries, read_record
from vskill_platform.store.by_time import check_cursor, earlier_id, newest_keys
from vskill_platform.submission_store import require_reason
from vskill_platform.worker_context import require_env

T = TypeVar("T")

#: Longer texts are truncated instead of refused: auditing must not block the action.
MOST_TEXT = 2_000
MOST_DETAIL = 500
MOST_DETAILS = 20
#: Ids tell when an entry was made, not when it was committed: whoever goes on by ids begins so much earlier.
OVERLAP_MS = 86_400_000
#: How long the address of a request is kept; the page and docs say so.
ADDRESS_MS = 30 * 86_400_000
#: How many entries a filtered list looks at before it answers with what it has.
MOST_LOOKED_AT = 5_000
MOST_STEP = 1_000


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
    outcome: AuditOutcome = AuditOutcome.DONE
    #: Of the request, as the answer's `X-Request-Id` and the log name it; empty: a command, the system.
    request_id: str = ""
    #: How the session was opened: `password`, `setup` or a provider's name; empty where there was none.
    session: str = ""
    #: How many refusals of one kind this line stands for, and when the first of them was.
    count: int = 1
    since: int | None = None


class AuditAddress(msgspec.Struct, frozen=True):
    """The record at `audit_address:{id}`: where the request came from."""

    address: str


class ReadEntry(AuditEntry, frozen=True):
    """An entry, with the address while that is kept."""

    address: str | None = None


class AuditFilter(msgspec.Struct, frozen=True):
    """Which entries are wanted; what is left empty lets every entry through."""

    #: An account's name, or an actor.
    who: str = ""
    action: str = ""
    #: A part of the target, the reason, a detail, the request id or the token's id.
    text: str = ""
    outcome: AuditOutcome | None = None

    def fits(self, entry: AuditEntry) -> bool:
        if self.who and self.who not in (entry.by, entry.by.partition(":")[2]):
            return False
        if self.outcome not in (None, entry.outcome) or self.action.lower() not in entry.action.lower():
            return False
        token = "" if entry.token is None else entry.token.id
        texts = (entry.target, entry.reason, entry.request_id, token, *entry.details.values())
        return not self.text or any(self.text.lower() in one.lower() for one in texts)


class AuditNote(msgspec.Struct, frozen=True):
    """What the audit says about a change."""

    action: str
    target: str
    by: str
    reason: str
    details: Mapping[str, str] = {}


class AuditPage(msgspec.Struct, frozen=True):
    """Entries, the latest first; `before` asks for older ones, `after` for newer ones. `skipped` ones are in the log by
    key."""

    items: tuple[ReadEntry, ...]
    before: str | None = None
    after: str | None = None
    skipped: int = 0


class AuditTail(msgspec.Struct, frozen=True):
    """Entries in the order of their commits, the oldest first; `after` asks for those that follow."""

    items: tuple[ReadEntry, ...]
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
) -> tuple[Put, ...]:
    """The operations to commit together with what was done. A caller that may retry gives the id, and checks
    `was_audited` before it does."""
    env = require_env("kv")
    origin = env.origin
    entry = AuditEntry(
        id=entry_id or env.clock.new_id(),
        at=env.kv.now(),
        by=by,
        action=action,
        target=target,
        reason=reason,
        details=dict(details or {}),
        token=env.acting_token,
        request_id=origin.request_id if origin else "",
        session=env.acting_session,
    )
    return put_entry(entry, origin.address if origin else "")


def put_entry(entry: AuditEntry, address: str) -> tuple[Put, ...]:
    details = {name: _cut(text, MOST_DETAIL) for name, text in list(entry.details.items())[:MOST_DETAILS]}
    kept = msgspec.structs.replace(
        entry,
        target=_cut(entry.target, MOST_DETAIL),
        reason=_cut(entry.reason, MOST_TEXT),
        details=details,
    )
    put = Put(keys.audit(entry.id), msgspec.json.encode(kept), ABSENT)
    if not address:
        return (put,)
    value = msgspec.json.encode(AuditAddress(address))
    return put, Put(keys.audit_address(entry.id), value, ABSENT, quiet=True, ttl_ms=ADDRESS_MS)


async def note(
    action: str, target: str, *, by: str, reason: str, details: Mapping[str, str] | None = None
) -> None:
    """Write an audit entry in its own commit, for actions outside the store (the queue, a job)."""
    entry = record_audit(action, target, by=by, reason=reason, details=details)
    await require_env("kv").kv.commit(entry)


async def find_audit(entry_id: str) -> AuditEntry | None:
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
            await env.kv.commit([*operations, *audit])
        return outcome

    return await persist(write)


async def list_audit(
    *,
    before: str | None = None,
    after: str | None = None,
    limit: int = 50,
    wanted: AuditFilter = AuditFilter(),  # noqa: B008 - frozen
) -> AuditPage:
    """The latest entries that are wanted, the latest ones before the id `before`, or the first ones after the id
    `after`. Where few fit it stops after `MOST_LOOKED_AT`, and its cursor goes on there. A read that fails raises."""
    place, found, looked_at, skipped, is_end = after or before, list[ReadEntry](), 0, 0, False
    # Without a filter the first step is the page.
    step = limit if wanted == AuditFilter() else MOST_STEP
    while len(found) < limit and looked_at < MOST_LOOKED_AT and not is_end:
        found_keys, is_last = await _next_keys(place, step, is_forward=after is not None)
        entries = await _read(found_keys, "list_audit")
        fitting = [entry for entry in entries if wanted.fits(entry)][: limit - len(found)]
        found += fitting
        is_full = len(found) == limit
        last = keys.audit(found[-1].id) if is_full else (found_keys or [""])[-1]
        is_end = is_last and last == (found_keys or [""])[-1]
        place = last.removeprefix(keys.audit.prefix) or place
        looked_at, skipped = looked_at + len(found_keys), skipped + len(found_keys) - len(entries)
    further = None if is_end else place
    if after is not None:
        items = await _with_addresses(found[::-1])
        return AuditPage(items, found[0].id if found else place, further, skipped)
    newer = before and (found[0].id if found else place)
    return AuditPage(await _with_addresses(found), further, newer, skipped)


async def _next_keys(place: str | None, step: int, *, is_forward: bool) -> tuple[list[str], bool]:
    """The keys that follow a place in the direction of the search, and whether they are the last ones."""
    if is_forward:
        after = keys.audit(check_cursor(place or "", "after"))
        page = await require_env("kv").kv.list(keys.audit.prefix, after=after, limit=step)
        return list(page.items), page.after is None
    newest = await newest_keys(keys.audit.prefix, before=place, limit=step)
    return list(newest.keys), newest.before is None


async def _read(wanted: Sequence[str], operation: str) -> list[ReadEntry]:
    stored = await read_entries(wanted)
    return decode_readable([stored[key] for key in wanted if key in stored], ReadEntry, operation)


async def _with_addresses(entries: Sequence[ReadEntry]) -> tuple[ReadEntry, ...]:
    stored = await read_entries(keys.audit_address(entry.id) for entry in entries)
    found = {key: decode(one, AuditAddress).address for key, one in stored.items()}
    return tuple(
        msgspec.structs.replace(entry, address=found.get(keys.audit_address(entry.id))) for entry in entries
    )


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
    # By ids, too, each page has the order of its commits.
    entries = sorted((stored[key] for key in found if key in stored), key=lambda entry: entry.version)
    items = decode_readable(entries, ReadEntry, "follow_audit")
    latest = max([last, *(key.removeprefix(keys.audit.prefix) for key in found)])
    if not place.startswith("+"):
        # An id of a clock that was ahead would hide what comes before it from a later look by ids.
        latest = min(latest, sortable_id(require_env("kv").kv.now() + 1, 0))
    return AuditTail(await _with_addresses(items), latest + place, len(entries) - len(items))


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
