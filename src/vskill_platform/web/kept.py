"""The caches of a web process: each entry has a mark that tells whether it is still valid.

Before a cached answer is used, the store is asked for its current mark (a record's version, the blocklist's version,
the position of the last change); another mark invalidates it. So the next request sees a block, a takedown or a
publication, and notices an unavailable store (C4). Only counts and choices that a page calls recent (`recent`) are used
for some seconds without asking.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_core.errors import CursorGone, Unsupported
from vskill_platform.actions.principal import Principal, audiences_of, document_reader, shares_form
from vskill_platform.actions.skills.skill_names import current_blocklist
from vskill_platform.domain.people.namespace import Audiences
from vskill_platform.domain.recall.block_index import Blocklist
from vskill_platform.ledger.clock import Clock
from vskill_platform.ledger.kv.collections import SKILLS
from vskill_platform.machine.process_cache import MOST_BYTES, Kept
from vskill_platform.web import exchange
from vskill_platform.web.drawing.diffs import FileChangeView
from vskill_platform.web.drawing.highlight import Highlighter
from vskill_platform.worker_context import require_env

V = TypeVar("V")

#: How many `recent` answers are cached (LRU).
MOST_RECENT = 64


class Answer(msgspec.Struct, frozen=True):
    """Bytes that were sent, ready to be sent again, and the marks at which they were valid."""

    body: bytes
    #: Without `Cache-Control`, which depends on who asks.
    headers: list[tuple[bytes, bytes]]
    tag: bytes
    #: The position of the last change when it was last found valid.
    seen: str | None
    #: The versions of the records that it is made of, if known.
    mark: object = None


class PackedList(msgspec.Struct, frozen=True):
    """A git marketplace, ready to be sent."""

    commit: str
    pack: bytes


class Again(Response):
    """A cached answer, or 304 if the client already has it."""

    def __init__(self, found: Answer, request: Request) -> None:
        self.background = None
        headers = [(b"cache-control", exchange.cache_for(request).encode()), *found.headers]
        known = next((value for name, value in request.scope["headers"] if name == b"if-none-match"), None)
        self.status_code, self.body, self.raw_headers = 200, found.body, headers
        if known is not None and found.tag in known:
            # Without the length and the type of a body that is not sent.
            self.status_code, self.body, self.raw_headers = 304, b"", headers[:2]


class KeptThings:
    """All caches of one web process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: Each with the time at which it was made; limited by number.
        self._recent: Kept[tuple[float, Any]] = Kept(MOST_RECENT, 1)
        self._recent_turns: WeakValueDictionary[object, asyncio.Lock] = WeakValueDictionary()
        self.answers: Kept[Answer] = Kept()
        #: Documents about the whole registry, which may be large; one is made at a time.
        self.documents: Kept[Answer] = Kept(MOST_BYTES, MOST_BYTES)
        self.document_turn = asyncio.Lock()
        #: Git marketplaces by what is in them and the address that they were packed for.
        self.packed_lists: Kept[PackedList] = Kept(MOST_BYTES, MOST_BYTES)
        #: Comparisons, by the two contents' digests.
        self.changes: Kept[tuple[FileChangeView, ...]] = Kept(MOST_BYTES // 4)
        #: One large comparison at a time.
        self.diff_turn = asyncio.Lock()
        self.highlighter = Highlighter()
        #: The API's own document.
        self.openapi: dict[str, Any] | None = None

    async def recent(
        self, name: str, audiences: Audiences, max_age_s: float, make: Callable[[], Awaitable[V]]
    ) -> V:
        """The cached answer for readers of these audiences if it is young enough, otherwise a new one, made once for
        all concurrent callers. A failure is never cached."""
        key = (name, audiences)
        async with self._recent_turns.setdefault(key, asyncio.Lock()):
            known, now = self._recent.get(key), self._clock.monotonic()
            if known is None or now - known[0] > max_age_s:
                known = (now, await make())
                self._recent.put(key, known, 1)
            found: V = known[1]
            return found

    def answer(self, key: object, seen: str | None) -> Answer | None:
        """The cached answer, if nothing in the store has changed since."""
        found = self.answers.get(key)
        return found if found is not None and seen is not None and found.seen == seen else None

    def same(self, key: object, mark: object, seen: str | None) -> Answer | None:
        """The cached answer, if its records are unchanged."""
        found = self.answers.get(key)
        if found is None or found.mark != mark:
            return None
        found = msgspec.structs.replace(found, seen=seen)
        self.answers.put(key, found, len(found.body))
        return found

    def keep(self, key: object, body: bytes, seen: str | None, mark: object = None) -> Answer:
        """The answer, cached under its key if it has one."""
        made = _prepare(body, exchange.JSON_TYPE, seen, mark)
        if key is not None and (seen is not None or mark is not None):
            self.answers.put(key, made, len(body))
        return made


def _prepare(body: bytes, media_type: str, seen: str | None, mark: object) -> Answer:
    tag = exchange.tag_of(body).encode()
    headers = [
        (b"etag", tag),
        (b"content-length", str(len(body)).encode()),
        (b"content-type", media_type.encode()),
    ]
    return Answer(body, headers, tag, seen, mark)


async def answer_until_change(request: Request, make: Callable[[], Awaitable[bytes]]) -> Response:
    """An answer that is the same for readers of the same audiences until anything in the store changes."""
    kept = kept_of(request)
    key = form_key(request, None, request.scope["path"], request.scope["query_string"])
    seen = await last_change()
    return Again(kept.answer(key, seen) or kept.keep(key, await make(), seen), request)


def form_key(request: Request, form: Principal | None, *parts: object) -> object:
    """The cache key of an answer: the request, and the audiences that it was made for. None for audiences that hardly
    anybody shares: such answers are not cached, since there is one per set of memberships."""
    reader = form or exchange.principal_of(request)
    if form is None and not shares_form(exchange.services_of(request), reader):
        return None
    return (*parts, audiences_of(reader))


async def answer_recently(
    request: Request, name: str, max_age_s: float, make: Callable[[], Awaitable[V]]
) -> V:
    """What may be some seconds old, for readers of the same audiences."""
    return await kept_of(request).recent(name, audiences_of(exchange.principal_of(request)), max_age_s, make)


#: Makes a document from the registry's public URL, for a reader of its form, with the current blocklist.
MakeDocument = Callable[[str, Principal, Blocklist], Awaitable[bytes]]


async def answer_document(
    request: Request, media_type: str, make: MakeDocument, form: Principal | None = None
) -> Response:
    """A document about many skills: the whole registry's, or one made for `form`. It is cached until a skill or the
    blocklist changes, whatever else does, because making it walks over all skills. One is made at a time, and
    concurrent requests for the same share it; requests for another cached one do not wait."""
    kept, base, services = kept_of(request), exchange.public_address(request), exchange.services_of(request)
    reader = form or await document_reader(exchange.principal_of(request))
    key = form_key(request, reader, request.scope["path"], request.scope["query_string"], base)
    known = await _read_document(kept, key, await current_blocklist(services))
    if known is None:
        async with kept.document_turn:
            blocklist = await current_blocklist(services)
            known = await _read_document(kept, key, blocklist)
            if known is None:
                seen = await last_change()
                known = _prepare(await make(base, reader, blocklist), media_type, seen, blocklist.version)
                if seen is not None:
                    kept.documents.put(key, known, len(known.body))
    return Again(known, request)


async def _read_document(kept: KeptThings, key: object, blocklist: Blocklist) -> Answer | None:
    """The cached document, if it is valid up to the last change."""
    known = kept.documents.get(key)
    if known is None or known.mark != blocklist.version:
        return None
    try:
        changes = await require_env("kv").kv.changes(SKILLS.prefix, after=known.seen, limit=1)
    except CursorGone:
        return None
    if changes.items:
        return None
    known = msgspec.structs.replace(known, seen=changes.after)
    kept.documents.put(key, known, len(known.body))
    return known


def kept_of(request: Request) -> KeptThings:
    found: KeptThings = request.scope["app"].kept
    return found


async def last_change() -> str | None:
    """The mark of everything in the store; None if the engine has none."""
    try:
        return await require_env("kv").kv.change_cursor()
    except Unsupported:
        return None
