"""Shortages of this machine (memory, threads, disk): they are never counted against the content that met them.

Limits that we set for the content are not shortages: the code that sets one reports it itself.
"""

import errno
import resource

from vskill_core.errors import PlatformError, Shortage
from vskill_platform.domain.submissions.attempts import UNAVAILABLE_MOST_MS

#: What work waits for, in the words of a record.
MACHINE = "this machine"
#: A shortage is reported until the next attempt must have come, plus a minute.
LATELY_MS = UNAVAILABLE_MOST_MS + 60_000

_LACKS = {
    errno.EMFILE: "open files",
    errno.ENFILE: "open files",
    errno.ENOMEM: "memory",
    errno.ENOBUFS: "memory",
    errno.EAGAIN: "processes",
    errno.ENOSPC: "disk space",
    errno.EDQUOT: "disk space",
}
#: Python's only message if a thread cannot start: no memory for its stack, or too many threads.
_NO_THREAD = "can't start new thread"


class ShortagesMet:
    """What one process has recently lacked. Its claims and signs of life report it."""

    def __init__(self) -> None:
        #: When the record store last failed, by its own clock.
        self.store_failed_at = 0
        #: What the last attempt lacked, and when; None where it lacked nothing.
        self.last: PlatformError | None = None
        self.last_at = 0

    def meet(self, error: PlatformError, now: int) -> None:
        self.last, self.last_at = error, now

    def lacked_lately(self, now: int) -> PlatformError | None:
        """What the last attempt lacked, until the next attempt must have come."""
        return self.last if now - self.last_at < LATELY_MS else None


def shortage_of(error: BaseException) -> Shortage | None:
    """The shortage behind a system error; None for other errors."""
    if isinstance(error, MemoryError):
        return lack("memory")
    if isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
        return lack("memory or threads")
    lacks = _LACKS.get(error.errno or 0) if isinstance(error, OSError) else None
    return None if lacks is None else lack(lacks)


def lack(what: str) -> Shortage:
    message = f"This machine has too few resources at the moment: it lacks {what}."
    return Shortage(message, host=MACHINE)


def has_memory_for(wanted: int) -> bool:
    """Whether a child can have this much address space: it inherits our own limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    return hard == resource.RLIM_INFINITY or hard >= wanted
