"""The memory: what submissions are compared with, for everybody to read, and setting another file."""

from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, NoParameters, Wire, iso_time
from vskill_core.errors import InvalidInput
from vskill_platform.actions.action import Reason, Services, action
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.store.verdicts.memory import MemoryInForce, read_memory, set_memory
from vskill_scan.memory.memory import MOST_BYTES

MEMORY = "/api/v1/memory"


class MemoryToSet(ActionRequest, frozen=True, kw_only=True):
    """A file that submissions are to be compared with."""

    #: the file, as `python -m vskill_scan.make_memory` writes it
    data: Annotated[bytes, msgspec.Meta(max_length=MOST_BYTES)]
    #: why; it stands in the audit
    reason: Reason


class MemoryView(Wire, frozen=True):
    """The memory that submissions are compared with."""

    #: in words, such as `1,762 public skills, as of 2026-11`
    words: str
    #: the day of which it tells
    date: str
    #: SHA-256 of the file
    digest: str
    #: the rules that found what its skills can do
    ruleset: str
    skills: int
    hosts: int
    names: int
    #: the day of which the memory of this release tells
    packaged_date: str
    #: why the file that was set cannot be used, so that the release's own takes its place
    problem: str = ""
    #: who set it, when and why; None where it is the release's own
    set_by: str | None = None
    set_at: str | None = None
    reason: str | None = None


async def show(services: Services, _request: NoParameters) -> MemoryView:
    return _view(services, await read_memory())


async def update(services: Services, actor: Principal, request: MemoryToSet) -> MemoryView:
    return _view(services, await set_memory(request.data, by=actor.actor, reason=request.reason))


def _view(services: Services, found: MemoryInForce) -> MemoryView:
    memory, stored = found.memory, found.stored
    return MemoryView(
        words=memory.words,
        date=memory.date,
        digest=memory.digest,
        ruleset=memory.ruleset,
        skills=len(memory),
        hosts=len(memory.hosts),
        names=len(memory.names),
        packaged_date=services.packaged_memory().date,
        problem=found.problem,
        set_by=stored.by if stored else None,
        set_at=iso_time(stored.at) if stored else None,
        reason=stored.reason if stored else None,
    )


SHOW_MEMORY = action(
    show,
    "memory.show",
    MEMORY,
    right=Right.ANYONE,
    summary="Show what submissions are compared with",
    about="Facts and hashes of public skills: no text of them, and no judgement about them.",
)
UPDATE_MEMORY = action(
    update,
    "memory.update",
    MEMORY,
    right=Right.ADMIN,
    errors=(InvalidInput,),
    body_field="data",
    body_media="application/octet-stream",
    most_body=MOST_BYTES,
    summary="Set the file that submissions are compared with",
    about="It counts for every decision from now on, in all processes. It is at most 2 MiB.",
)
