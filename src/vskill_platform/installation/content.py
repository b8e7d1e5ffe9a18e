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
    #: Those that the source listed and did not have when they were read; they count as neither copied nor verified.
    missing: tuple[str, ...] = ()


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
    wanted = await _addresses(here)
    known = await _addresses(there)
    lacking = sorted(wanted - known)
    # The collector may have deleted these meanwhile, or the source has lost them: whoever runs this has to know.
    missing: list[str] = []
    for done, address in enumerate(lacking, start=1):
        data = await here.get(address)
        if data is None:
            missing.append(address)
        else:
            await there.put(address, data)
        progress("content copied", done, len(lacking))
    copied = len(lacking) - len(missing)
    if not verify:
        return MovedContent(len(wanted), copied, 0, missing=tuple(missing))
    differ, compared = [], sorted(wanted.difference(missing))
    for done, address in enumerate(compared, start=1):
        data = await here.get(address)
        if data is None:
            missing.append(address)
        elif await there.get(address) != data:
            await there.put(address, data, replace=True)
            if await there.get(address) != data:
                differ.append(address)
        progress("content verified", done, len(compared))
    return MovedContent(len(wanted), copied, len(wanted) - len(missing), tuple(differ), tuple(missing))


async def _addresses(blobs: Blobs) -> set[str]:
    """What was set aside too: a record may name it again."""
    return {piece.address async for piece in blobs.pieces()}


@contextlib.asynccontextmanager
async def _opened(location: str) -> AsyncIterator[Blobs]:
    check_location(location, "The place of the content")
    async with AsyncExitStack() as stack:
        yield await open_blobs(location, stack, Metrics())
