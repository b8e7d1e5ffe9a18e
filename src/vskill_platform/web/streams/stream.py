"""One client's event stream: its frames, their sealed cursors, what waits to be sent, and the batches of changed
records, as far as its reader may read them.

The store's own cursor counts every write, even those that a client may not know of, so a client gets it encrypted: it
can send it back as `Last-Event-ID`, but neither read nor forge one.
"""

import asyncio
import base64
import binascii
import secrets
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from typing import Protocol

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from vskill_core.errors import InvalidInput
from vskill_platform.actions.principal import Principal
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import Audiences
from vskill_platform.domain.skills.skill import PublishedSkill, Revocation
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.kv.collections import SKILLS, SUBMISSIONS
from vskill_platform.ledger.kv.contract import KV
from vskill_platform.ledger.kv.entries import Change, Entry, Settled
from vskill_platform.records import audience_of, decode
from vskill_platform.store.people.credentials import Credential
from vskill_platform.store.people.sign_in_rule import Standing
from vskill_platform.submission_store import SubmissionCounts

#: Room for the longest position of any store, so that every sealed cursor has the same length.
_ROOM = 48
_NONCE = 8
#: All sealed cursors are shorter than this, as text.
MOST_CURSOR = 120


def frame(event: str, data: object, cursor: str) -> bytes:
    """A named event with JSON data, which never holds a line break; an empty name is a plain `message`."""
    named = f"event: {event}\n" if event else ""
    return f"id: {cursor}\n{named}data: ".encode() + msgspec.json.encode(data) + b"\n\n"


def comment(text: str, cursor: str) -> bytes:
    """Keeps the connection open and moves the client's cursor on, without an event."""
    return f": {text}\nid: {cursor}\n\n".encode()


class Cursors:
    """Seals the store's cursors with a key that all processes of an installation share."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESSIV(key)

    def of_event(self, position: str) -> str:
        """The cursor of one event: the same in every process, so that a client recognises a duplicate."""
        return self._seal(bytes(_NONCE), position)

    def of_now(self, position: str) -> str:
        """A cursor without an event: never the same twice, so that it does not reveal whether anything was written."""
        return self._seal(b"\1" + secrets.token_bytes(_NONCE - 1), position)

    def position(self, sealed: str) -> str:
        """The store's cursor; InvalidInput if it was not sealed here."""
        try:
            data = base64.urlsafe_b64decode(sealed.encode("ascii") + b"==")
            plain = self._cipher.decrypt(data, None)
        except (InvalidTag, ValueError, binascii.Error) as error:
            raise InvalidInput(
                "This is not a cursor of this registry.", field="after", fix="leave it out to begin now"
            ) from error
        return plain[_NONCE:].decode("ascii").rstrip()

    def _seal(self, nonce: bytes, position: str) -> str:
        sealed = self._cipher.encrypt(nonce + position.ljust(_ROOM).encode("ascii"), None)
        return base64.urlsafe_b64encode(sealed).decode("ascii").rstrip("=")


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
    #: How much may wait for one client; a slower one is disconnected, and reconnects with its cursor.
    most_waiting_bytes: int = 256 * 1024


DEFAULT_LIMITS = StreamLimits()


#: A record whose changes are told.
Told = Submission | PublishedSkill | Revocation


class Update(msgspec.Struct, frozen=True):
    """A record that changed, as it is now. Its cursors are the store's, and sealed once it is known who may read it."""

    #: The cursor of the change before this one: resuming there sends this one again.
    before: str
    cursor: str
    entry: Entry
    audience: str | None
    #: None if it is not decoded, or cannot be.
    record: Told | None = None


class EventBatch(msgspec.Struct, frozen=True):
    """What one set of audiences may know of a batch of changes."""

    updates: tuple[Update, ...]
    #: The sealed cursor of a client that has seen all of it.
    cursor: str
    #: After changes of submissions, for channels that show them.
    counts: SubmissionCounts | None = None


class Channel(Hashable, Protocol):
    """A kind of stream. Equal channels of readers with equal audiences get the same bytes, which are made once."""

    @property
    def shows_counts(self) -> bool:
        """Whether its frames hold the counts of submissions."""

    def write(self, batch: EventBatch) -> bytes:
        """The frames of a batch; empty if it holds nothing for this channel."""


class Subscription:
    """One client's stream: what waits for it, and whether it goes on."""

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
        #: The reader's session or token, and what its account counted for at that time; None if anonymous.
        self.credential = credential
        self.standing: Standing | None = None
        #: What the reader may read, as of the last batch; None until the first.
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
        """Put this before everything that was pushed meanwhile."""
        if not self._closed:
            self._waiting.appendleft(chunk)

    def push(self, chunk: bytes) -> bool:
        """Queue it for the client; False if too much waits already. A stream that has ended takes nothing: its reader
        may have lost the right to it."""
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
        self._closed = True
        self._wake()

    def drop(self) -> None:
        """End it now, even in the middle of a send that hangs."""
        self._waiting.clear()
        self.end()
        if self.sender is not None and self._waiter is None:
            self.sender.cancel()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class RawBatch(msgspec.Struct, frozen=True):
    """Changes before the check of who may read them."""

    updates: tuple[Update, ...]
    #: The store's cursor after it.
    cursor: str
    #: A submission changed, or is gone.
    has_submissions: bool
    #: Somebody may have gained or lost a right to read.
    has_rights: bool

    @property
    def is_empty(self) -> bool:
        return not (self.updates or self.has_submissions or self.has_rights)


async def read_changes(kv: KV, changes: Sequence[Change], after: str, end: str) -> RawBatch:
    """The changed records as they are now, not decoded."""
    last = {
        change.key: change
        for change in changes
        if SUBMISSIONS.holds(change.key)
        or SKILLS.holds(change.key)
        or change.key.startswith(keys.revocation.prefix)
    }
    found = await _read_all(kv, last)
    # A revocation about no particular skill names a key without a record.
    about = {
        entry.key: keys.skill.prefix + decode(entry, Revocation).skill
        for entry in found.values()
        if entry.key.startswith(keys.revocation.prefix)
    }
    found |= await _read_all(kv, set(about.values()) - found.keys())
    updates: list[Update] = []
    before = after
    for change in changes:
        if last.get(change.key) is not change:
            continue
        entry = found.get(change.key)
        # A revocation has the audience that its skill has now.
        audience = found.get(about.get(change.key, change.key))
        if entry is not None and audience is not None:
            updates.append(Update(before, change.cursor, entry, audience_of(audience)))
        before = change.cursor
    return RawBatch(
        tuple(updates),
        end,
        has_submissions=any(map(SUBMISSIONS.holds, last)),
        has_rights=any(change.key == keys.CONTROL_NAMESPACES for change in changes),
    )


async def _read_all(kv: KV, wanted: Iterable[str]) -> dict[str, Entry]:
    wanted = tuple(wanted)
    settled = await kv.get_many(wanted) if wanted else Settled({})
    for error in settled.failed.values():
        raise error
    return dict(settled.found)
