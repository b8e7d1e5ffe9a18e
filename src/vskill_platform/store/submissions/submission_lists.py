"""Lists of submissions as people ask for them: narrowed by state, by who submitted and by words, in either direction;
and hand-ins, at `hand_in:{id}`: what one request submitted, so that its page can be reloaded and shared.

Every query is served by a declared index or by the search index; what no index serves is refused with the fix, never
answered slowly or in part.
"""

import enum
from collections.abc import Collection

import msgspec

from vskill_core.errors import InvalidInput, StoreUnavailable
from vskill_core.identity import Identity
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import Audiences
from vskill_platform.domain.skills.search import every_term
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import EntryPoint, Submission
from vskill_platform.ledger.kv.collections import SUBMISSIONS
from vskill_platform.ledger.kv.query import Condition, In, Is, in_order
from vskill_platform.records import (
    Skips,
    audience_of,
    decode_readable,
    iter_selected,
    persist,
    read_record,
    readable,
)
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


KEPT_MS = 90 * 24 * 3_600_000


# Hand-ins. The record holds intake's answer for each skill; the submissions themselves hold the current state, and
# decide who may read it. Its id cannot be guessed, and it expires; the submissions stay.


class HandedIn(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one skill at the door."""

    #: as clients are told: `created`, `duplicate`, ..., or `refused` where nothing was written
    outcome: str
    #: None where nothing was written
    submission_id: str | None = None
    repo_url: str = ""
    skill_path: str = ""
    #: why it was refused or blocked, and what to do about it
    reason: str = ""


class HandIn(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `hand_in:{id}`."""

    id: str
    created_at: int
    skills: tuple[HandedIn, ...]
    source: EntryPoint = EntryPoint.API
    #: The account that submitted it; None is nobody who signed in, or the operator.
    submitter: str | None = None
    #: Submitted by nobody in particular: then everybody who knows the id may read what was refused.
    anonymous: bool = False
    #: That of the CI job that submitted it: whoever reads its namespace may read what was refused.
    repository: Identity | None = None


async def keep_hand_in(
    skills: tuple[HandedIn, ...],
    *,
    source: EntryPoint,
    submitter: str | None,
    anonymous: bool,
    repository: Identity | None = None,
) -> HandIn:
    """Write a new one."""
    env = require_env("kv")
    made = HandIn(env.clock.new_id(), env.kv.now(), skills, source, submitter, anonymous, repository)
    await persist(lambda: env.kv.put(keys.hand_in(made.id), msgspec.json.encode(made), ttl_ms=KEPT_MS))
    return made


async def read_hand_in(hand_in_id: str) -> HandIn | None:
    return (await read_record(keys.hand_in(hand_in_id), HandIn))[0]


async def read_submissions_of(hand_in: HandIn, *, audiences: Audiences) -> dict[str, Submission]:
    """By id, the submissions that these audiences may read. Raises StoreUnavailable if a read fails, because the counts
    would be wrong without it."""
    env = require_env("kv")
    wanted = [keys.sub(skill.submission_id) for skill in hand_in.skills if skill.submission_id is not None]
    skips = Skips("read_submissions_of")
    settled = await env.kv.get_many(wanted)
    skips.failed(settled.failed)
    # A record without a valid audience is malformed for every reader.
    shown = (
        entry for entry in settled.found.values() if audience_of(entry) is None or readable(entry, audiences)
    )
    records = skips.decode_all(shown, Submission)
    skips.report(env)
    if skips.count:
        raise StoreUnavailable("Not every submission of this hand-in can be read now.", hand_in=hand_in.id)
    return {record.id: record for record in records}
