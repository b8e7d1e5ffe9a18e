"""Repositories that moved: the old address and the new one mean the same submission.

The record of the place before the redirect is kept, and `sub_alias:` of the new place points to it. A new place that
has a record of its own already keeps that one.
"""

import msgspec

from vskill_core.errors import Conflict, SourceGone
from vskill_core.identity import Identity, submission_id
from vskill_platform.domain import keys
from vskill_platform.ledger.kv.entries import ABSENT, Put
from vskill_platform.records import decode, persist
from vskill_platform.store.people.namespaces import require_as_open
from vskill_platform.submission_store import read_submission
from vskill_platform.worker_context import require_env


class Moved(msgspec.Struct, frozen=True):
    """The record at `sub_alias:{id of the new place}`."""

    #: The id of the submission that the place belongs to.
    submission: str


async def settled_place(asked: Identity, found: Identity) -> Identity:
    """The place whose submission this is; `found` is where the host redirects `asked`. If fewer people may read one of
    them, it keeps its own submission."""
    earlier = await _earlier_place(found)
    if earlier is not None:
        return earlier if await _is_as_open(earlier, found) else found
    if asked.key == found.key or await read_submission(submission_id(found)) is not None:
        return found
    if await read_submission(submission_id(asked)) is None or not await _is_as_open(asked, found):
        return found
    await _point(found, asked)
    return asked


async def _is_as_open(place: Identity, found: Identity) -> bool:
    try:
        await require_as_open(place, found)
    except SourceGone:
        return False
    return True


async def _earlier_place(found: Identity) -> Identity | None:
    entry = await require_env("kv").kv.get(keys.sub_alias(submission_id(found)))
    if entry is None:
        return None
    record = await read_submission(decode(entry, Moved).submission)
    return record[0].identity if record is not None else None


async def _point(found: Identity, asked: Identity) -> None:
    put = Put(keys.sub_alias(submission_id(found)), msgspec.json.encode(Moved(submission_id(asked))), ABSENT)

    async def write() -> None:
        try:
            await require_env("kv").kv.commit([put])
        except Conflict:
            # Another request saw the same redirect and wrote the same.
            if await _earlier_place(found) is None:
                raise

    await persist(write)
