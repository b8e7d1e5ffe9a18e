"""The collector: deletes content that no record names, such as uploads that were refused.

What nobody names and nobody put for a week is set aside; a day later it is deleted, if still no record names it.
Whoever puts or reads it meanwhile brings it back, and so does the collector when a record names it. Content is put
before a record names it, so a record that is written meanwhile has content that was touched meanwhile.
"""

import msgspec

from vskill_platform.domain.skills.content_names import addresses_in
from vskill_platform.records import iter_entries
from vskill_platform.worker_context import require_env

EVERY_MS = 6 * 3_600_000
#: Content that nobody put for this long may be set aside.
UNTOUCHED_MS = 7 * 24 * 3_600_000
#: What was set aside is kept for this long.
ASIDE_MS = 24 * 3_600_000
#: Records that are read at once.
PAGE = 200


class Collected(msgspec.Struct, frozen=True):
    """What one run did, or would do."""

    pieces: int = 0
    set_aside: int = 0
    brought_back: int = 0
    deleted: int = 0


async def collect(*, dry_run: bool = False) -> Collected:
    """One run over all content. A record that cannot be read stops it: it may name anything."""
    env = require_env("blobs")
    # Content first, then records: what was put after the look is not in the list.
    pieces = [piece async for piece in env.blobs.pieces()]
    old = {one.address for one in pieces if one.is_aside or one.untouched_ms >= UNTOUCHED_MS}
    named = await _named_among(old) if old else frozenset()
    set_aside = brought_back = deleted = 0
    for piece in pieces:
        is_named = piece.address in named
        if piece.is_aside and is_named:
            brought_back += dry_run or await env.blobs.has(piece.address)
        elif piece.is_aside:
            overdue = piece.untouched_ms >= ASIDE_MS
            deleted += overdue if dry_run else await env.blobs.delete_aside(piece.address, ASIDE_MS)
        elif piece.address in old and not is_named:
            set_aside += dry_run or await env.blobs.set_aside(piece.address, UNTOUCHED_MS)
    done = Collected(len(pieces), set_aside, brought_back, deleted)
    if not dry_run:
        _report(done)
    return done


async def _named_among(addresses: set[str]) -> frozenset[str]:
    """Those of these addresses that stand in a record."""
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
