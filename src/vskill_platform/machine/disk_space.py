"""How much room is left where a process keeps its records and content."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from vskill_platform.settings import Settings

_MIB = 1024 * 1024


class DiskSpace(msgspec.Struct, frozen=True):
    """One file system, by what is kept on it."""

    #: `data`, `records` or `content`
    kept: str
    free_bytes: int
    total_bytes: int
    #: The file system's number; several folders may share one.
    device: int


def look_at_disks(settings: Settings) -> tuple[DiskSpace, ...]:
    """Every folder of ours on this machine. An unreadable one is left out: readiness reports it. Blocks."""
    spaces = []
    for kept, folder in _folders(settings):
        with suppress(OSError):
            room, device = os.statvfs(folder), folder.stat().st_dev
            free, size = room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize
            spaces.append(DiskSpace(kept, free, size, device))
    return tuple(spaces)


def filling(spaces: tuple[DiskSpace, ...], settings: Settings) -> tuple[DiskSpace, ...]:
    """File systems with less space than the operator's threshold, each once."""
    by_device = {one.device: one for one in reversed(spaces)}
    return tuple(one for one in by_device.values() if one.free_bytes < settings.disk_alert_mib * _MIB)


def _folders(settings: Settings) -> Iterator[tuple[str, Path]]:
    if settings.store == "memory:":
        return
    yield "data", Path(settings.data_dir)
    engine, _, place = settings.store.partition(":")
    if engine == "sqlite":
        yield "records", Path(place).parent
    engine, _, place = settings.blobs.partition(":")
    if engine == "files":
        yield "content", Path(place)
