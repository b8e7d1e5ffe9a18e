"""The scrub: reads every piece of content that a record names, again and again, and verifies it by its digest.

It walks records, not the content store, so it finds missing content too. A run of the job reads no more than its share
of bytes and saves its position in the job's record. It notes damage, and removes the note once the content is whole
again.
"""

from collections.abc import AsyncIterator, Iterable

import msgspec

from vskill_core.errors import BlobUnavailable, ContentDamaged
from vskill_platform.domain.operation.damage import Damage
from vskill_platform.domain.operation.task import Task, task_key
from vskill_platform.domain.skills.content_names import NAMING, bundles_named
from vskill_platform.domain.submissions.states import State
from vskill_platform.ledger.kv.collections import SUBMISSIONS
from vskill_platform.ledger.kv.entries import Entry
from vskill_platform.records import Skips, decode
from vskill_platform.store import stored_content
from vskill_platform.worker_context import Env, require_env

#: How often the job runs.
EVERY_MS = 5_000
#: A pass begins this long after the previous one began, or once that has ended.
PASS_EVERY_MS = 600_000
#: A repair that failed is tried again after this long.
REPAIR_AGAIN_MS = 3_600_000
#: Records per run, however small their content is, and records per read.
MOST_RECORDS = 1_000
PAGE = 200
DAY_S = 86_400
#: After this many unreadable pieces in a row, a run ends and counts as failed.
MOST_UNREAD = 3


class ScrubProgress(msgspec.Struct, frozen=True):
    """Where the scrub is, as the job's record keeps it."""

    #: The next record comes after this key; empty: the pass is over.
    after: str = ""
    #: Bytes that earlier runs read beyond their share.
    owed: int = 0
    #: Start of the current or last pass, and its figures.
    began_at: int = 0
    pieces: int = 0
    bytes: int = 0
    #: Pieces that the store could not read; they do not count as damaged.
    unread: int = 0
    #: How many in a row the last run could not read at its end. After `MOST_UNREAD` it gave up; the next one goes on
    #: behind them.
    unread_in_a_row: int = 0
    #: When a whole pass last ended, and what it had read; 0: none has.
    ended_at: int = 0
    ended_pieces: int = 0
    ended_bytes: int = 0


class CheckedPiece(msgspec.Struct, frozen=True):
    """One piece of content that was looked at."""

    digest: str
    size: int = 0
    #: None if it is whole, or could not be read.
    damage: ContentDamaged | None = None
    #: False: the store could not read it; that is not damage.
    is_read: bool = True


class CheckedRecord(msgspec.Struct, frozen=True):
    """A record that names content."""

    key: str
    #: The content that no earlier record named.
    pieces: tuple[CheckedPiece, ...]
    #: Damage in all content that it names.
    damages: tuple[ContentDamaged, ...]


async def scrub(progress: ScrubProgress) -> ScrubProgress:
    """Continue for one run's share of bytes."""
    env = require_env("kv")
    progress = msgspec.structs.replace(progress, unread_in_a_row=0)
    known = await stored_content.list_damage()
    await _retry_repairs(known)
    share = env.settings.scrub_bytes_per_s * EVERY_MS // 1000
    if progress.owed >= share:
        return msgspec.structs.replace(progress, owed=progress.owed - share)
    # A pass with a start in the future began before the clock went back, and does not count.
    if not progress.after and 0 <= env.kv.now() - progress.began_at < PASS_EVERY_MS:
        return msgspec.structs.replace(progress, owed=0)
    return await _read_on(progress, share, {damage.digest for damage in known})


def least_charge(env: Env) -> int:
    """What a piece counts for at least, in bytes of a run's share: then the requests of a day are no more than set."""
    if not env.blobs.is_paid_by_request:
        return 0
    return env.settings.scrub_bytes_per_s * DAY_S // env.settings.scrub_requests_per_day


async def _read_on(progress: ScrubProgress, share: int, known: set[str]) -> ScrubProgress:
    env = require_env("kv")
    least = least_charge(env)
    if not progress.after:
        progress = msgspec.structs.replace(progress, began_at=env.kv.now(), pieces=0, bytes=0, unread=0)
    read, records = progress.owed, 0
    async for record in check_records(progress.after):
        await _note(record, known)
        unread_in_a_row = progress.unread_in_a_row
        for piece in record.pieces:
            unread_in_a_row = 0 if piece.is_read else unread_in_a_row + 1
        if unread_in_a_row >= MOST_UNREAD:
            # Where the store itself is away, this raises, and the next run begins where this one did.
            await env.blobs.check()
        size = sum(piece.size for piece in record.pieces)
        env.metrics.content_checked_bytes.inc(size)
        read += sum(max(piece.size, least) for piece in record.pieces)
        records += 1
        progress = msgspec.structs.replace(
            progress,
            after=record.key,
            pieces=progress.pieces + len(record.pieces),
            bytes=progress.bytes + size,
            unread=progress.unread + sum(not piece.is_read for piece in record.pieces),
            unread_in_a_row=unread_in_a_row,
        )
        if read >= share or records == MOST_RECORDS or unread_in_a_row >= MOST_UNREAD:
            return msgspec.structs.replace(progress, owed=max(read - share, 0))
    return msgspec.structs.replace(
        progress,
        after="",
        owed=0,
        ended_at=env.kv.now(),
        ended_pieces=progress.pieces,
        ended_bytes=progress.bytes,
    )


async def _note(record: CheckedRecord, known: set[str]) -> None:
    """Note its damage, and remove the notes of what is whole again."""
    for damage in record.damages:
        await stored_content.note_damage(damage, (record.key,))
    for piece in record.pieces:
        if piece.damage is None and piece.is_read and piece.digest in known:
            await stored_content.forget_damage(piece.digest, "it was read and found whole")


async def check_records(after: str = "") -> AsyncIterator[CheckedRecord]:
    """Each record after this key, with the content that it names, read and verified. Nothing is written."""
    seen: dict[str, ContentDamaged | None] = {}
    async for key, digests in _named_after(after):
        pieces = [await _check_piece(digest) for digest in digests if digest not in seen]
        seen |= {piece.digest: piece.damage for piece in pieces}
        damages = tuple(damage for digest in digests if (damage := seen[digest]) is not None)
        yield CheckedRecord(key, tuple(pieces), damages)


async def _named_after(after: str) -> AsyncIterator[tuple[str, tuple[str, ...]]]:
    """Records that name content, after this key, in the order of `NAMING`."""
    env = require_env("kv")
    skips = Skips("scrub")
    start = next((place for place, prefix in enumerate(NAMING) if after.startswith(prefix)), 0)
    for prefix in NAMING[start:]:
        position = after if after.startswith(prefix) else None
        while True:
            page = await env.kv.scan(prefix, after=position, limit=PAGE)
            skips.failed(page.failed)
            for entry in page.items:
                known_by_version = _is_named_by_its_version(entry)
                yield entry.key, () if known_by_version else bundles_named(entry.key, entry.value)
            position = page.after
            if position is None:
                break
    skips.report(env)


def _is_named_by_its_version(entry: Entry) -> bool:
    """Whether this is a submission that is published: then its version's record names the same content."""
    is_submission = entry.key.startswith(SUBMISSIONS.prefix)
    return is_submission and SUBMISSIONS.fields["state"].read(entry.value) == State.PUBLISHED.value


async def _check_piece(digest: str) -> CheckedPiece:
    env = require_env("blobs")
    try:
        data = await env.blobs.get(digest)
    except BlobUnavailable as error:
        env.log.warning("content cannot be read", digest=digest, error=str(error))
        return CheckedPiece(digest, is_read=False)
    size = len(data or b"")
    try:
        await stored_content.verify_content(data, digest)
    except ContentDamaged as damage:
        return CheckedPiece(digest, size, damage)
    return CheckedPiece(digest, size)


async def _retry_repairs(known: Iterable[Damage]) -> None:
    """Ask for missing repairs, and again for those that failed."""
    kv = require_env("kv").kv
    wanted = {task_key(stored_content.REPAIR, damage.digest): damage.digest for damage in known}
    settled = await kv.get_many(wanted)
    for key, digest in wanted.items():
        entry = settled.found.get(key)
        is_due = (
            key in settled.missing if entry is None else _is_worth_another_try(decode(entry, Task), kv.now())
        )
        if is_due:
            await stored_content.ask_for_repair(digest)


def _is_worth_another_try(task: Task, now: int) -> bool:
    return not task.state.active and abs(now - task.updated_at) >= REPAIR_AGAIN_MS
