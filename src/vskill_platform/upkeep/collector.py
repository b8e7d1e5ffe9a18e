"""The collector: deletes content that no record names, such as uploads that were refused.

Content that no record names and nobody put for a week is set aside, and deleted a day later if still no record names
it. A put or read meanwhile brings it back, and so does the collector if a record names it. This is safe beside writers:
content is put before a record names it, so a new record's content was touched recently.
"""

import random
from collections import Counter
from collections.abc import Set as AbstractSet

import msgspec

from vskill_core.errors import BlobUnavailable
from vskill_platform.domain.skills.content_names import addresses_in
from vskill_platform.ledger.blobs.contract import Blobs, StoredPiece
from vskill_platform.records import iter_entries
from vskill_platform.worker_context import require_env

EVERY_MS = 6 * 3_600_000
#: Content that nobody put for this long may be set aside.
UNTOUCHED_MS = 7 * 24 * 3_600_000
#: Content that was set aside is kept this long.
ASIDE_MS = 24 * 3_600_000
#: What records name counts for this long; a slower run leaves the rest to the next one.
NAMES_FOR_S = 3600.0
#: After this many pieces in a row that the store could not move, the run ends.
MOST_FAILED = 3
#: Records that are read at once.
PAGE = 200


class Collected(msgspec.Struct, frozen=True):
    """What one run did, or would do."""

    pieces: int = 0
    set_aside: int = 0
    brought_back: int = 0
    deleted: int = 0


async def collect(*, dry_run: bool = False) -> Collected:
    """One run over all content. An unreadable record stops it, because it may name anything. A piece that cannot be
    moved is left to the next run, and this one fails at its end."""
    env = require_env("blobs")
    # List content before records: then content put for a newer record is not in the list.
    pieces = [piece async for piece in env.blobs.pieces()]
    old = {one.address for one in pieces if one.is_aside or one.untouched_ms >= UNTOUCHED_MS}
    in_place = {one.address for one in pieces if not one.is_aside}
    began = env.clock.monotonic()
    named = await _named_among(old) if old else frozenset()
    # Each run has another order: pieces that can never be moved do not keep others from their turn for ever.
    random.shuffle(pieces)
    counts, failed, failed_in_a_row = Counter[str](), 0, 0
    for piece in pieces:
        if env.clock.monotonic() - began >= NAMES_FOR_S:
            env.log.warning("the collector was slow: the next run does the rest")
            break
        step = _due_step(piece, named, in_place)
        if step is None:
            continue
        try:
            counts[step] += dry_run or await _take(env.blobs, step, piece.address)
            failed_in_a_row = 0
        except BlobUnavailable as error:
            env.log.warning("content cannot be collected", digest=piece.address, error=str(error))
            failed, failed_in_a_row = failed + 1, failed_in_a_row + 1
            if failed_in_a_row == MOST_FAILED:
                break
    done = Collected(len(pieces), **counts)
    if not dry_run:
        _report(done)
    if failed:
        raise BlobUnavailable(f"content could not be collected, {failed} pieces of it; the log says why")
    return done


def _due_step(piece: StoredPiece, named: AbstractSet[str], in_place: AbstractSet[str]) -> str | None:
    """What is to be done with a piece, by the name of its count."""
    is_named = piece.address in named
    if piece.is_aside and is_named and piece.address not in in_place:
        return "brought_back"
    if piece.is_aside:
        return "deleted" if piece.untouched_ms >= ASIDE_MS else None
    return "set_aside" if piece.untouched_ms >= UNTOUCHED_MS and not is_named else None


async def _take(blobs: Blobs, step: str, address: str) -> bool:
    if step == "brought_back":
        return await blobs.has(address)
    if step == "deleted":
        return await blobs.delete_aside(address, ASIDE_MS)
    return await blobs.set_aside(address, UNTOUCHED_MS)


async def _named_among(addresses: set[str]) -> frozenset[str]:
    """The addresses among these that a record names."""
    named: set[str] = set()
    async for entry in iter_entries("", page=PAGE):
        named |= addresses_in(entry.key, entry.value) & addresses
    return frozenset(named)


def _report(done: Collected) -> None:
    env = require_env("metrics")
    for step in ("set_aside", "brought_back", "deleted"):
        env.metrics.content_collected.labels(step).inc(getattr(done, step))
    if done.set_aside or done.brought_back or done.deleted:
        env.log.info("unnamed content collected", **msgspec.structs.asdict(done))
