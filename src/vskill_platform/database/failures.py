"""Translates SQLite's errors into PlatformErrors that name the file."""

import sqlite3
from pathlib import Path

from vskill_platform.domain.errors import (
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


def primary_code(error: sqlite3.Error) -> int:
    """The result code without its extension; 0 for errors of the module itself."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def translate(error: sqlite3.Error, path: Path) -> PlatformError:
    """The typed error of a driver's error, with the driver's own words."""
    kind, meaning = _BY_CODE.get(primary_code(error), (None, ""))
    details = {"file": str(path), "reason": str(error)}
    if kind is not None:
        return kind(f"{path}: {meaning} ({error})", **details)
    if isinstance(error, sqlite3.OperationalError | sqlite3.ProgrammingError | sqlite3.InterfaceError):
        return StoreUnavailable(f"{path}: {error}", **details)
    return StoreError(f"{path}: {error}", **details)
