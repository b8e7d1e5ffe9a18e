"""Live changes for everybody who watches: one follower of the store's change feed per process, and a bounded queue
of bytes per client.

The feed is the store's, so a change that any process makes reaches the clients of every process, and a client that
comes back with the cursor of the last frame that it saw is given what it missed (E6). The follower runs while
somebody watches. It reads a batch of changes, reads each changed record once, and lets each kind of stream write
its frames once, however many clients share them.

A frame says what a record is now. Of several changes of one record in one batch only the last is sent; the steps in
between stand in the record's history. Nothing is lost, and a frame can come twice: after a resume that met a live one.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Hashable, Sequence
from contextlib import suppress
from contextvars import Context
from typing import Protocol

import msgspec

from vskill_platform.domain.audience import PUBLIC_ONLY
from vskill_platform.domain.errors import CursorGone, InvalidInput, PlatformError, RateLimited
from vskill_platform.domain.skill import PublishedSkill
from vskill_platform.domain.submission import Submission
from vskill_platform.env import Env
from vskill_platform.kv.collections import SKILLS, SUBMISSIONS
from vskill_platform.kv.entries import Change, Entry
from vskill_platform.records import Skips
from vskill_platform.submission_store import SubmissionCounts, count_submissions
from vskill_platform.web.frames import comment, frame
from vskill_platform.worker_context import run_with_worker_env

#: Changes of one batch.
MOST_CHANGES = 200
#: How long one look at the feed waits for a change.
WAIT_MS = 10_000


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
    """A record that changed, as it is now."""

    #: Of the change before this one: resuming there brings this one again.
    before: str
    cursor: str
    key: str
    submission: Submission | None = None
    skill: PublishedSkill | None = None


class EventBatch(msgspec.Struct, frozen=True):
    """A batch of changes."""

    updates: tuple[Update, ...]
    #: Where a client stands that has seen all of it.
    cursor: str
    #: After changes of submissions; None where there was none, or where they could not be counted.
    counts: SubmissionCounts | None = None


class Channel(Hashable, Protocol):
    """A kind of stream. Equal channels get the same bytes, which are made once."""

    def write(self, batch: EventBatch) -> bytes:
        """The frames of a batch; empty where it holds nothing for this channel."""


class Subscription:
    """One client's stream: what waits for it, and whether it goes on."""

    __slots__ = ("_closed", "_most_bytes", "_size", "_waiter", "_waiting", "address", "channel", "sender")

    def __init__(
        self, address: str, channel: Channel, most_bytes: int = DEFAULT_LIMITS.most_waiting_bytes
    ) -> None:
        self.address = address
        self.channel = channel
        #: The task that sends, while it may hang in a send.
        self.sender: asyncio.Task[None] | None = None
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._most_bytes = most_bytes
        self._closed = False
        self._waiter: asyncio.Future[None] | None = None

    def begin(self, chunk: bytes) -> None:
        """What goes before everything that was pushed meanwhile."""
        self._waiting.appendleft(chunk)

    def push(self, chunk: bytes) -> bool:
        """Let it wait for the client; False where too much waits already."""
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


class Hub:
    """Every open stream of a process."""

    def __init__(self, env: Env, limits: StreamLimits = DEFAULT_LIMITS) -> None:
        self._env = env
        self._limits = limits
        self._streams: set[Subscription] = set()
        self._by_address: Counter[str] = Counter()
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self._starting = asyncio.Lock()
        #: The position up to which every open stream has been sent; "" without open streams.
        self._cursor = ""
        self._closed = False

    # Joining and leaving.

    async def join(self, address: str, channel: Channel, after: str | None) -> Subscription:
        """A stream that begins after a cursor, or now. RateLimited where one address has too many."""
        if self._by_address[address] >= self._env.settings.max_streams_per_address:
            most = self._env.settings.max_streams_per_address
            raise RateLimited(f"Your address already has {most} open streams; close one first.", limit=most)
        stream = Subscription(address, channel, self._limits.most_waiting_bytes)
        self._by_address[address] += 1
        try:
            async with self._starting:
                await self._start()
                # From here on the follower tells it what comes; what came before is read below.
                self._streams.add(stream)
                here = self._cursor
            self._env.metrics.streams_open.set(len(self._streams))
            stream.begin(b"retry: 2000\n" + (await self._missed_frames(stream, after, here)))
        except BaseException:
            self.leave(stream)
            raise
        if self._closed:
            stream.end()
        return stream

    def leave(self, stream: Subscription) -> None:
        self._streams.discard(stream)
        self._by_address[stream.address] -= 1
        if not self._by_address[stream.address]:
            del self._by_address[stream.address]
        self._env.metrics.streams_open.set(len(self._streams))
        if not self._streams:
            self._stop_following()

    def close(self) -> None:
        """End every stream at once because the server stops."""
        self._closed = True
        for stream in self._streams:
            stream.end()
        self._stop_following()

    async def _missed_frames(self, stream: Subscription, after: str | None, here: str) -> bytes:
        """Frames of what changed since the client's cursor, up to where the follower stands."""
        opening = comment("connected", here)
        if after is None or after == here:
            return opening
        try:
            changes = await self._changes_between(after, here)
        except (CursorGone, InvalidInput):
            return _reset(here, "the changes since your last visit are not kept any more")
        if changes is None:
            return _reset(here, f"more than {self._limits.most_replayed} changes since your last visit")
        batch = await run_with_worker_env(self._env, lambda: self._batch(changes, after, here))
        return stream.channel.write(batch) + opening

    async def _changes_between(self, after: str, here: str) -> list[Change] | None:
        """None where there are too many. Where `here` is not met, all there are: twice is better than never."""
        found: list[Change] = []
        most = self._limits.most_replayed
        while True:
            page = await self._env.kv.changes("", after=after, limit=most + 1)
            for change in page.items:
                found.append(change)
                if change.cursor == here:
                    return found if len(found) <= most else None
            if len(found) > most:
                return None
            if not page.items or page.after is None or page.after == after:
                return found
            after = page.after

    # Following.

    async def _start(self) -> None:
        if self._tasks:
            return
        self._cursor = await self._env.kv.change_cursor()
        # In a context of their own: what they log is not the work of the request that happened to be first.
        self._tasks = tuple(
            asyncio.create_task(work, context=Context()) for work in (self._follow(), self._beat())
        )

    def _stop_following(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks = ()
        self._cursor = ""

    async def _beat(self) -> None:
        """A comment that carries the cursor: it shows no event, and a client that comes back misses less."""
        while True:
            await asyncio.sleep(self._limits.heartbeat_s)
            self._tell_all(comment("alive", self._cursor))

    async def _follow(self) -> None:
        reachable = True
        while True:
            try:
                await self._tell_next()
                if not reachable:
                    reachable = True
                    self._tell_all(frame("status", {"store": "reachable"}, self._cursor))
            except CursorGone:
                self._cursor = await self._now()
                self._tell_all(_reset(self._cursor, "the changes since then are not kept any more"))
            except PlatformError as error:
                if reachable:
                    reachable = False
                    self._env.log.warning("changes cannot be followed", error=error.message, code=error.code)
                    self._tell_all(frame("status", {"store": "unreachable"}, self._cursor))
                await asyncio.sleep(self._limits.pause_s)
            except Exception:
                # One batch that cannot be told must neither end all streams nor be tried for ever.
                self._env.log.exception("changes not told")
                self._cursor = await self._now()
                self._tell_all(_reset(self._cursor, "some changes could not be told"))
                await asyncio.sleep(self._limits.pause_s)

    async def _now(self) -> str:
        with suppress(PlatformError):
            return await self._env.kv.change_cursor()
        return self._cursor

    async def _tell_next(self) -> None:
        """Wait for changes, then tell one batch of them to everybody."""
        kv, after = self._env.kv, self._cursor
        if not await kv.wait_for_change(after, WAIT_MS):
            return
        page = await kv.changes("", after=after, limit=MOST_CHANGES)
        end = page.after or after
        batch = await run_with_worker_env(self._env, lambda: self._batch(page.items, after, end))
        # No await between the two: who joins now is told what comes next, and reads all before it.
        self._cursor = end
        self._tell(batch)
        await asyncio.sleep(self._limits.gather_s)

    async def _batch(self, changes: Sequence[Change], after: str, end: str) -> EventBatch:
        last = {
            change.key: change
            for change in changes
            if SUBMISSIONS.holds(change.key) or SKILLS.holds(change.key)
        }
        ordered = [change for change in changes if last.get(change.key) is change]
        settled = await self._env.kv.get_many(last)
        for error in settled.failed.values():
            raise error
        skips = Skips("live")
        updates: list[Update] = []
        before = after
        for change in ordered:
            updates.append(_update(change, before, settled.found.get(change.key), skips))
            before = change.cursor
        skips.report(self._env)
        counted = any(SUBMISSIONS.holds(key) for key in last)
        return EventBatch(
            tuple(updates), end, await count_submissions(audiences=PUBLIC_ONLY) if counted else None
        )

    # Telling.

    def _tell(self, batch: EventBatch) -> None:
        written: dict[Channel, bytes] = {}
        for stream in tuple(self._streams):
            chunk = written.get(stream.channel)
            if chunk is None:
                chunk = written[stream.channel] = self._write(stream.channel, batch)
            if chunk:
                self._push(stream, chunk)

    def _write(self, channel: Channel, batch: EventBatch) -> bytes:
        try:
            return channel.write(batch)
        except Exception:
            # A mistake of one kind of stream: its clients load their page again, the others go on.
            self._env.log.exception("frames not written")
            return _reset(batch.cursor, "something changed that could not be told")

    def _tell_all(self, chunk: bytes) -> None:
        for stream in tuple(self._streams):
            self._push(stream, chunk)

    def _push(self, stream: Subscription, chunk: bytes) -> None:
        if not stream.push(chunk):
            self._env.metrics.streams_dropped.inc()
            self._env.log.info("slow stream dropped", address=stream.address)
            stream.drop()


def _update(change: Change, before: str, entry: Entry | None, skips: Skips) -> Update:
    """The record as it is now; what is gone or cannot be read is an update without one."""
    if entry is None:
        return Update(before, change.cursor, change.key)
    if SUBMISSIONS.holds(change.key):
        record = skips.decode(entry, Submission)
        return Update(before, change.cursor, change.key, submission=record)
    return Update(before, change.cursor, change.key, skill=skips.decode(entry, PublishedSkill))


def _reset(cursor: str, reason: str) -> bytes:
    return frame("reset", {"reason": reason}, cursor)
