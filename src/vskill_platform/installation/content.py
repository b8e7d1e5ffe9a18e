"""Moving content to another place: files, a bucket of S3, in either direction, while the registry works.

A run copies what the target lacks, so it can be repeated: an interrupted one is taken up, and one after the old
processes have stopped brings what was written meanwhile. Bytes are copied as they are; whether they are what their
address says is for the scrub to find. Verifying reads each piece of both places again.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from vskill_core.errors import InvalidInput, InvalidSettings, NotFound
from vskill_platform.bootstrap import open_blobs
from vskill_platform.installation.snapshot import Progress, tell_nobody
from vskill_platform.ledger.blobs.contract import Blobs
from vskill_platform.observing.metrics import Metrics
from vskill_platform.setting_values import check_location

_KINDS = ("files:", "s3:")


class MovedContent(msgspec.Struct, frozen=True):
    """How a run ended."""

    pieces: int
    copied: int
    #: Pieces that were compared byte by byte after the copy.
    verified: int
    #: Those that the target holds with other bytes although they were written again.
    differ: tuple[str, ...] = ()


def is_content(location: str) -> bool:
    return location.startswith(_KINDS)


async def move_content(
    source: str, target: str, progress: Progress = tell_nobody, *, verify: bool = False
) -> MovedContent:
    """Copy what the target lacks; with `verify`, compare everything, and copy again what differs."""
    if not (is_content(source) and is_content(target)):
        fix = "write files:FOLDER or s3://BUCKET/FOLDER on both sides"
        raise InvalidSettings(f"records and content are moved one at a time: {fix}.", fix=fix)
    if source == target:
        raise InvalidInput("the source and the target are the same place", field="to")
    kind, _, place = source.partition(":")
    if kind == "files" and not await asyncio.to_thread(Path(place).is_dir):
        raise NotFound(f"There is no folder {place}.", file=place)
    async with _opened(source) as here, _opened(target) as there:
        return await copy_content(here, there, progress, verify=verify)


async def copy_content(here: Blobs, there: Blobs, progress: Progress, *, verify: bool) -> MovedContent:
    """The same between two open places."""
    wanted = await _addresses(here)
    known = await _addresses(there)
    missing = sorted(wanted - known)
    for done, address in enumerate(missing, start=1):
        data = await here.get(address)
        # The collector may have deleted it meanwhile: no record names it.
        if data is not None:
            await there.put(address, data)
        progress("content copied", done, len(missing))
    if not verify:
        return MovedContent(len(wanted), len(missing), 0)
    differ = []
    for done, address in enumerate(sorted(wanted), start=1):
        data = await here.get(address)
        if data is not None and await there.get(address) != data:
            await there.put(address, data, replace=True)
            if await there.get(address) != data:
                differ.append(address)
        progress("content verified", done, len(wanted))
    return MovedContent(len(wanted), len(missing), len(wanted), tuple(differ))


async def _addresses(blobs: Blobs) -> set[str]:
    """What was set aside too: a record may name it again."""
    return {piece.address async for piece in blobs.pieces()}


@contextlib.asynccontextmanager
async def _opened(location: str) -> AsyncIterator[Blobs]:
    check_location(location, "The place of the content")
    async with AsyncExitStack() as stack:
        yield await open_blobs(location, stack, Metrics())
