"""Event streams over HTTP: the response that sends what a subscription of the hub holds, what each kind of stream
tells, and the API's two streams. Who submitted something is told only where the viewer may know it (E6).

A client resumes with the cursor of the last frame that it saw, as it was given it: sealed. Browsers send it as
`Last-Event-ID` by themselves, and a page that was just loaded gives the cursor of its first paint as `after`, so
nothing between the two is missed. A cursor that is not kept any more is answered with a `reset` event, which tells a
page to load itself again; so is a change of what the reader may read.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from vskill_client.wire.base import Asked, iso_time
from vskill_core.errors import InvalidInput, NotSignedIn
from vskill_platform.actions.principal import Principal, Viewer
from vskill_platform.actions.recall.revocations import RevocationEventView, event_views
from vskill_platform.actions.submissions.submission_views import published_name, submission_card
from vskill_platform.domain import keys
from vskill_platform.domain.canonical_names import canonical_name
from vskill_platform.domain.skills.skill import PublishedSkill, Revocation, RevocationKind
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.kv.entries import Capability
from vskill_platform.store.people.credentials import Credential, find_token_hash, session_key
from vskill_platform.web.browser import SESSION_COOKIE, cookie_of
from vskill_platform.web.door.limits import client_of
from vskill_platform.web.exchange import principal_of, services_of, viewer_of
from vskill_platform.web.routing import Endpoint, get, query_of
from vskill_platform.web.streams.follower import Hub
from vskill_platform.web.streams.stream import MOST_CURSOR, Channel, EventBatch, Subscription, Update, frame

STREAM_TYPE = "text/event-stream"
#: A client that does not take a frame for this long is gone.
SEND_WITHIN_S = 30.0
_HEADERS = {
    "cache-control": "no-store",
    # Some proxies would otherwise keep frames back until a buffer is full.
    "x-accel-buffering": "no",
}

Cursor = Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_CURSOR)]
Names = Annotated[str, msgspec.Meta(min_length=1, max_length=8_000)]


class StreamQuery(Asked, frozen=True):
    """Where to go on; the header `Last-Event-ID` goes before it."""

    after: Cursor | None = None


class LiveSubmissionsQuery(StreamQuery, frozen=True):
    """Which submissions."""

    #: Ids, separated by commas; none is all.
    ids: Names | None = None
    #: Only those that this account submitted.
    mine: bool = False


class LiveSkillsQuery(StreamQuery, frozen=True):
    """Which skills."""

    #: Names, canonical or short, separated by commas; none is all. One that nobody has yet is waited for.
    skills: Names | None = None


class EventStream(Response):
    """Sends frames until the client goes away, the hub ends the stream, or the server stops."""

    media_type = STREAM_TYPE

    def __init__(self, hub: Hub, stream: Subscription) -> None:
        super().__init__(b"", 200, _HEADERS)
        # Its length is not known before its end.
        del self.headers["content-length"]
        self._hub = hub
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending: asyncio.Task[None] | None = None
        leaving: asyncio.Task[None] | None = None
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            sending = self._stream.sender = asyncio.create_task(self._send_all(send))
            leaving = asyncio.create_task(_wait_until_left(receive))
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._hub.leave(self._stream)
            for task in (sending, leaving):
                if task is not None:
                    task.cancel()

    async def _send_all(self, send: Send) -> None:
        while (chunk := await self._stream.next()) is not None:
            async with asyncio.timeout(SEND_WITHIN_S):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _wait_until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def hub_of(request: Request) -> Hub:
    hub: Hub = request.app.state.live
    return hub


def stream(
    path: str,
    channel_of: Callable[[Request], Awaitable[Channel]],
    query: type[StreamQuery] = StreamQuery,
    **declared: Any,
) -> Endpoint:
    """An address that answers with a stream of one kind."""

    async def view(request: Request) -> Response:
        channel = await channel_of(request)
        if request.method == "HEAD":
            return Response(None, 200, _HEADERS, STREAM_TYPE)
        hub, reader = hub_of(request), principal_of(request)
        last_seen = request.headers.get("last-event-id") or query_of(request, query).after
        credential = await _credential_of(request, reader)
        return EventStream(hub, await hub.join(client_of(request), reader, channel, last_seen, credential))

    return get(path, view, query=query, media=STREAM_TYPE, is_stream=True, **declared)


async def _credential_of(request: Request, reader: Principal) -> Credential | None:
    if reader.account is None:
        return None
    if reader.token is not None:
        token_hash, _ = await find_token_hash(reader.account, reader.token.id)
        return Credential(keys.token(token_hash), reader.account)
    return Credential(session_key(cookie_of(request, SESSION_COOKIE) or ""), reader.account)


async def page_position(request: Request) -> str:
    """The store's change cursor before a page reads; empty if changes cannot be followed."""
    kv = services_of(request).kv
    return await kv.change_cursor() if Capability.CHANGES in kv.capabilities else ""


async def sealed_cursor(request: Request, position: str) -> str:
    """The position of a page's first paint, as its script gives it back to a stream."""
    return (await hub_of(request).cursors()).of_now(position) if position else ""


async def submissions(request: Request) -> Channel:
    """Every change of submissions, as named events: `submission`, and `submission_decision` where a run ended."""
    query, viewer = query_of(request, LiveSubmissionsQuery), viewer_of(request)
    if query.mine and viewer.account is None:
        raise NotSignedIn
    return Submissions(viewer, _names(query.ids, "ids"), query.mine)


async def skills(request: Request) -> Channel:
    """Every change of published skills, in plain messages."""
    names = _names(query_of(request, LiveSkillsQuery).skills, "skills")
    return Skills(viewer_of(request), frozenset(name.lower() for name in names))


def _names(text: str | None, field: str) -> frozenset[str]:
    found = frozenset(part.strip() for part in (text or "").split(",") if part.strip())
    if text is not None and not found:
        # Otherwise it would be a stream of everything.
        raise InvalidInput(f"{field} contains no name.", field=field, fix="name one, or leave it out")
    return found


# What each kind of stream tells, frame by frame.


def submission_event(record: Submission, viewer: Viewer) -> dict[str, object]:
    """As lists show it; `submitter` is there only where the viewer may know it."""
    private = {"submitter": record.submitter} if viewer.sees_private(record) else {}
    return {**msgspec.to_builtins(submission_card(record)), **private}


class Submissions(msgspec.Struct, frozen=True):
    """Changes of submissions: all, some by id, or the viewer's own."""

    viewer: Viewer
    ids: frozenset[str] = frozenset()
    mine: bool = False
    shows_counts: bool = False

    def write(self, batch: EventBatch) -> bytes:
        return b"".join(self._frames(update) for update in batch.updates)

    def _frames(self, update: Update) -> bytes:
        record = update.record
        if not isinstance(record, Submission) or not self._wants(record):
            return b""
        data = submission_event(record, self.viewer)
        if record.state.ends_run:
            # Only the second frame advances the cursor, so that a break between the two loses neither.
            first = frame("submission", data, update.before)
            return first + frame("submission_decision", data, update.cursor)
        return frame("submission", data, update.cursor)

    def _wants(self, record: Submission) -> bool:
        if self.mine and record.submitter != self.viewer.account:
            return False
        return not self.ids or record.id in self.ids


class Skills(msgspec.Struct, frozen=True):
    """Changes of published skills in plain messages; decisions about their submissions and what was withdrawn or
    restored as named events."""

    viewer: Viewer
    #: In lower case, canonical or short (`owner/slug`, `slug`), as clients have them; empty is every skill.
    names: frozenset[str] = frozenset()
    shows_counts: bool = False

    def write(self, batch: EventBatch) -> bytes:
        return b"".join(self._frame(update) for update in batch.updates)

    def _frame(self, update: Update) -> bytes:
        match update.record:
            case Revocation() as event if self._wants(event.skill):
                return recall_frames(event, update)
            case PublishedSkill() as skill if self._wants(skill.canonical):
                return frame("", skill_event(skill, update.cursor), update.cursor)
            case Submission() as record if record.state.ends_run:
                # Before the first publication, it is about the name that the skill would get.
                if self._wants(published_name(record) or canonical_name(record.identity)):
                    return frame("submission_decision", submission_event(record, self.viewer), update.cursor)
        return b""

    def _wants(self, canonical: str) -> bool:
        """Match any name that a client may use for a skill; a short name may match several skills."""
        owner, _, rest = canonical.lower().partition("/")
        slug = rest.rpartition("/")[2]
        return not self.names or not self.names.isdisjoint((canonical.lower(), f"{owner}/{slug}", slug))


def recall_frames(event: Revocation, update: Update) -> bytes:
    """Only the last frame advances the cursor, so that a break between two loses none."""
    views = event_views(event)
    cursors = [*[update.before] * (len(views) - 1), update.cursor]
    return b"".join(map(_recall_frame, views, cursors))


def _recall_frame(view: RevocationEventView, cursor: str) -> bytes:
    data = msgspec.to_builtins(view)
    match view.type:
        case RevocationKind.WITHDRAWN:
            return frame("skill.withdrawn", data, cursor)
        case RevocationKind.RESTORED:
            return frame("skill.restored", data, cursor)
        case _:
            return frame("skill.yanked", data, cursor)


def skill_event(skill: PublishedSkill, cursor: str) -> dict[str, object]:
    """`skill.updated`, as the desktop companion of the original client reads it."""
    return {
        "type": "skill.updated",
        "eventId": cursor,
        "skillId": skill.canonical,
        "name": skill.canonical,
        "version": skill.current_version,
        "sha": skill.content_hash,
        "certTier": None if skill.certification is None else skill.certification.value,
        "withdrawn": skill.withdrawn,
        "publishedAt": iso_time(skill.updated_at),
    }


ENDPOINTS = (
    stream(
        "/api/v1/submissions/stream",
        submissions,
        LiveSubmissionsQuery,
        tag="submissions",
        summary="Changes of submissions as they happen",
        problems=(429,),
    ),
    stream(
        "/api/v1/skills/stream",
        skills,
        LiveSkillsQuery,
        tag="skills",
        summary="Changes of published skills as they happen",
        problems=(429,),
    ),
)
