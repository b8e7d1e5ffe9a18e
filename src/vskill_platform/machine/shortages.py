"""What this machine lacks is the registry's own trouble: it is never charged to the content that met it.

A limit that was set for the content is another matter: whoever sets one knows it, and says so.
"""

import errno
import resource

from vskill_core.errors import PlatformError, Shortage
from vskill_platform.domain.submissions.attempts import UNAVAILABLE_MOST_MS

#: What work waits for, in the words of a record.
MACHINE = "this machine"
#: What an attempt lacked is told until the next one is due at the latest, and a minute more.
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
#: All that Python says where a thread cannot be started: it lacks the memory of its stack, or there are too many.
_NO_THREAD = "can't start new thread"


class ShortagesMet:
    """What one process has lately lacked. Its claims and its signs of life tell of it."""

    def __init__(self) -> None:
        #: When the record store last failed, by its own clock.
        self.store_failed_at = 0
        #: What the last attempt lacked, and when; None where it lacked nothing.
        self.last: PlatformError | None = None
        self.last_at = 0

    def meet(self, error: PlatformError, now: int) -> None:
        self.last, self.last_at = error, now

    def lacked_lately(self, now: int) -> PlatformError | None:
        """What the last attempt lacked, until another one must have come."""
        return self.last if now - self.last_at < LATELY_MS else None


def shortage_of(error: BaseException) -> Shortage | None:
    """The shortage behind an error of the system; None where it is something else."""
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
    """Whether a child can have this much address space: a lower limit of our own process is inherited."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    return hard == resource.RLIM_INFINITY or hard >= wanted
