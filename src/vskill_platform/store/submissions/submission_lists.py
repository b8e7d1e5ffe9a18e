"""Lists of submissions as people ask for them: narrowed by state, by who submitted and by words, in either direction.

Every query is served by a declared index or by the search index; what no index serves is refused with the fix, never
answered slowly or in part.
"""

import enum
from collections.abc import Collection

import msgspec

from vskill_core.errors import InvalidInput
from vskill_platform.domain.audience import Audiences
from vskill_platform.domain.skills.search import every_term
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.kv.collections import SUBMISSIONS
from vskill_platform.ledger.kv.query import Condition, In, Is, in_order
from vskill_platform.records import Skips, decode_readable, iter_selected
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
    """A search by words is ordered by relevance and has one page; everything else is in order, page by page.

    For one submitter the order is always that of submitting.
    """
    where: dict[str, Condition] = {"state": In(tuple(sorted(states)))} if states else {}
    if submitter is not None:
        where["submitter"] = Is(submitter)
        order = Order.CREATED
    if text.strip():
        return await _search(text, where, after, limit, audiences)
    if states and order is Order.CREATED and submitter is None:
        message = "A list of some states can only be sorted by `updated`."
        raise InvalidInput(message, field="sort", fix="use updated")
    if order is Order.UPDATED:
        where.setdefault("state", In(tuple(sorted(State))))
    page = await require_env("kv").kv.select(
        SUBMISSIONS.prefix,
        audiences=audiences,
        where=where,
        order_by="updated_at" if order is Order.UPDATED else "created_at",
        descending=descending,
        after=after,
        limit=limit,
    )
    skips = Skips("find_submissions")
    skips.failed(page.failed)
    records = skips.decode_all(page.items, Submission)
    skips.report(require_env("log"))
    return FoundSubmissions(tuple(records), page.after, skipped=skips.count)


async def submissions_with_digest(digest: str, *, audiences: Audiences) -> list[Submission]:
    """Every submission of these audiences whose content this is. A read that fails raises: unknown is not "none"."""
    entries = iter_selected(SUBMISSIONS.prefix, audiences=audiences, where={"digest": Is(digest)})
    return decode_readable([entry async for entry in entries], Submission, "submissions_with_digest")


async def _search(
    text: str, where: dict[str, Condition], after: str | None, limit: int, audiences: Audiences
) -> FoundSubmissions:
    if after is not None:
        raise InvalidInput(
            "A search has only one page.", field="after", fix="leave it out, or refine the search"
        )
    found = await require_env("kv").kv.search(
        SUBMISSIONS.prefix, every_term(text), audiences=audiences, where=where, limit=limit
    )
    keys = [one.key for one in found.items]
    settled = await require_env("kv").kv.get_many(keys)
    entries = in_order(settled, keys, SUBMISSIONS, audiences)
    skips = Skips("find_submissions")
    skips.failed(settled.failed)
    records = skips.decode_all(entries, Submission)
    skips.report(require_env("log"))
    return FoundSubmissions(tuple(records), truncated=found.truncated, skipped=skips.count)
