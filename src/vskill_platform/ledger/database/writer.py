"""The one thread that writes. It commits everything that waits in one transaction, so that one flush to the disk
serves many callers, and gives each caller its own result.

Operations of the same kind run together, by one function: a thread waits for the GIL after every call of SQLite, so the
number of calls counts, not the number of operations. For the same reason an event loop hands its operations over
together, at the end of its turn: a writer that woke at the first one would compete with the loop for the GIL while it
still makes the others.

An operation that is refused (a conflict) is a result, not a failure: the others of its group are not touched. If
the group itself fails, all of it is rolled back and each operation runs again alone.

The thread reports success only after a check of the database's files: if somebody has deleted or replaced one, it saves
what it can and ends.
"""

import asyncio
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

import msgspec
import structlog

from vskill_core.errors import PlatformError, StoreReplaced, StoreUnavailable
from vskill_platform.ledger.database.connections import OpenFiles, begin
from vskill_platform.ledger.database.failures import translate
from vskill_platform.ledger.database.waiting import Watches

_log = structlog.get_logger(__name__)

A = TypeVar("A")
R = TypeVar("R")

#: A transaction takes no more operations than this, and no new ones after this long.
MAX_OPERATIONS = 256
MAX_SECONDS = 0.005
#: After a transaction that took longer than this, the writer pauses for a tenth of its time (at most PAUSE_S), so that
#: other processes can begin theirs: one that waits tries at least every 13 ms.
SLOW_S = 0.05
PAUSE_S = 0.03
#: An INSERT of more rows is cut into statements of this many.
ROWS_AT_ONCE = 32


class Tx:
    """The running transaction, as operations see it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.execute = connection.execute
        #: Channels whose watches wake once this is committed.
        self.signals: set[str] = set()


class Insert:
    """An INSERT of any number of rows, many in one statement, because every call of SQLite releases the GIL and waits
    for it again. Each size is compiled once, when it first occurs."""

    def __init__(self, head: str, width: int, tail: str = "") -> None:
        self._head = head
        self._row = "(" + ", ".join("?" * width) + ")"
        self._tail = tail
        self._statements: dict[int, str] = {}

    def into(self, tx: Tx, rows: Sequence[Sequence[object]]) -> None:
        for start in range(0, len(rows), ROWS_AT_ONCE):
            some = rows[start : start + ROWS_AT_ONCE]
            tx.execute(self._statement(len(some)), list(chain.from_iterable(some)))

    def _statement(self, size: int) -> str:
        statement = self._statements.get(size)
        if statement is None:
            values = ", ".join([self._row] * size)
            statement = self._statements[size] = f"{self._head} VALUES {values} {self._tail}"
        return statement


class WriteKind(msgspec.Struct, Generic[A, R], frozen=True, eq=False):
    """A kind of operation: how any number of them are executed together.

    `run` may be called again with the same arguments after a rollback. Its results are in the order of the
    arguments; an error among them is raised to that one caller.
    """

    name: str
    run: Callable[[Tx, Sequence[A]], Sequence[R | PlatformError]]
    #: How many are executed before the writer looks at the clock.
    at_once: int = MAX_OPERATIONS


class WriteJob:
    """One caller's operation, and where its result is awaited."""

    __slots__ = ("argument", "future", "kind", "loop", "urgent")

    def __init__(
        self, kind: WriteKind[Any, Any], argument: object, loop: asyncio.AbstractEventLoop, *, urgent: bool
    ) -> None:
        self.kind = kind
        self.argument = argument
        self.urgent = urgent
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()


_Results = list[tuple[WriteJob, object]]


class Writer:
    """Accepts operations from any thread and event loop; executes them in its own thread."""

    def __init__(self, path: Path, connection: sqlite3.Connection, watches: Watches, busy_ms: int) -> None:
        self._path = path
        self._files = OpenFiles(path)
        self._connection = connection
        self._watches = watches
        self._busy_ms = busy_ms
        #: What each event loop has submitted in its current turn; only that loop's thread touches it.
        self._turns: dict[asyncio.AbstractEventLoop, list[WriteJob]] = {}
        #: None asks the thread to end.
        self._inbox: SimpleQueue[list[WriteJob] | None] = SimpleQueue()
        self._urgent: deque[WriteJob] = deque()
        self._normal: deque[WriteJob] = deque()
        #: Taken out of the queues and not answered yet.
        self._in_hand: list[WriteJob] = []
        #: How long the last transaction blocked other writers.
        self._held_s = 0.0
        self._stopping = False
        self._asked_to_end = False
        self._ended = False
        #: The error that ended the thread, if any.
        self._death: BaseException | None = None
        self._refusing = threading.Lock()
        self._thread = threading.Thread(target=self._work, name=f"writer of {path.name}", daemon=True)
        self._thread.start()

    def submit(self, job: WriteJob) -> None:
        """Accept it; call this in the job's event loop. The thread gets it at the end of the loop's turn."""
        if self._stopping or self._death is not None:
            raise self._closed_error()
        turn = self._turns.get(job.loop)
        if turn is None:
            turn = self._turns[job.loop] = []
            job.loop.call_soon(self.hand_over, job.loop)
        turn.append(job)

    def hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give the thread this loop's operations now, without waiting for the end of its turn."""
        jobs = self._turns.pop(loop, None)
        if jobs is None:
            return
        self._inbox.put(jobs)
        # Another thread may have stopped the writer since the jobs were accepted.
        if self._ended:
            self._refuse_rest()

    def check_files(self) -> None:
        """Raise StoreReplaced if a file of the database is no longer the open one. Blocks for microseconds."""
        if isinstance(self._death, StoreReplaced):
            raise self._death
        self._files.check()

    def stop(self) -> None:
        """Finish what was handed over, then end. Blocks."""
        self._stopping = True
        self._inbox.put(None)
        self._thread.join()
        self._refuse_rest()

    def _refuse_rest(self) -> None:
        # Every caller that finds the writer gone does this, so several may at once.
        with self._refusing:
            while rest := self._next_group():
                self._deliver([(job, self._closed_error()) for job in rest])

    def _closed_error(self) -> StoreUnavailable:
        if self._death is None:
            return StoreUnavailable(f"{self._path} is closed", file=str(self._path))
        if isinstance(self._death, StoreReplaced):
            return self._death
        reason = repr(self._death)
        return StoreUnavailable(
            f"{self._path}: the thread that writes has died of {reason}; restart the process",
            file=str(self._path),
            reason=reason,
        )

    # The thread.

    def _work(self) -> None:
        try:
            while self._wait_for_work():
                results = self._write()
                self._files.check()
                self._deliver(results)
                self._in_hand = []
                # Without a pause this thread would begin again before another process tries, which on a slow disk
                # would wait for as long as there is work here.
                if self._held_s > SLOW_S:
                    time.sleep(min(self._held_s / 10, PAUSE_S))
        except BaseException as error:  # noqa: BLE001 - callers must not wait for a dead thread
            self._death = error
            _log.critical("the thread that writes has died", file=str(self._path), exc_info=True)
        self._ended = True
        self._close_connection()
        if self._death is not None:
            self._deliver([(job, self._closed_error()) for job in self._in_hand])
            self._refuse_rest()

    def _close_connection(self) -> None:
        if isinstance(self._death, StoreReplaced) and not self._files.can_be_saved():
            self._connection.close()
            return
        # If the checkpoint fails, nothing is lost: the log is as durable as the file, and the next process reads it.
        self._roll_back()
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._connection.close()

    def _wait_for_work(self) -> bool:
        """False when it is time to end."""
        if not self._urgent and not self._normal and not self._asked_to_end:
            self._sort(self._inbox.get())
        return bool(self._urgent or self._normal)

    def _next_group(self) -> list[WriteJob]:
        """Everything that waits, urgent ones first, up to the limit."""
        with suppress(Empty):
            while True:
                self._sort(self._inbox.get_nowait())
        group: list[WriteJob] = []
        for waiting in (self._urgent, self._normal):
            while waiting and len(group) < MAX_OPERATIONS:
                group.append(waiting.popleft())
        return group

    def _sort(self, jobs: list[WriteJob] | None) -> None:
        if jobs is None:
            self._asked_to_end = True
            return
        for job in jobs:
            (self._urgent if job.urgent else self._normal).append(job)

    def _write(self) -> _Results:
        try:
            begin(self._connection, self._busy_ms)
        except sqlite3.Error as error:
            # The lock or the file is at fault: retrying each operation alone would only wait as long again.
            self._in_hand = self._next_group()
            return [(job, translate(error, self._path)) for job in self._in_hand]
        # Only now, because more operations came while this thread waited for the lock.
        self._in_hand = jobs = self._next_group()
        try:
            results, signals = self._finish(jobs)
        except Exception:  # noqa: BLE001 - one operation caused it, and meets it again when it runs alone
            self._roll_back()
            return [(job, self._write_alone(job)) for job in jobs]
        # Outside the `try`: a failure after the commit must not run the operations again.
        self._watches.wake(signals)
        return results

    def _write_alone(self, job: WriteJob) -> object:
        try:
            begin(self._connection, self._busy_ms)
            ((_, outcome),), signals = self._finish([job])
        except sqlite3.Error as error:
            self._roll_back()
            return translate(error, self._path)
        except Exception as error:  # noqa: BLE001 - the caller gets it, and the writer goes on
            self._roll_back()
            return error
        self._watches.wake(signals)
        return outcome

    def _finish(self, jobs: list[WriteJob]) -> tuple[_Results, set[str]]:
        """Execute and commit; operations for which there was no time go back to the front of their queue."""
        began = time.monotonic()
        tx = Tx(self._connection)
        results = self._execute(tx, jobs)
        self._connection.execute("COMMIT")
        self._held_s = time.monotonic() - began
        done = {job for job, _ in results}
        for job in reversed(jobs if len(results) < len(jobs) else ()):
            if job not in done:
                (self._urgent if job.urgent else self._normal).appendleft(job)
        return results, tx.signals

    def _execute(self, tx: Tx, jobs: list[WriteJob]) -> _Results:
        """Run the operations kind by kind, until the time is over."""
        started = time.monotonic()
        results: _Results = []
        for group in _by_kind(jobs):
            outcomes = group[0].kind.run(tx, [job.argument for job in group])
            results.extend(zip(group, outcomes, strict=True))
            if time.monotonic() - started > MAX_SECONDS:
                break
        return results

    def _roll_back(self) -> None:
        # Some errors (a full disk) have rolled back already. A failed rollback shows at the next BEGIN.
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _deliver(self, results: _Results) -> None:
        """Give results to their callers, with one call into each event loop for the whole group."""
        by_loop: dict[asyncio.AbstractEventLoop, _Results] = {}
        for result in results:
            by_loop.setdefault(result[0].loop, []).append(result)
        for loop, mine in by_loop.items():
            call_in(loop, _settle, mine)


def call_in(loop: asyncio.AbstractEventLoop, function: Callable[[A], None], argument: A) -> None:
    """Call it in that event loop; nobody waits in one that is closed."""
    try:
        loop.call_soon_threadsafe(function, argument)
    except RuntimeError:
        if not loop.is_closed():
            raise


def _settle(results: _Results) -> None:
    for job, outcome in results:
        # A cancelled waiter does not learn the outcome of its write.
        if job.future.done():
            continue
        if isinstance(outcome, BaseException):
            job.future.set_exception(outcome)
        else:
            job.future.set_result(outcome)


def _by_kind(jobs: list[WriteJob]) -> Iterator[list[WriteJob]]:
    """The jobs by kind, in the order of each kind's first job, in chunks of the kind's `at_once`."""
    kinds: dict[WriteKind[Any, Any], list[WriteJob]] = {}
    for job in jobs:
        kinds.setdefault(job.kind, []).append(job)
    for kind, same in kinds.items():
        for start in range(0, len(same), kind.at_once):
            yield same[start : start + kind.at_once]
