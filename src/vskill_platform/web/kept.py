"""What a process keeps between requests, each with the mark by which it is known to be still true.

Nothing here ages: before a kept answer is used, the store is asked for its present mark (a record's version, the
blocklist's version, the position of the last change), and another mark means another answer. So a block, a takedown
or a publication is seen by the next request, and a store that is away is noticed (C4).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.domain.blocklist import BlockEntry, BlockTarget, TargetKind
from vskill_platform.domain.content import SkillFile, skill_file_of, unpack
from vskill_platform.domain.errors import BlobUnavailable, CursorGone, Unsupported
from vskill_platform.domain.identity import Identity
from vskill_platform.domain.skill import PublishedSkill
from vskill_platform.kv.collections import SKILLS
from vskill_platform.store.blocklist import (
    all_targets,
    blocklist_version,
    find_hits,
    list_blocks,
    places_with_records,
)
from vskill_platform.submission_store import PublishedSkillSummary
from vskill_platform.web.addresses import public_address
from vskill_platform.web.diffs import FileChange
from vskill_platform.web.responses import JSON_TYPE, REVALIDATE, tag_of
from vskill_platform.worker_context import require_env

V = TypeVar("V")

#: Bytes of answers and of texts that a process keeps, each.
MOST_BYTES = 32 * 1024 * 1024
#: A larger one is made anew each time, so that no single one pushes the others out.
MOST_ONE = MOST_BYTES // 32


class Kept(Generic[V]):
    """The values used last, up to a total size."""

    def __init__(self, most_bytes: int = MOST_BYTES, most_one: int = MOST_ONE) -> None:
        self._most = most_bytes
        self._most_one = most_one
        self._size = 0
        self._values: dict[object, tuple[V, int]] = {}

    def get(self, key: object) -> V | None:
        found = self._values.pop(key, None)
        if found is None:
            return None
        self._values[key] = found
        return found[0]

    def put(self, key: object, value: V, size: int) -> None:
        if size > self._most_one:
            return
        _, before = self._values.pop(key, (None, 0))
        self._values[key] = (value, size)
        self._size += size - before
        while self._size > self._most:
            oldest = next(iter(self._values))
            self._size -= self._values.pop(oldest)[1]


class Answer(msgspec.Struct, frozen=True):
    """Bytes that were sent, ready to be sent again, and the marks at which they were true."""

    body: bytes
    headers: list[tuple[bytes, bytes]]
    tag: bytes
    #: The position of the last change when it was last found to be true.
    seen: str | None
    #: The versions of the records that it is made of, where it is known which.
    mark: object = None


class Again(Response):
    """An answer as it was prepared: nothing is computed but whether the client has it already."""

    def __init__(self, found: Answer, request: Request) -> None:
        self.background = None
        known = next((value for name, value in request.scope["headers"] if name == b"if-none-match"), None)
        self.status_code, self.body, self.raw_headers = 200, found.body, [*found.headers]
        if known is not None and found.tag in known:
            # Without the length and the type of a body that is not sent.
            self.status_code, self.body, self.raw_headers = 304, b"", found.headers[:2]


class Blocklist(msgspec.Struct, frozen=True):
    """The whole blocklist as of one version."""

    version: int
    entries: dict[BlockTarget, BlockEntry]
    #: By `host/owner/repo`: an entry about one of the repository's skills, which taints its others.
    tainted: dict[str, BlockEntry]

    def hits(
        self, identity: Identity, names: tuple[str | None, ...], digest: str | None = None
    ) -> tuple[BlockEntry, ...]:
        """The entries that hit a skill, the worst first."""
        if not self.entries:
            return ()
        targets = all_targets(identity, names, digest)
        found = [self.entries[target] for target in targets if target in self.entries]
        return tuple(sorted(found, key=lambda entry: -entry.severity.rank))

    def hits_skill(self, skill: PublishedSkill) -> tuple[BlockEntry, ...]:
        """The entries that hit a published skill with its current content."""
        return self.hits(skill.identity, (skill.name,), skill.current_digest) if self.entries else ()

    def hits_summary(self, skill: PublishedSkillSummary) -> tuple[BlockEntry, ...]:
        """The same for a skill as lists of the whole registry know it."""
        if not self.entries or skill.identity is None:
            return ()
        return self.hits(skill.identity, (skill.name,), skill.current_digest)

    def taint(self, identity: Identity) -> BlockEntry | None:
        return self.tainted.get(identity.repo_key) if self.tainted else None


class KeptThings:
    """Everything that one process keeps."""

    def __init__(self) -> None:
        self.answers: Kept[Answer] = Kept()
        #: Documents about the whole registry, which may be large, and of which one is made at a time.
        self.documents: Kept[Answer] = Kept(MOST_BYTES, MOST_BYTES)
        self.document_turn = asyncio.Lock()
        #: Comparisons, by the two contents' digests.
        self.changes: Kept[tuple[FileChange, ...]] = Kept(MOST_BYTES // 4)
        #: One large comparison at a time.
        self.diff_turn = asyncio.Lock()
        #: The API's own document.
        self.openapi: dict[str, Any] | None = None
        self._texts: Kept[str] = Kept()
        self._blocklist: Blocklist | None = None

    async def blocklist(self) -> Blocklist:
        """The blocklist as it is now: one small read, and all of it only where it has changed."""
        version = await blocklist_version()
        known = self._blocklist
        if known is None or known.version != version:
            known = self._blocklist = await _indexed(version, await list_blocks())
        return known

    async def unblocked(self, skills: Sequence[PublishedSkill]) -> tuple[PublishedSkill, ...]:
        """Those that no entry hits now. A process that has not read the whole blocklist yet asks for the entries that
        could hit these, so that the first page costs no more round trips than any other."""
        if self._blocklist is None:
            return await _without_hits(skills)
        blocklist = await self.blocklist()
        return tuple(one for one in skills if not blocklist.hits_skill(one))

    async def skill_md(self, digest: str) -> str:
        """The SKILL.md of a content, which never changes."""
        text = self._texts.get(digest)
        if text is None:
            file = skill_file_of(await files_of(digest))
            text = file.data.decode("utf-8", "replace")
            self._texts.put(digest, text, len(file.data))
        return text

    def answer(self, key: object, seen: str | None) -> Answer | None:
        """What was answered, if nothing in the store has changed since."""
        found = self.answers.get(key)
        return found if found is not None and seen is not None and found.seen == seen else None

    def same(self, key: object, mark: object, seen: str | None) -> Answer | None:
        """What was answered, if the records that it is made of are still the same."""
        found = self.answers.get(key)
        if found is None or found.mark != mark:
            return None
        found = msgspec.structs.replace(found, seen=seen)
        self.answers.put(key, found, len(found.body))
        return found

    def keep(self, key: object, body: bytes, seen: str | None, mark: object = None) -> Answer:
        made = _prepare(body, JSON_TYPE, seen, mark)
        if seen is not None or mark is not None:
            self.answers.put(key, made, len(body))
        return made


def _prepare(body: bytes, media_type: str, seen: str | None, mark: object) -> Answer:
    tag = tag_of(body).encode()
    headers = [
        (b"cache-control", REVALIDATE.encode()),
        (b"etag", tag),
        (b"content-length", str(len(body)).encode()),
        (b"content-type", media_type.encode()),
    ]
    return Answer(body, headers, tag, seen, mark)


async def answer_document(
    request: Request, media_type: str, make: Callable[[str, Blocklist], Awaitable[bytes]]
) -> Response:
    """A document about the whole registry, made of its public address and the blocklist: kept until a skill or the
    blocklist changes, however much else does, because making it walks over every skill."""
    kept, base = kept_of(request), public_address(request)
    key = (request.scope["path"], request.scope["query_string"], base)
    async with kept.document_turn:
        blocklist = await kept.blocklist()
        known = await _still_true(kept.documents.get(key), blocklist.version)
        if known is None:
            seen = await last_change()
            known = _prepare(await make(base, blocklist), media_type, seen, blocklist.version)
        if known.seen is not None:
            kept.documents.put(key, known, len(known.body))
    return Again(known, request)


async def _still_true(known: Answer | None, blocklist_version: int) -> Answer | None:
    """The document, known to be true up to the present change, or None where it must be made anew."""
    if known is None or known.mark != blocklist_version:
        return None
    try:
        changes = await require_env("kv").kv.changes(SKILLS.prefix, after=known.seen, limit=1)
    except CursorGone:
        return None
    return None if changes.items else msgspec.structs.replace(known, seen=changes.after)


def kept_of(request: Request) -> KeptThings:
    """What this process keeps."""
    found: KeptThings = request.scope["app"].kept
    return found


async def last_change() -> str | None:
    """The mark of everything in the store; None where the engine has none."""
    try:
        return await require_env("kv").kv.change_cursor()
    except Unsupported:
        return None


async def files_of(digest: str) -> tuple[SkillFile, ...]:
    """The files of a content, every byte verified."""
    data = await require_env("blobs").blobs.get(digest)
    if data is None:
        raise BlobUnavailable(f"the stored files of {digest} are missing", digest=digest)
    return unpack(data, digest)


async def _without_hits(skills: Sequence[PublishedSkill]) -> tuple[PublishedSkill, ...]:
    targets = [all_targets(one.identity, (one.name,), one.current_digest) for one in skills]
    wanted = {target for own in targets for target in own}
    hit = {entry.target for entry in await find_hits(wanted)} if wanted else set()
    return tuple(one for one, own in zip(skills, targets, strict=True) if hit.isdisjoint(own))


async def _indexed(version: int, entries: list[BlockEntry]) -> Blocklist:
    # A place that nobody has submitted, whether mistyped or blocked ahead, says nothing about its neighbours.
    places = await places_with_records(entry.target for entry in entries)
    tainted = {
        "/".join(entry.target.value.split("/")[:3]): entry
        for entry in entries
        if entry.target.kind is TargetKind.PLACE and entry.target.value in places
    }
    return Blocklist(version, {entry.target: entry for entry in entries}, tainted)
