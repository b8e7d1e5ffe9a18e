"""Translates SQLite's errors into PlatformErrors that name the file."""

import os
import sqlite3
from pathlib import Path

from vskill_core.errors import (
    PlatformError,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)

_BY_CODE: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_FULL: (StoreFull, "the disk is full"),
    sqlite3.SQLITE_READONLY: (StoreReadOnly, "the file or its folder is read-only"),
    sqlite3.SQLITE_BUSY: (StoreBusy, "another process holds its lock"),
    sqlite3.SQLITE_LOCKED: (StoreBusy, "another connection holds its lock"),
    sqlite3.SQLITE_CORRUPT: (StoreCorrupt, "its content is damaged"),
    sqlite3.SQLITE_NOTADB: (StoreCorrupt, "it is not a SQLite database"),
}


#: Errors that SQLite also raises on a full disk, if it cannot create or grow the files beside the database.
_PERHAPS_FULL = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
#: Below one growth step of the shared index, the disk is full.
_LEAST_ROOM = 32_768


def _is_full(path: Path) -> bool:
    try:
        room = os.statvfs(path.parent)
    except OSError:
        return False
    return room.f_bavail * room.f_frsize < _LEAST_ROOM


def primary_code(error: sqlite3.Error) -> int:
    """The result code without its extension; 0 for errors of the module itself."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def translate(error: sqlite3.Error, path: Path) -> PlatformError:
    """The PlatformError for a driver's error, with the driver's message."""
    code = primary_code(error)
    if code in _PERHAPS_FULL and _is_full(path):
        code = sqlite3.SQLITE_FULL
    kind, meaning = _BY_CODE.get(code, (None, ""))
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_IOERR_GETTEMPPATH:
        kind, meaning = StoreUnavailable, "no folder for temporary files can be written; set TMPDIR to one"
    details = {"file": str(path), "reason": str(error)}
    if kind is not None:
        return kind(f"{path}: {meaning} ({error})", **details)
    if isinstance(error, sqlite3.OperationalError | sqlite3.ProgrammingError | sqlite3.InterfaceError):
        return StoreUnavailable(f"{path}: {error}", **details)
    return StoreError(f"{path}: {error}", **details)
