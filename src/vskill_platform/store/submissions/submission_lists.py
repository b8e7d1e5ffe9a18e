"""Lists of submissions as people ask for them: narrowed by state, by who submitted and by words, in either direction.

Every question is served by a declared index or by the search index; what no index serves is refused with the fix,
never answered slowly or in part.
"""

import enum
from collections.abc import Collection, Mapping

import msgspec

from vskill_core.errors import InvalidInput
from vskill_platform.domain.audience import Audiences
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.kv.collections import SUBMISSIONS
from vskill_platform.ledger.kv.entries import Entry
from vskill_platform.ledger.kv.query import Condition, In, Is
from vskill_platform.records import Skips
from vskill_platform.worker_context import require_env


class Order(enum.StrEnum):
    """What a list is ordered by."""

    UPDATED = "updated"
    CREATED = "created"


class FoundSubmissions(msgspec.Struct, frozen=True):
    """A page; `skipped` records could not be read, and are in the log by key."""

    items: tuple[Submission, ...]
    after: str | None = None
    #: A search found more than it shows.
    truncated: bool = False
    skipped: int = 0


async def find_submissions(
    *,
    audiences: Audiences,
    states: Collection[State] = (),
    text: str = "",
    submitter: str | None = None,
    order: Order = Order.UPDATED,
    descending: bool = True,
    after: str | None = None,
    limit: int = 50,
) -> FoundSubmissions:
    """Words are answered by how well they match, without further pages; everything else in order, page by page.

    Of one submitter the order is always that of submitting.
    """
    if text.strip():
        return await _search(text, states, submitter, after, limit, audiences)
    where: dict[str, Condition] = {}
    if submitter is not None:
        where["submitter"] = Is(submitter)
        order = Order.CREATED
    if states:
        where["state"] = In(tuple(sorted(states)))
    elif order is Order.UPDATED:
        where["state"] = In(tuple(sorted(State)))
    if states and order is Order.CREATED and submitter is None:
        raise InvalidInput(
            "A list of some states can only be sorted by `updated`.",
            field="sort",
            fix="use updated",
        )
    field = "updated_at" if order is Order.UPDATED else "created_at"
    page = await require_env("kv").kv.select(
        SUBMISSIONS.prefix,
        audiences=audiences,
        where=where,
        order_by=field,
        descending=descending,
        after=after,
        limit=limit,
    )
    return _read(page.items, page.after, Skips("find_submissions"), page.failed)


async def submissions_with_digest(digest: str, *, audiences: Audiences) -> list[Submission]:
    """Every submission of these audiences whose content this is. A read that fails raises: unknown is not "none"."""
    kv = require_env("kv").kv
    found: list[Submission] = []
    after: str | None = None
    while True:
        page = await kv.select(
            SUBMISSIONS.prefix,
            audiences=audiences,
            where={"digest": Is(digest)},
            order_by="key",
            after=after,
        )
        for error in page.failed.values():
            raise error
        found += _read(page.items, None, Skips("submissions_with_digest"), {}).items
        after = page.after
        if after is None:
            return found


async def _search(
    text: str,
    states: Collection[State],
    submitter: str | None,
    after: str | None,
    limit: int,
    audiences: Audiences,
) -> FoundSubmissions:
    if after is not None:
        raise InvalidInput(
            "A search has only one page.", field="after", fix="leave it out, or refine the search"
        )
    where: dict[str, Condition] = {}
    if states:
        where["state"] = In(tuple(sorted(states)))
    if submitter is not None:
        where["submitter"] = Is(submitter)
    found = await require_env("kv").kv.search(
        SUBMISSIONS.prefix, text, audiences=audiences, where=where, limit=limit
    )
    read = _read(found.items, None, Skips("find_submissions"), {})
    return msgspec.structs.replace(read, truncated=found.truncated)


def _read(
    entries: tuple[Entry, ...], after: str | None, skips: Skips, failed: Mapping[str, Exception]
) -> FoundSubmissions:
    for key in failed:
        skips.add("failed", key)
    records = [skips.decode(entry, Submission) for entry in entries]
    skips.report(require_env("kv"))
    return FoundSubmissions(
        tuple(record for record in records if record is not None), after, skipped=skips.count
    )
