"""Git repositories: one commit is fetched once for all skills that it holds, and read without a checkout.

Intake looks through `inspect` and `survey` and notes the commit that it saw; the worker fetches that same commit,
usually from the cache. A caller that asks for the head gets an answer that was requested after its call: callers wait
for a request under way, and share the result, or the failure, of the next one.
"""

import asyncio
import copy
import shutil
import tempfile
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from vskill_core.content import DEFAULT_LIMITS, ContentLimits
from vskill_core.errors import NoSkillFound, PlatformError, SourceGone, SourceUnavailable
from vskill_core.identity import Identity
from vskill_core.kind import Kind
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.clock import TimeLimit
from vskill_platform.machine.slots import HostHangs, HostSlots, Turns
from vskill_platform.sources.addresses import Hosts
from vskill_platform.sources.cache import CacheLimits, SnapshotCache
from vskill_platform.sources.command import CommandLimits, Git, make_repository
from vskill_platform.sources.contract import Fetched, FilesAtHead, Place, RepositoryHead, Survey
from vskill_platform.sources.credential import GitCredential
from vskill_platform.sources.listing import file_in
from vskill_platform.sources.marketplace_file import MARKETPLACE, named_elsewhere
from vskill_platform.sources.remote import CommitGone, Remote, no_branch
from vskill_platform.sources.snapshots import Snapshot

#: A folder untouched for this long belongs to a process that died.
ABANDONED_S = 3600.0
#: How many repositories' last answers are remembered.
MOST_ANSWERS = 1000


class FetchSettings(msgspec.Struct, frozen=True):
    """What one fetch may cost, and where it works."""

    #: None: a temporary folder of the system.
    folder: Path | None = None
    seconds: float = 20.0
    disk_bytes: int = 256 * 1024 * 1024
    #: Concurrent fetches per host in this process; for all hosts together, half as many more.
    at_once: int = 8
    #: If all slots of a host are taken and none got an answer for this long, further fetches fail at once.
    patience_s: float = 5.0
    content: ContentLimits = DEFAULT_LIMITS
    cache: CacheLimits = CacheLimits()


class _GitAnswer(msgspec.Struct, frozen=True):
    """The host's last answer, and when it was asked."""

    asked_at: float
    head: RepositoryHead | None = None
    error: PlatformError | None = None


async def default_branch(_identity: Identity) -> str:
    return ""


class GitSource:
    """Fetches from git hosts. A repository's head is that of the branch that `branch_of` names; empty is the default
    branch."""

    def __init__(
        self,
        program: str,
        hosts: Hosts,
        settings: FetchSettings,
        branch_of: Callable[[Identity], Awaitable[str]] = default_branch,
    ) -> None:
        self._branch_of = branch_of
        self._git = Git(program)
        self._settings = settings
        limits = CommandLimits(seconds=settings.seconds, disk_bytes=settings.disk_bytes)
        self._remote = Remote(self._git, hosts, limits, settings.content.bytes_file)
        self._cache = SnapshotCache(settings.cache)
        self._folders = _Folders(settings.folder)
        self._slots = HostSlots(settings.at_once * 3 // 2 + 1, settings.at_once, settings.patience_s)
        self._turns = Turns()
        self._answers: OrderedDict[str, _GitAnswer] = OrderedDict()
        self._credential: GitCredential | None = None

    def using(self, credential: GitCredential) -> "GitSource":
        """The same source with a credential. What was fetched with one is for nobody without it."""
        bound = copy.copy(self)
        bound._credential = credential  # noqa: SLF001 - a copy of itself
        return bound

    def _key(self, identity: Identity) -> str:
        credential = self._credential
        is_used = credential is not None and credential.covers(identity)
        return f"{identity.repo_key} {credential.id}" if credential and is_used else identity.repo_key

    async def fetch(self, submission: Submission) -> Fetched:
        """The files at the place, at the commit that intake saw, or else at the head; what a CI job submitted only at
        its commit."""
        identity = submission.identity
        async with self._snapshot(identity, submission.commit) as (snapshot, found):
            _require_commit(snapshot, submission.publisher.commit if submission.publisher else None)
            return Fetched(await snapshot.files(identity.path), snapshot.commit, found)

    async def inspect(self, identity: Identity, commit: str | None = None) -> Place:
        async with self._snapshot(identity, commit) as (snapshot, found):
            _require_commit(snapshot, commit)
            try:
                return Place(found, snapshot.commit, await snapshot.skill_md(identity.path))
            except NoSkillFound:
                manifest = await snapshot.manifest(identity.path)
                if manifest is None:
                    raise
                return Place(found, snapshot.commit, kind=Kind.PLUGIN, manifest=manifest)

    async def survey(self, identity: Identity, commit: str | None = None) -> Survey:
        async with self._snapshot(identity, commit) as (snapshot, found):
            _require_commit(snapshot, commit)
            folders, odd, truncated = await snapshot.skill_folders(identity.path)
            plugins = await snapshot.plugins(identity.path)
            if not folders and not odd and not plugins:
                raise await snapshot.no_skill(identity.path)
            every = sorted({*folders, *plugins})
            texts, digests = await snapshot.skill_texts(folders), await snapshot.folder_digests(every)
            skills = frozenset(folders)
            places = tuple(
                Place(
                    msgspec.structs.replace(found, path=path),
                    snapshot.commit,
                    texts.get(path, b""),
                    digests[path],
                    Kind.SKILL if path in skills else Kind.PLUGIN,
                    None if path in skills else plugins[path],
                )
                for path in every
            )
            told = await snapshot.texts([file_in(identity.path, MARKETPLACE)])
            elsewhere = named_elsewhere(told, identity.path, every)
            return Survey(found, places, truncated, tuple(odd), elsewhere)

    async def head(self, identity: Identity) -> RepositoryHead:
        """What the host says now; nothing is fetched."""
        async with self._slot(identity.host):
            branch = await self._branch_of(identity)
            return await self._remote.head(identity, await self._folders.asking(), branch, self._credential)

    async def look(self, identity: Identity, paths: Collection[str]) -> FilesAtHead:
        async with self._snapshot(identity, None) as (snapshot, found):
            there = await snapshot.texts(paths)
            files = {path: data for path, data in there.items() if data is not None}
            unread = tuple(path for path, data in there.items() if data is None)
            return FilesAtHead(found, snapshot.commit, files, unread, await snapshot.committed_at())

    async def close(self) -> None:
        await self._cache.close()
        await self._folders.close()

    @asynccontextmanager
    async def _snapshot(
        self, identity: Identity, commit: str | None
    ) -> AsyncIterator[tuple[Snapshot, Identity]]:
        """The snapshot of a commit, or of the head, and where it was found; kept until the body ends."""
        head: RepositoryHead | None = None
        if commit is None or not self._has(identity, commit):
            head = await self._obtain_in_time(identity, commit)
        key = (self._key(identity), head.commit if head is not None else commit or "")
        async with self._cache.reading(key) as snapshot:
            found = head.identity if head is not None else snapshot.identity
            # The shared answer may be from a caller that asked for another folder of the repository.
            yield snapshot, msgspec.structs.replace(found, path=identity.path)

    def _has(self, identity: Identity, commit: str) -> bool:
        return (self._key(identity), commit) in self._cache

    async def _obtain_in_time(self, identity: Identity, commit: str | None) -> RepositoryHead | None:
        """One timeout for waiting and all requests, below the submission's budget: if the budget ended them, it would
        count as the content's failure."""
        arrived = time.monotonic()
        try:
            async with TimeLimit(2 * self._settings.seconds), self._turns.turn(self._key(identity)):
                return await self._obtain(identity, commit, arrived)
        except TimeoutError:
            message = f"{identity.host} did not deliver the repository in time."
            raise SourceUnavailable(message, host=identity.host) from None

    async def _obtain(self, identity: Identity, commit: str | None, arrived: float) -> RepositoryHead | None:
        """In turn: use what was fetched while waiting, or fetch; None if the commit itself is cached by now."""
        if commit is not None and self._has(identity, commit):
            return None
        answer = self._answers.get(self._key(identity))
        if answer is not None and answer.asked_at >= arrived:
            if answer.error is not None:
                raise answer.error
            if commit is None and answer.head is not None and self._has(identity, answer.head.commit):
                return answer.head
        return await self._ask_head(identity, commit)

    async def _ask_head(self, identity: Identity, commit: str | None) -> RepositoryHead:
        asked_at = time.monotonic()
        try:
            async with self._slot(identity.host):
                head = await self._bring(identity, commit)
        except PlatformError as error:
            self._remember(self._key(identity), _GitAnswer(asked_at, error=error))
            raise
        if commit is None:
            self._remember(self._key(identity), _GitAnswer(asked_at, head))
        return head

    async def _bring(self, identity: Identity, commit: str | None) -> RepositoryHead:
        """Fetch an unknown repository in one request; for a known one, ask for its head first."""
        if commit is None and self._cache.knows(self._key(identity)):
            branch = await self._branch_of(identity)
            head = await self._remote.head(identity, await self._folders.asking(), branch, self._credential)
            if self._has(identity, head.commit):
                return head
        try:
            return await self._fetch_head(identity, commit)
        except CommitGone:
            # History was rewritten since intake looked: use the current head.
            return await self._fetch_head(identity, None)

    async def _fetch_head(self, identity: Identity, commit: str | None) -> RepositoryHead:
        try:
            return await self._fetched_into(await self._folders.new(), identity, commit)
        except OSError as error:
            reason = error.strerror or repr(error)
            message = f"Repositories cannot be fetched at the moment: {reason}."
            raise SourceUnavailable(message, host="this machine's disk") from error

    async def _fetched_into(self, folder: Path, identity: Identity, commit: str | None) -> RepositoryHead:
        snapshot: Snapshot | None = None
        branch = await self._branch_of(identity)
        try:
            head = await self._remote.fetch(identity, folder, commit, branch, self._credential)
            snapshot = Snapshot(self._git, folder, head, self._settings.content, self._settings.seconds)
            await snapshot.load()
        except CommitGone:
            await _remove(folder)
            if commit is None:
                message = (
                    "The repository is empty: its default branch has no commit, so there is no SKILL.md."
                )
                raise (no_branch(branch) if branch else NoSkillFound(message)) from None
            raise
        except BaseException:
            await _remove(folder)
            raise
        await self._cache.add((self._key(identity), head.commit), snapshot)
        return head

    @asynccontextmanager
    async def _slot(self, host: str) -> AsyncIterator[None]:
        """A slot of the host; waiting too long for one is not the content's fault."""
        try:
            async with self._slots.slot(host):
                yield
        except HostHangs:
            message = f"{host} has not answered {self._settings.at_once} other requests yet."
            raise SourceUnavailable(message, host=host) from None

    def _remember(self, repo_key: str, answer: _GitAnswer) -> None:
        self._answers[repo_key] = answer
        self._answers.move_to_end(repo_key)
        while len(self._answers) > MOST_ANSWERS:
            self._answers.popitem(last=False)


def _require_commit(snapshot: Snapshot, commit: str | None) -> None:
    """SourceGone where the repository does not have this commit, and its head was fetched instead."""
    if commit not in (None, snapshot.commit):
        raise SourceGone(f"The repository does not have the commit {commit} any more.", commit=commit)


class _Folders:
    """Work folders for fetches: created on first use, and cleared of what dead processes left."""

    def __init__(self, root: Path | None) -> None:
        self._given = root
        self._root: Path | None = None
        self._asking: Path | None = None

    async def new(self) -> Path:
        return await asyncio.to_thread(self._new)

    async def asking(self) -> Path:
        if self._asking is None or not await asyncio.to_thread(self._asking.is_dir):
            self._asking = await self.new()
        return self._asking

    async def close(self) -> None:
        if self._root is not None and self._given is None:
            await _remove(self._root)
        elif self._asking is not None:
            await _remove(self._asking)

    def _new(self) -> Path:
        root = self._root or self._prepare()
        root.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=root))
        make_repository(folder)
        return folder

    def _prepare(self) -> Path:
        if self._given is None:
            self._root = Path(tempfile.mkdtemp(prefix="vskill-fetch-"))
            return self._root
        self._root = self._given.resolve()
        self._root.mkdir(parents=True, exist_ok=True)
        now = self._root.stat().st_mtime
        for left in self._root.iterdir():
            if left.stat().st_mtime < now - ABANDONED_S:
                shutil.rmtree(left, ignore_errors=True)
        return self._root


async def _remove(folder: Path) -> None:
    await asyncio.shield(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))
