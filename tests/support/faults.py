"""Trouble on purpose: wrappers around real engines and stages that fail, hang or let somebody else go first at a
moment that the test chooses. What they wrap does the real work."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import msgspec

from tests.support.patience import PATIENCE_S
from vskill_core.content import SkillFile
from vskill_core.errors import PlatformError, StoreUnavailable
from vskill_core.findings import StaticReport
from vskill_platform.domain.messages import Send
from vskill_platform.domain.people.namespace import Audiences
from vskill_platform.domain.skills.search import TermQuery
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.blobs.contract import Blobs
from vskill_platform.ledger.broker.contract import Broker, DeadLetterPage, Delivery, Depth, Settlement
from vskill_platform.ledger.kv.contract import KV, PAGE
from vskill_platform.ledger.kv.entries import (
    Change,
    Entry,
    EntryPage,
    Found,
    Operation,
    Page,
    Put,
    Settled,
)
from vskill_platform.sources.contract import Fetched
from vskill_platform.sources.router import UploadSource
from vskill_platform.tiers.contract import Scanner

CommitHook = Callable[[Sequence[Operation]], Awaitable[None]]


class HookedKV(KV):
    """A real store with a hook before and after every commit, and reads that can be made to fail."""

    def __init__(self, inner: KV) -> None:
        self.inner = inner
        self.engine = inner.engine
        self.capabilities = inner.capabilities
        self.before_commit: CommitHook | None = None
        self.after_commit: CommitHook | None = None
        #: Names of reads (`get`, `select`, `count_by` ...) that fail.
        self.failing: set[str] = set()
        self.commits: list[tuple[Operation, ...]] = []

    def now(self) -> int:
        return self.inner.now()

    async def commit(self, operations: Sequence[Operation], *, urgent: bool = False) -> int:
        self._maybe_fail("commit")
        if self.before_commit is not None:
            await self.before_commit(operations)
        version = await self.inner.commit(operations, urgent=urgent)
        self.commits.append(tuple(operations))
        if self.after_commit is not None:
            await self.after_commit(operations)
        return version

    async def get(self, key: str) -> Entry | None:
        self._maybe_fail("get")
        return await self.inner.get(key)

    async def get_many(self, keys: Iterable[str]) -> Settled:
        self._maybe_fail("get_many")
        return await self.inner.get_many(keys)

    async def list(
        self, prefix: str, *, after: str | None = None, limit: int = PAGE, exclude: Sequence[str] = ()
    ) -> Page[str]:
        self._maybe_fail("list")
        return await self.inner.list(prefix, after=after, limit=limit, exclude=exclude)

    async def scan(
        self, prefix: str, *, after: str | None = None, limit: int = PAGE, exclude: Sequence[str] = ()
    ) -> EntryPage:
        self._maybe_fail("scan")
        return await self.inner.scan(prefix, after=after, limit=limit, exclude=exclude)

    async def select(self, prefix: str, **options: Any) -> EntryPage:
        self._maybe_fail("select")
        return await self.inner.select(prefix, **options)

    async def count_by(self, prefix: str, field: str, *, audiences: Audiences) -> dict[str | None, int]:
        self._maybe_fail("count_by")
        return await self.inner.count_by(prefix, field, audiences=audiences)

    async def search(self, prefix: str, query: TermQuery, **options: Any) -> Found:
        self._maybe_fail("search")
        return await self.inner.search(prefix, query, **options)

    async def changes(self, prefix: str, *, after: str | None = None, limit: int = PAGE) -> Page[Change]:
        return await self.inner.changes(prefix, after=after, limit=limit)

    async def change_cursor(self) -> str:
        self._maybe_fail("change_cursor")
        return await self.inner.change_cursor()

    async def wait_for_change(self, cursor: str, timeout_ms: int) -> bool:
        return await self.inner.wait_for_change(cursor, timeout_ms)

    async def sweep(self, *, changes_before: int, limit: int = 5000) -> int:
        return await self.inner.sweep(changes_before=changes_before, limit=limit)

    async def check(self) -> None:
        self._maybe_fail("check")
        await self.inner.check()

    def _maybe_fail(self, operation: str) -> None:
        if operation in self.failing:
            raise StoreUnavailable(f"{operation} fails because a test says so")

    async def close(self) -> None:
        await self.inner.close()


class UnreadableKV(HookedKV):
    """A real store in which single records cannot be read: their reads settle as failed and hide no other."""

    def __init__(self, inner: KV, *keys: str) -> None:
        super().__init__(inner)
        self.errors: dict[str, PlatformError] = {
            key: StoreUnavailable(f"{key} cannot be read because a test says so") for key in keys
        }

    async def get_many(self, keys: Iterable[str]) -> Settled:
        wanted = tuple(keys)
        settled = await super().get_many(key for key in wanted if key not in self.errors)
        failed = {key: self.errors[key] for key in wanted if key in self.errors}
        return msgspec.structs.replace(settled, failed={**settled.failed, **failed})

    async def scan(
        self, prefix: str, *, after: str | None = None, limit: int = PAGE, exclude: Sequence[str] = ()
    ) -> EntryPage:
        return self._without(await super().scan(prefix, after=after, limit=limit, exclude=exclude))

    async def select(self, prefix: str, **options: Any) -> EntryPage:
        return self._without(await super().select(prefix, **options))

    def _without(self, page: EntryPage) -> EntryPage:
        failed = {entry.key: self.errors[entry.key] for entry in page.items if entry.key in self.errors}
        items = tuple(entry for entry in page.items if entry.key not in failed)
        return EntryPage(items, page.after, {**page.failed, **failed})


def dying_once(inner: KV) -> HookedKV:
    """A store whose first commit is applied, and then looks as if it had failed."""
    hooked = HookedKV(inner)

    async def die(_operations: Sequence[Operation]) -> None:
        hooked.after_commit = None
        raise StoreUnavailable("the connection died after the commit")

    hooked.after_commit = die
    return hooked


def state_written(operations: Sequence[Operation]) -> State | None:
    """The state of the submission that a commit writes, if it writes one."""
    for operation in operations:
        if isinstance(operation, Put) and operation.key.startswith("sub:"):
            return msgspec.json.decode(operation.value, type=Submission).state
    return None


class DeafBroker(Broker):
    """A queue whose sending fails: the commit before it stands, and only the message is lost. The first takes may
    fail too."""

    def __init__(self, inner: Broker, takes_refused: int = 0) -> None:
        self.inner = inner
        self.engine = inner.engine
        self.capabilities = inner.capabilities
        self.refused = 0
        self._takes_refused = takes_refused

    async def send_batch(self, sends: Sequence[Send]) -> int:
        self.refused += len(sends)
        raise StoreUnavailable("the queue cannot be reached because a test says so")

    async def take(self, limit: int, max_wait_ms: int) -> Sequence[Delivery]:
        if self._takes_refused:
            self._takes_refused -= 1
            raise StoreUnavailable("the queue cannot be reached because a test says so")
        return await self.inner.take(limit, max_wait_ms)

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[bool]:
        return await self.inner.settle(settlements)

    async def depth(self) -> Depth:
        return await self.inner.depth()

    async def dead_letters(self, *, after: int | None = None, limit: int = 100) -> DeadLetterPage:
        return await self.inner.dead_letters(after=after, limit=limit)

    async def replay(self, dead_letter_id: int) -> bool:
        return await self.inner.replay(dead_letter_id)

    async def discard(self, dead_letter_id: int) -> bool:
        return await self.inner.discard(dead_letter_id)


class HeldScanner:
    """Lets a scan begin and keeps it there until the test opens it; what it says then is the real scanner's."""

    def __init__(self, inner: Scanner) -> None:
        self.inner = inner
        self.open = asyncio.Event()
        self.began = asyncio.Event()
        self.inside = 0
        self.most_inside = 0
        self.cancelled = 0
        self.seen: list[tuple[SkillFile, ...]] = []

    @property
    def ruleset(self) -> str:
        return self.inner.ruleset

    async def until_inside(self, count: int, seconds: float = PATIENCE_S) -> None:
        """Wait until this many scans have begun and none of them can end."""
        async with asyncio.timeout(seconds):
            while self.inside < count:
                self.began.clear()
                await self.began.wait()

    async def scan(self, files: Sequence[SkillFile]) -> StaticReport:
        self.seen.append(tuple(files))
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        self.began.set()
        try:
            await self.open.wait()
            return await self.inner.scan(files)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.inside -= 1


class TroubledScanner:
    """Raises for contents that the test names by a word in them, and counts what it was shown."""

    def __init__(self, inner: Scanner, word: bytes, error: Exception) -> None:
        self.inner = inner
        self.word = word
        self.error = error
        self.scans = 0

    @property
    def ruleset(self) -> str:
        return self.inner.ruleset

    async def scan(self, files: Sequence[SkillFile]) -> StaticReport:
        self.scans += 1
        if any(self.word in file.data for file in files):
            raise self.error
        return await self.inner.scan(files)


class ListedSources:
    """Repositories as a table from a place's key to its files, or to the error that its host answers with."""

    def __init__(self, blobs: Blobs) -> None:
        self._uploads = UploadSource(blobs)
        self.places: dict[str, tuple[SkillFile, ...] | Exception] = {}
        self.fetches = 0

    async def fetch(self, submission: Submission) -> Fetched:
        self.fetches += 1
        if submission.identity.is_upload and submission.identity.key not in self.places:
            return await self._uploads.fetch(submission)
        found = self.places[submission.identity.key]
        if isinstance(found, Exception):
            raise found
        return Fetched(found, commit="0" * 40)
