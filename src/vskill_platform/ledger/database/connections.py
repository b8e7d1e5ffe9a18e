"""Connections to the database file, the pool for reads in threads, and the check that the open files are still those
that other processes see.

Every connection is in autocommit mode: callers begin transactions themselves. Readers cannot write.
"""

import os
import random
import sqlite3
import time
from collections import deque
from pathlib import Path

from vskill_core.errors import NotFound, StoreReplaced
from vskill_platform.ledger.database.failures import primary_code, translate

#: SQLite's own busy timeout per attempt. Its steps grow to 100 ms, so `begin` does longer waits itself.
_BUSY_STEP_MS = 20
_READER_BUSY_MS = 1_000
#: Reads that run at once, and the connections that are kept for them.
READERS = 8


def connect(path: Path, busy_ms: int = _BUSY_STEP_MS) -> sqlite3.Connection:
    """A bare connection; creates the file if it is missing."""
    # Connections are used by several threads, one at a time; SQLite is compiled to allow it.
    connection = sqlite3.connect(
        path, timeout=busy_ms / 1000, isolation_level=None, check_same_thread=False, cached_statements=512
    )
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def connect_writer(path: Path) -> sqlite3.Connection:
    connection = connect(path)
    connection.execute("PRAGMA synchronous = FULL")
    # Do not overwrite freed pages with zeros: no secret is stored in plain text.
    connection.execute("PRAGMA secure_delete = OFF")
    connection.execute("PRAGMA cache_size = -32768")
    connection.execute("PRAGMA wal_autocheckpoint = 4000")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    return connection


def connect_reader(path: Path) -> sqlite3.Connection:
    connection = connect(path, _READER_BUSY_MS)
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA cache_size = -8192")
    return connection


def connect_view(path: Path) -> sqlite3.Connection:
    """A connection that can only read, to a file that must be there."""
    if not path.is_file():
        raise NotFound(f"There is no store in {path}.", file=str(path))
    uri = f"{path.resolve().as_uri()}?mode=ro"
    try:
        return sqlite3.connect(
            uri, timeout=_READER_BUSY_MS / 1000, isolation_level=None, check_same_thread=False, uri=True
        )
    except sqlite3.Error as error:
        raise translate(error, path) from error


def begin(connection: sqlite3.Connection, busy_ms: int) -> None:
    _retry_while_busy(connection, "BEGIN IMMEDIATE", busy_ms)


def use_wal(connection: sqlite3.Connection, busy_ms: int) -> None:
    """Let readers run beside the writer. The mode is stored in the file."""
    ((mode,),) = _retry_while_busy(connection, "PRAGMA journal_mode = WAL", busy_ms)
    if mode != "wal":
        raise sqlite3.OperationalError(
            f"its journal mode is {mode}, not wal; the file must be on a local disk"
        )


def _retry_while_busy(connection: sqlite3.Connection, statement: str, busy_ms: int) -> list[tuple[str]]:
    """Wait for short, random times, so that a process that writes all the time cannot starve another."""
    deadline = time.monotonic() + busy_ms / 1000
    while True:
        try:
            return connection.execute(statement).fetchall()
        except sqlite3.OperationalError as error:
            if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
        time.sleep(random.uniform(0.0005, 0.003))  # noqa: S311 - spreads the attempts, nothing secret


class ReaderPool:
    """Connections for reads in threads. The last one returned goes out first: its cache is warm."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: deque[sqlite3.Connection] = deque()
        self._closed = False

    def take(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            return connect_reader(self._path)

    def give_back(self, connection: sqlite3.Connection) -> None:
        if self._closed or len(self._idle) >= READERS:
            connection.close()
        else:
            self._idle.append(connection)

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()


#: Device and inode.
_Number = tuple[int, int]


class OpenFiles:
    """The database, its write-ahead log and the log's index, by their inodes at opening. If somebody deletes or
    replaces one, this process has a file that no other process sees, and SQLite keeps writing into it unnoticed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = path.with_name(f"{path.name}-wal")
        self._index = path.with_name(f"{path.name}-shm")
        self._numbers = {file: _number(file) for file in (path, self._log, self._index)}

    def check(self) -> None:
        """Raise StoreReplaced if the next process would not find what is written now. Takes microseconds."""
        for file in (self._path, self._log):
            now = _number(file)
            if now != self._numbers[file]:
                happened = "deleted" if now is None else "replaced"
                raise StoreReplaced(
                    f"{file} was {happened} while this process had it open; restart the process",
                    file=str(file),
                )

    def can_be_saved(self) -> bool:
        """Whether the database itself is in its place and no other process has begun a new log: then a checkpoint can
        still move the writes of a deleted log into the database."""
        index = _number(self._index)
        return _number(self._path) == self._numbers[self._path] and index in (
            None,
            self._numbers[self._index],
        )


def _number(file: Path) -> _Number | None:
    try:
        found = os.stat(file)  # noqa: PTH116 - a third of the time of Path.stat, at every write
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
