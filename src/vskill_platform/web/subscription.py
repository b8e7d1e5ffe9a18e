"""One client's stream, and what it is told: batches of changed records, as much of them as its reader may read."""

import asyncio
from collections import deque
from collections.abc import Hashable
from typing import Protocol

import msgspec

from vskill_platform.actions.principal import Principal
from vskill_platform.domain.audience import Audiences
from vskill_platform.domain.revocation import Revocation
from vskill_platform.domain.skill import PublishedSkill
from vskill_platform.domain.submission import Submission
from vskill_platform.store.accounts import Role
from vskill_platform.store.credentials import Credential
from vskill_platform.submission_store import SubmissionCounts


class StreamLimits(msgspec.Struct, frozen=True):
    """How often streams are written, and what one may cost."""

    #: A client hears from us at least this often, and proxies keep the connection.
    heartbeat_s: float = 15.0
    #: Changes within this time are sent in one batch.
    gather_s: float = 0.2
    #: After a failed read of the store.
    pause_s: float = 1.0
    #: A client that missed more changes than this must reload its page.
    most_replayed: int = 1_000
    #: What may wait for one client; who reads slower than that is let go, and comes back with its cursor.
    most_waiting_bytes: int = 256 * 1024


DEFAULT_LIMITS = StreamLimits()


class Update(msgspec.Struct, frozen=True):
    """A record that changed, as it is now. Cursors are sealed."""

    #: Of the change before this one: resuming there brings this one again.
    before: str
    cursor: str
    key: str
    submission: Submission | None = None
    skill: PublishedSkill | None = None
    revocation: Revocation | None = None


class EventBatch(msgspec.Struct, frozen=True):
    """What one set of audiences may know of a batch of changes."""

    updates: tuple[Update, ...]
    #: Where a client stands that has seen all of it; sealed.
    cursor: str
    #: After changes of submissions, for channels that show them.
    counts: SubmissionCounts | None = None


class Channel(Hashable, Protocol):
    """A kind of stream. Equal channels of readers with equal audiences get the same bytes, which are made once."""

    @property
    def shows_counts(self) -> bool:
        """Whether its frames hold the counts of submissions."""

    def write(self, batch: EventBatch) -> bytes:
        """The frames of a batch; empty where it holds nothing for this channel."""


class Subscription:
    """One client's stream: what waits for it, and whether it goes on."""

    __slots__ = (
        "_closed",
        "_most_bytes",
        "_size",
        "_waiter",
        "_waiting",
        "address",
        "audiences",
        "channel",
        "credential",
        "reader",
        "role",
        "sender",
        "told_counts",
    )

    def __init__(
        self,
        address: str,
        reader: Principal,
        channel: Channel,
        credential: Credential | None = None,
        most_bytes: int = DEFAULT_LIMITS.most_waiting_bytes,
    ) -> None:
        self.address = address
        self.reader = reader
        self.channel = channel
        #: What the reader showed, and the role that its account had then; None is nobody who signed in.
        self.credential = credential
        self.role: Role | None = None
        #: What the reader may read, as of the last batch; None until it was found out.
        self.audiences: Audiences | None = None
        #: The counts that it was told last.
        self.told_counts: SubmissionCounts | None = None
        #: The task that sends, while it may hang in a send.
        self.sender: asyncio.Task[None] | None = None
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._most_bytes = most_bytes
        self._closed = False
        self._waiter: asyncio.Future[None] | None = None

    @property
    def closed(self) -> bool:
        return self._closed

    def begin(self, chunk: bytes) -> None:
        """What goes before everything that was pushed meanwhile."""
        if not self._closed:
            self._waiting.appendleft(chunk)

    def push(self, chunk: bytes) -> bool:
        """Let it wait for the client; False where too much waits already. A stream that has ended takes nothing: its
        reader may have lost the right to it."""
        if self._closed:
            return True
        if self._size + len(chunk) > self._most_bytes and self._waiting:
            return False
        self._waiting.append(chunk)
        self._size += len(chunk)
        self._wake()
        return True

    async def next(self) -> bytes | None:
        """All that waits, in one piece; None at the end."""
        while not self._waiting:
            if self._closed:
                return None
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        chunk = self._waiting[0] if len(self._waiting) == 1 else b"".join(self._waiting)
        self._waiting.clear()
        self._size = 0
        return chunk

    def end(self) -> None:
        """No more comes; what waits is still sent."""
        self._closed = True
        self._wake()

    def drop(self) -> None:
        """End it now, also in the middle of a send that hangs."""
        self._waiting.clear()
        self.end()
        if self.sender is not None and self._waiter is None:
            self.sender.cancel()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
