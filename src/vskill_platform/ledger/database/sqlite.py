"""The SQLite file that holds records and messages: opened once per process, shared by the store and the queue.

Writes go to the one writer thread (`write`). Reads of one key run inline (`point_read`): 5 µs, where a thread costs
160. Reads that may be long start inline and move to a thread if they are (`read_soon`), or start in a thread (`read`).
No read transaction survives an await, because a read never awaits.
"""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from vskill_core.errors import (
    StoreError,
    StoreReadOnly,
    StoreReplaced,
    StoreUnavailable,
)
from vskill_platform.ledger.clock import Clock
from vskill_platform.ledger.database.connections import READERS, ReaderPool, connect_reader, connect_writer
from vskill_platform.ledger.database.failures import primary_code, translate
from vskill_platform.ledger.database.migrations import (
    Derive,
    Migration,
    derive_nothing,
    load_migrations,
    migrate,
)
from vskill_platform.ledger.database.waiting import Database, Watch, Watches
from vskill_platform.ledger.database.writer import Tx, WriteJob, WriteKind, Writer
from vskill_platform.machine.threads import WorkThreads

A = TypeVar("A")
R = TypeVar("R")
T = TypeVar("T")

#: Executes a statement and fetches all of its rows.
Read = Callable[[str, Sequence[Any]], list[Any]]

#: How long a write waits for other processes before it fails as busy: on a slow disk their writes take seconds.
BUSY_MS = 10_000

#: Limits of each statement of an inline read: the rows of a page of a hundred, and steps of SQLite's virtual machine
#: (about as many as a merge of several index runs needs for such a page). Either takes about a millisecond.
_SOON_ROWS = 101
_SOON_STEPS = 10_000
#: If the next row takes this many times _SOON_STEPS, SQLite interrupts the statement itself.
_MOST_CALLS = 4

#: Needed for RETURNING, `ON CONFLICT` without a target, and the operator `->>`.
OLDEST_SQLITE = (3, 38, 0)


#: Rare operations, each given as a function.
_CALLS: WriteKind[Callable[[Tx], Any], Any] = WriteKind(
    "call", lambda tx, calls: [call(tx) for call in calls]
)


class SqliteDatabase(Database):
    """An open database file. Opening blocks and may migrate: in an event loop use `open`."""

    def __init__(
        self,
        path: Path | str,
        clock: Clock,
        *,
        busy_ms: int = BUSY_MS,
        migrations: tuple[Migration, ...] | None = None,
        derive: Derive = derive_nothing,
    ) -> None:
        super().__init__()
        self.path = Path(path)
        self.clock = clock
        writing = _open_writer(self.path, busy_ms, migrations or load_migrations("sqlite"), derive)
        self._point = connect_reader(self.path)
        self._patience = _Patience()
        self._readers = ReaderPool(self.path)
        self._threads = WorkThreads("reader", READERS)
        self._watches = Watches()
        self._writer = Writer(self.path, writing, self._watches, busy_ms)

    @classmethod
    async def open(
        cls, path: Path | str, clock: Clock, *, busy_ms: int = BUSY_MS, derive: Derive = derive_nothing
    ) -> "SqliteDatabase":
        """`derive` computes a collection's columns again, for a migration that asks for it."""
        return await asyncio.to_thread(cls, path, clock, busy_ms=busy_ms, derive=derive)

    def now(self) -> int:
        return self.clock.now()

    # Writing.

    async def write(self, kind: WriteKind[A, R], argument: A, *, urgent: bool = False) -> R:
        """Execute it durably, in one transaction with other waiting writes. If cancelled, the outcome is unknown."""
        return await self.submit(kind, argument, urgent=urgent)

    def submit(self, kind: WriteKind[A, R], argument: A, *, urgent: bool = False) -> asyncio.Future[R]:
        """The same without waiting."""
        job = WriteJob(kind, argument, asyncio.get_running_loop(), urgent=urgent)
        self._writer.submit(job)
        return job.future

    async def run(self, call: Callable[[Tx], R]) -> R:
        """Execute a function durably. It may be called again after a rollback."""
        done: R = await self.write(_CALLS, call)
        return done

    async def check_files(self) -> None:
        """Raise StoreReplaced if somebody deleted or replaced a file of the open database. By then the writer knows it
        and has saved what it could."""
        self._require_open()
        try:
            # Inline: this takes microseconds, and in a thread other work would come first.
            self._writer.check_files()
        except StoreReplaced:
            # Any write makes the writer check its files.
            await self.run(lambda _: None)
            raise

    # Reading.

    def point_read(self, statement: str, parameters: Sequence[object] = ()) -> list[Any]:
        try:
            return self._point.execute(statement, parameters).fetchall()
        except sqlite3.Error as error:
            raise translate(error, self.path) from error

    async def read_soon(self, function: Callable[[Read], T]) -> T:
        """Call it inline; if that takes many rows or steps, or fails, call it again in a thread. Each statement sees
        one state of the file; several statements may see different ones."""
        try:
            self._point.set_progress_handler(self._patience.is_over, _SOON_STEPS)
            try:
                return function(self._read_few)
            finally:
                self._point.set_progress_handler(None, 0)
        except (_LongRead, sqlite3.Error):
            return await self.read(lambda connection: function(reader(connection)))

    def _read_few(self, statement: str, parameters: Sequence[Any]) -> list[Any]:
        """After the first row, end the statement here rather than by SQLite's interrupt, after which Python would
        recompile it for each later run."""
        patience, rows = self._patience, []
        patience.begin()
        with closing(self._point.execute(statement, parameters)) as cursor:
            patience.wait_for_rows()
            for row in cursor:
                rows.append(row)
                if len(rows) > _SOON_ROWS or patience.is_long:
                    raise _LongRead
        return rows

    async def read(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Call it in a thread with a read-only connection."""
        try:
            self._require_open()
            return await self._threads.run(self._read, function)
        except StoreError:
            # A new connection cannot read if the log is gone, and its error does not say why.
            if not self._closed:
                await self.check_files()
            raise

    def _require_open(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"{self.path} is closed", file=str(self.path))

    def _read(self, function: Callable[[sqlite3.Connection], T]) -> T:
        try:
            connection = self._readers.take()
            try:
                return function(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                self._readers.give_back(connection)
        except sqlite3.Error as error:
            raise translate(error, self.path) from error

    # Waiting.

    @contextmanager
    def watch(self, channel: str) -> Iterator[Watch]:
        watch = Watch(lambda: int(self.point_read("PRAGMA data_version")[0][0]))
        self._watches.add(channel, watch)
        try:
            yield watch
        finally:
            self._watches.remove(channel, watch)

    def wake(self, channel: str) -> None:
        self._watches.wake((channel,))

    # Closing.

    async def close(self) -> None:
        """Finish accepted writes, move them from the log into the file, and close it."""
        if not self._closed:
            self._closed = True
            # In the thread that reads with it: another one could close it in the middle of a read.
            self._point.close()
            self._readers.close()
            self._threads.close()
            self._writer.hand_over(asyncio.get_running_loop())
            await asyncio.to_thread(self._writer.stop)


class _Patience:
    """Whether a statement has taken too many steps. SQLite calls the progress handler every _SOON_STEPS, counted over
    all runs of a statement, so the first call says nothing."""

    def __init__(self) -> None:
        self._calls = 0
        self._most = 1

    def begin(self) -> None:
        """A statement starts: let SQLite interrupt it if it takes long before its first row."""
        self._calls, self._most = 0, 1

    def wait_for_rows(self) -> None:
        """There is a row: from now on the reader itself checks `is_long`."""
        self._most = _MOST_CALLS

    @property
    def is_long(self) -> bool:
        return self._calls > 1

    def is_over(self) -> bool:
        """SQLite's progress handler: whether to interrupt the statement."""
        self._calls += 1
        return self._calls > self._most


class _LongRead(Exception):
    """There is more to read than is read inline."""


def reader(connection: sqlite3.Connection) -> Read:
    """A `Read` with this connection, without limits."""
    return lambda statement, parameters: connection.execute(statement, parameters).fetchall()


def _open_writer(
    path: Path, busy_ms: int, migrations: tuple[Migration, ...], derive: Derive
) -> sqlite3.Connection:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        raise StoreUnavailable(
            f"{path}: SQLite {needed} or newer is needed, and this Python has {sqlite3.sqlite_version}",
            file=str(path),
        )
    connection: sqlite3.Connection | None = None
    try:
        connection = connect_writer(path)
        migrate(connection, path, migrations, derive, busy_ms)
    except BaseException as error:
        if connection is not None:
            connection.close()
        if not isinstance(error, sqlite3.Error):
            raise
        folder, cannot_open = path.parent, primary_code(error) == sqlite3.SQLITE_CANTOPEN
        if cannot_open and folder.is_dir() and not os.access(folder, os.W_OK):
            # SQLite needs to write beside the file, and its error does not say so.
            message = f"{path}: the folder {folder} is read-only ({error})"
            raise StoreReadOnly(message, file=str(path)) from error
        raise translate(error, path) from error
    return connection
