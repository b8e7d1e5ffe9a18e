"""Lists by time, the latest first, of records whose keys end in a sortable id (`audit:`, `report:`).

Stores list keys in ascending order only. So a list reads a short period before its end, then ever longer ones before
that, until it has enough: its cost is proportional to the page, not to the total.
"""

import msgspec

from vskill_core.errors import InvalidInput
from vskill_platform.ledger.clock import sortable_id
from vskill_platform.worker_context import require_env

#: The first period; each further one is twice as long.
FIRST_MS = 3_600_000
MOST = 1000

_ID_LENGTH = 26
#: The part of an id that tells its time.
_TIME_LENGTH = 10
_DIGITS = {char: value for value, char in enumerate("0123456789abcdefghjkmnpqrstvwxyz")}


class Newest(msgspec.Struct, frozen=True):
    """A page of keys, the latest first; `before` asks for the next one, None at the end."""

    keys: tuple[str, ...]
    before: str | None = None


async def newest_keys(prefix: str, *, before: str | None = None, limit: int = 50) -> Newest:
    """The latest keys of a prefix, or the latest ones older than the id `before`."""
    limit = max(1, min(limit, MOST))
    oldest = await _oldest(prefix)
    end = None if before is None else prefix + check_cursor(before, "before")
    if oldest is None or (end is not None and end <= oldest):
        return Newest(())
    edge = require_env("kv").kv.now() if end is None else _time_of(end, prefix)
    found: list[str] = []
    width = FIRST_MS
    at_beginning = False
    while not at_beginning and len(found) <= limit:
        edge = max(edge - width, 0)
        at_beginning = edge <= _time_of(oldest, prefix)
        start = None if at_beginning else prefix + sortable_id(edge, 0)
        found = [*await _between(prefix, start, end), *found]
        end, width = start, width * 2
    page = found[-limit:]
    return Newest(tuple(reversed(page)), page[0].removeprefix(prefix) if len(found) > limit else None)


def earlier_id(known: str, by_ms: int) -> str:
    """An id that sorts before every one that was made so much earlier than this one."""
    return sortable_id(max(_time_of(known, "") - by_ms, 0), 0)


async def _oldest(prefix: str) -> str | None:
    page = await require_env("kv").kv.list(prefix, limit=1)
    return page.items[0] if page.items else None


async def _between(prefix: str, start: str | None, end: str | None) -> list[str]:
    """Keys after `start` and before `end`. No id ends in the zeros of a bound, so none falls between two periods."""
    kv = require_env("kv").kv
    found: list[str] = []
    after = start
    while True:
        page = await kv.list(prefix, after=after)
        within = [key for key in page.items if end is None or key < end]
        found += within
        after = page.after
        if after is None or len(within) < len(page.items):
            return found


def check_cursor(text: str, field: str) -> str:
    """Refuse a cursor that is not an id: it comes from a client."""
    if len(text) != _ID_LENGTH or not set(text) <= set(_DIGITS):
        raise InvalidInput(
            "The cursor is not valid.", field=field, fix=f"use the `{field}` of the previous page"
        )
    return text


def _time_of(key: str, prefix: str) -> int:
    """The milliseconds in an id; 0 for a key without one, so that lists still reach it."""
    digits = key.removeprefix(prefix)[:_TIME_LENGTH]
    if not set(digits) <= set(_DIGITS):
        return 0
    number = 0
    for char in digits:
        number = number * 32 + _DIGITS[char]
    return number
