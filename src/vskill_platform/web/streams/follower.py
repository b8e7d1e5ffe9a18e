"""Live changes for everybody who watches: one follower of the store's change feed per process, and a bounded queue
of bytes per client.

The feed is the store's, so a change that any process makes reaches the clients of every process, and a client that
comes back with the cursor of the last frame that it saw is given what it missed (E6). The follower runs while
somebody watches. It reads a batch of changes, reads each changed record once, and lets each kind of stream write
its frames once, however many clients share them.

A frame says what a record is now. Of several changes of one record in one batch only the last is sent; the steps in
between are in the record's history. Nothing is lost, but a frame can come twice, if a resume overlaps with a live one.

Rights are checked again for every batch, after its records were read: a reader who has lost a right by then is told
nothing of what was committed since. Frames and counts contain only what a stream may read, a record that no stream may
read is not decoded, and clients get sealed cursors, because the store's own count every write.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import Context

import msgspec

from vskill_core.errors import CursorGone, InvalidInput, PlatformError, RateLimited
from vskill_platform.actions.principal import Principal, audiences_in
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import Audiences, may_read
from vskill_platform.domain.skills.skill import PublishedSkill, Revocation
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.kv.collections import SUBMISSIONS
from vskill_platform.ledger.kv.entries import Change
from vskill_platform.records import Skips
from vskill_platform.store.people.credentials import Credential, read_standings
from vskill_platform.store.people.namespaces import read_directory
from vskill_platform.store.people.stream_key import make_stream_key, read_stream_key
from vskill_platform.submission_store import SubmissionCounts, count_submissions
from vskill_platform.web.streams.stream import (
    DEFAULT_LIMITS,
    Channel,
    Cursors,
    EventBatch,
    RawBatch,
    StreamLimits,
    Subscription,
    Told,
    Update,
    comment,
    frame,
    read_changes,
)
from vskill_platform.worker_context import Env, run_with_worker_env

#: Changes of one batch.
MOST_CHANGES = 200
#: How long one look at the feed waits for a change.
WAIT_MS = 10_000


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
        self._sealing: Cursors | None = None

    # Joining and leaving.

    async def join(
        self,
        address: str,
        reader: Principal,
        channel: Channel,
        after: str | None,
        credential: Credential | None = None,
    ) -> Subscription:
        """A stream that begins after a sealed cursor, or now. RateLimited if one address has too many."""
        if self._by_address[address] >= self._env.settings.max_streams_per_address:
            most = self._env.settings.max_streams_per_address
            raise RateLimited(f"Your address already has {most} open streams; close one first.", limit=most)
        stream = Subscription(address, reader, channel, credential, self._limits.most_waiting_bytes)
        self._by_address[address] += 1
        try:
            await self.cursors()
            async with self._starting:
                await self._start()
                if credential is not None:
                    found = await run_with_worker_env(self._env, lambda: read_standings((credential,)))
                    stream.standing = found[credential]
                # From here on the follower sends it new changes; earlier ones are read below.
                self._streams.add(stream)
                here = self._cursor
            self._env.metrics.streams_open.set(len(self._streams))
            stream.begin(b"retry: 2000\n" + await self._missed_frames(stream, after, here))
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

    async def cursors(self) -> Cursors:
        """The key that seals and opens clients' cursors."""
        if self._sealing is None:
            try:
                self._sealing = Cursors(await run_with_worker_env(self._env, read_stream_key))
            except PlatformError as error:
                # A read-only store can still be followed; in other processes these cursors are invalid.
                self._env.log.warning("cursors are sealed for this process only", error=error.message)
                self._sealing = Cursors(make_stream_key())
        return self._sealing

    async def _missed_frames(self, stream: Subscription, after: str | None, here: str) -> bytes:
        """Frames of what changed between the client's cursor and the follower's."""
        cursors = await self.cursors()
        opening = comment("connected", cursors.of_now(here))
        try:
            begin = here if after is None else cursors.position(after)
            changes = [] if begin == here else await self._changes_between(begin, here)
        except (CursorGone, InvalidInput):
            return self._reset(here, "the changes since your last visit are not kept any more")
        if changes is None:
            most = self._limits.most_replayed
            return self._reset(here, f"more than {most} changes since your last visit")

        async def write() -> bytes:
            raw = await read_changes(self._env.kv, changes, begin, here)
            counts = await self._find_readers(raw, lambda: (stream,))
            return self._chunk(stream, self._batches(raw, (stream,), counts), {})

        return await run_with_worker_env(self._env, write) + opening

    async def _changes_between(self, after: str, here: str) -> list[Change] | None:
        """None if there are too many. If `here` is not among them, all: twice is better than never."""
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
        # In their own context: their log lines do not belong to the request that happened to be first.
        self._tasks = tuple(
            asyncio.create_task(work, context=Context()) for work in (self._follow(), self._beat())
        )

    def _stop_following(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks = ()
        self._cursor = ""

    async def _beat(self) -> None:
        """Send heartbeats: comments with the cursor, which show no event, and shorten a later resume."""
        while True:
            await asyncio.sleep(self._limits.heartbeat_s)
            self._tell_all(comment("alive", self._sealed_now()))

    async def _follow(self) -> None:
        reachable = True
        while True:
            try:
                await self._tell_next()
                if not reachable:
                    reachable = True
                    self._tell_all(frame("status", {"store": "reachable"}, self._sealed_now()))
            except CursorGone:
                self._cursor = await self._now()
                self._tell_all(self._reset(self._cursor, "the changes since then are not kept any more"))
            except PlatformError as error:
                if reachable:
                    reachable = False
                    self._env.log.warning("changes cannot be followed", error=error.message, code=error.code)
                    self._tell_all(frame("status", {"store": "unreachable"}, self._sealed_now()))
                await asyncio.sleep(self._limits.pause_s)
            except Exception:
                # A batch that fails must neither end all streams nor be retried for ever.
                self._env.log.exception("changes not told")
                self._cursor = await self._now()
                self._tell_all(self._reset(self._cursor, "some changes could not be told"))
                await asyncio.sleep(self._limits.pause_s)

    async def _now(self) -> str:
        with suppress(PlatformError):
            return await self._env.kv.change_cursor()
        return self._cursor

    async def _tell_next(self) -> None:
        """Wait for changes, then send one batch of them to all streams."""
        kv, after = self._env.kv, self._cursor
        if not await kv.wait_for_change(after, WAIT_MS):
            return
        page = await kv.changes("", after=after, limit=MOST_CHANGES)
        end = page.after or after
        await run_with_worker_env(self._env, lambda: self._tell_page(page.items, after, end))
        await asyncio.sleep(self._limits.gather_s)

    async def _tell_page(self, changes: Sequence[Change], after: str, end: str) -> None:
        raw = await read_changes(self._env.kv, changes, after, end)
        counts = {} if raw.is_empty else await self._find_readers(raw, lambda: tuple(self._streams))
        # No await between here and the end, so that a stream that joins meanwhile misses nothing.
        self._cursor = end
        if raw.is_empty:
            return
        streams = tuple(stream for stream in self._streams if not stream.closed)
        batches = self._batches(raw, streams, counts)
        written: dict[tuple[Channel, Audiences, bool], bytes] = {}
        for stream in streams:
            chunk = self._chunk(stream, batches, written)
            if chunk:
                self._push(stream, chunk)

    # Who may read it.

    async def _find_readers(
        self, raw: RawBatch, streams_of: Callable[[], tuple[Subscription, ...]]
    ) -> dict[Audiences, SubmissionCounts]:
        """Find out what every stream may read now, and the counts for each set of audiences that is shown them. Rights
        are read last, so that they are at least as new as everything read before."""
        counts: dict[Audiences, SubmissionCounts] = {}
        while True:
            directory, streams = await read_directory(), streams_of()
            granted = {stream: audiences_in(stream.reader, directory) for stream in streams}
            wanting = {granted[stream] for stream in streams if stream.channel.shows_counts}
            for audiences in wanting - counts.keys() if raw.has_submissions else ():
                counts[audiences] = await count_submissions(audiences=audiences)
            await self._end_signed_out(streams)
            if await read_directory() is directory and granted.keys() >= set(streams_of()):
                break
        for stream, audiences in granted.items():
            before, stream.audiences = stream.audiences, audiences
            if before not in (None, audiences):
                # The page may show too much or too little, so it must reload.
                self._push(stream, self._reset(raw.cursor, "what you may read has changed"))
        return counts

    async def _end_signed_out(self, streams: Iterable[Subscription]) -> None:
        """End streams whose session, token or account changed: their clients reconnect and authenticate again."""
        shown = {stream: stream.credential for stream in streams if stream.credential is not None}
        standings = await read_standings(set(shown.values()))
        for stream, credential in shown.items():
            if standings[credential] is None or standings[credential] != stream.standing:
                stream.drop()

    # Telling.

    def _batches(
        self,
        raw: RawBatch,
        streams: Sequence[Subscription],
        counts: Mapping[Audiences, SubmissionCounts],
    ) -> dict[Audiences, EventBatch]:
        """The batch for each set of audiences. Records that none of them may read are not decoded."""
        sets = {stream.audiences for stream in streams if stream.audiences is not None}
        skips = Skips("live")
        updates = [
            self._decode(update, skips)
            for update in raw.updates
            if any(may_read(update.audience, audiences) for audiences in sets)
        ]
        skips.report(self._env)
        cursor = self._seal().of_now(raw.cursor)
        return {
            audiences: EventBatch(
                tuple(update for update in updates if may_read(update.audience, audiences)),
                cursor,
                counts.get(audiences),
            )
            for audiences in sets
        }

    def _decode(self, update: Update, skips: Skips) -> Update:
        """The update with its decoded record, or without one if it is malformed."""
        cursors, key = self._seal(), update.entry.key
        kind: type[Told] = PublishedSkill
        if SUBMISSIONS.holds(key):
            kind = Submission
        elif key.startswith(keys.revocation.prefix):
            kind = Revocation
        return msgspec.structs.replace(
            update,
            before=cursors.of_now(update.before),
            cursor=cursors.of_event(update.cursor),
            record=skips.decode(update.entry, kind),
        )

    def _chunk(
        self,
        stream: Subscription,
        batches: Mapping[Audiences, EventBatch],
        written: dict[tuple[Channel, Audiences, bool], bytes],
    ) -> bytes:
        """The bytes of a batch for a stream: made once for all streams that get the same."""
        if stream.closed or stream.audiences is None:
            return b""
        batch = batches[stream.audiences]
        tells_counts = _tells_counts(batch, stream.told_counts)
        key = (stream.channel, stream.audiences, tells_counts)
        if key not in written:
            told = batch if tells_counts else msgspec.structs.replace(batch, counts=None)
            try:
                written[key] = stream.channel.write(told)
            except Exception:
                # A bug in one kind of stream: its clients must reload, the others go on.
                self._env.log.exception("frames not written")
                reason = {"reason": "something changed that could not be told"}
                written[key] = frame("reset", reason, batch.cursor)
        if tells_counts:
            stream.told_counts = batch.counts
        return written[key]

    def _tell_all(self, chunk: bytes) -> None:
        for stream in tuple(self._streams):
            self._push(stream, chunk)

    def _push(self, stream: Subscription, chunk: bytes) -> None:
        if not stream.push(chunk):
            self._env.metrics.streams_dropped.inc()
            self._env.log.info("slow stream dropped", address=stream.address)
            stream.drop()

    # Cursors.

    def _seal(self) -> Cursors:
        if self._sealing is None:
            raise TypeError("nobody has joined yet")
        return self._sealing

    def _sealed_now(self) -> str:
        return self._seal().of_now(self._cursor)

    def _reset(self, position: str, reason: str) -> bytes:
        return frame("reset", {"reason": reason}, self._seal().of_now(position))


def _tells_counts(batch: EventBatch, told: SubmissionCounts | None) -> bool:
    """Whether to send the counts: sending unchanged ones would reveal that something hidden changed."""
    if batch.counts is None or told is not None:
        return batch.counts is not None and batch.counts != told
    return any(SUBMISSIONS.holds(update.entry.key) for update in batch.updates)
