"""Stored content, for operators: what is damaged and since when, the progress of the scrub, requesting a repair, and
deleting what no record names."""

import msgspec

from vskill_client.wire.base import ActionRequest, NoParameters, Wire, maybe_time
from vskill_core.errors import NotFound, Unsupported
from vskill_platform.actions.action import Digest, Services, action
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.domain.operation.damage import Damage
from vskill_platform.store.operation.jobs import read_job
from vskill_platform.store.people.audit import note
from vskill_platform.store.stored_content import REPAIR, ask_for_repair, list_damage, read_damage
from vskill_platform.store.tasks import read_task
from vskill_platform.upkeep.collector import collect
from vskill_platform.upkeep.scrub import ScrubProgress, least_charge

CONTENT = "/api/v1/admin/content"
#: Damaged pieces that an answer lists; the number is always whole.
MOST_LISTED = 1_000


class RepairContent(ActionRequest, frozen=True, kw_only=True):
    """Content that is to be repaired now."""

    #: its digest, as the list names it
    digest: Digest


class CollectContent(ActionRequest, frozen=True, kw_only=True):
    """Content that no record names is to be set aside or deleted."""

    #: only say what would be done
    dry_run: bool = False


class DamageView(Wire, frozen=True):
    """Content that is missing or damaged."""

    digest: str
    #: `missing`, `cut` or `changed`
    kind: str
    since: str
    #: records that name it, at most 20
    named_by: tuple[str, ...]
    #: how the last attempt to repair it ended; empty before the first
    repair: str
    #: when it is attempted again; null where the scrub will ask for that within an hour
    next_attempt_at: str | None


class ContentAnswer(Wire, frozen=True):
    """What is damaged, and what the scrub has read."""

    #: by digest, at most 1,000
    damaged: tuple[DamageView, ...]
    #: how many there are
    total: int
    #: when all content was last read and verified; null where that never happened
    verified_at: str | None
    #: what was read then
    verified_pieces: int
    verified_bytes: int
    #: what was read since, in the pass that is under way
    pieces: int
    bytes: int
    #: pieces of this pass that the store could not read; that is no damage
    unread: int
    #: about how long a pass over all of it takes, at the rate that the settings allow; null before the first has ended
    pass_ms: int | None


class CollectedView(Wire, frozen=True):
    """What was done, or would be done, with content that no record names."""

    #: how many pieces of content there are
    pieces: int
    #: nobody named or put them for a week
    set_aside: int
    #: a record names them again
    brought_back: int
    #: set aside a day ago or earlier
    deleted: int


async def show(services: Services, _request: NoParameters) -> ContentAnswer:
    found = await list_damage()
    job, _ = await read_job("scrub")
    progress = msgspec.convert(job.state, ScrubProgress)
    under_way = progress.after != ""
    return ContentAnswer(
        damaged=tuple([await _view(one) for one in found[:MOST_LISTED]]),
        total=len(found),
        verified_at=maybe_time(progress.ended_at or None),
        verified_pieces=progress.ended_pieces,
        verified_bytes=progress.ended_bytes,
        pieces=progress.pieces if under_way else 0,
        bytes=progress.bytes if under_way else 0,
        unread=progress.unread,
        pass_ms=_pass_ms(services, progress) if progress.ended_at else None,
    )


def _pass_ms(env: Services, progress: ScrubProgress) -> int:
    """What a pass over as much as the last one read has to take; it is longer where sizes differ much."""
    charged = max(progress.ended_bytes, progress.ended_pieces * least_charge(env))
    return charged * 1_000 // env.settings.scrub_bytes_per_s


async def _view(damage: Damage) -> DamageView:
    task, _ = await read_task(REPAIR, damage.digest)
    next_attempt_at = maybe_time(task.next_attempt_at if task else None)
    return DamageView.of(damage, repair=task.outcome if task else "", next_attempt_at=next_attempt_at)


async def repair(actor: Principal, request: RepairContent) -> DamageView:
    """Write the audit entry first: the worker commits the repair separately."""
    damage = await read_damage(request.digest)
    if damage is None:
        message = f"The content {request.digest} is not known to be damaged."
        raise NotFound(message, digest=request.digest, fix="choose a digest from the list")
    await note("content repair", damage.digest, by=actor.actor, reason="asked for it")
    await ask_for_repair(damage.digest)
    return await _view(damage)


async def collect_unnamed(actor: Principal, request: CollectContent) -> CollectedView:
    if not request.dry_run:
        await note("content collected", "content", by=actor.actor, reason="asked for it")
    return CollectedView.of(await collect(dry_run=request.dry_run))


SHOW_CONTENT = action(
    show,
    "content.show",
    CONTENT,
    right=Right.ADMIN,
    summary="List content that is missing or damaged, and how much was verified",
)
REPAIR_CONTENT = action(
    repair,
    "content.repair",
    f"{CONTENT}/{{digest}}/repair",
    right=Right.ADMIN,
    errors=(NotFound,),
    summary="Repair damaged content now",
    about="A worker fetches it again from the repository and commit that it came from. Only files with the same digest "
    "are taken.",
)
COLLECT_CONTENT = action(
    collect_unnamed,
    "content.collect",
    f"{CONTENT}/collect",
    right=Right.ADMIN,
    errors=(Unsupported,),
    summary="Collect content that no record names",
    about="What no record has named for a week is set aside, and deleted a day later. A job does it every six hours.",
)
