"""Git's protocol over HTTP for repositories of one commit: read only and stateless, in versions 0 and 2.

Whatever a client has already, it is sent everything: one commit without history is small. `plugin_git` serves skills
with it and `git_marketplace` lists of skills.
"""

import gzip
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import wraps
from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from vskill_client.wire.base import Asked
from vskill_core.errors import InvalidInput, NotPermitted
from vskill_platform.web.routing import Endpoint, get, post, query_of, read_body

BRANCH = "refs/heads/main"
#: What a request to fetch may hold: names of commits, nothing else.
MOST_REQUEST = 1_000_000
FLUSH = b"0000"
#: The most that one packet of the side band carries.
_BAND = 65_515
_NO_STORE = {"cache-control": "no-cache"}
_AGENT = "agent=vskill-platform"
_ABLE = (
    "shallow side-band-64k no-progress allow-tip-sha1-in-want "
    f"symref=HEAD:{BRANCH} object-format=sha1 {_AGENT}"
)
#: Version 2: what a client may ask for, one line each.
_COMMANDS = ("version 2", _AGENT, "ls-refs", "fetch=shallow", "object-format=sha1")


class ServiceQuery(Asked, frozen=True):
    """What git wants to do; the answer to a push says that there is none."""

    service: Literal["git-upload-pack", "git-receive-pack"]


class WantedCommits(msgspec.Struct, frozen=True):
    """What a client asks for in its second request."""

    #: ids of commits
    wanted: frozenset[str]
    #: `ls-refs` or `fetch`; empty in version 0
    command: str
    #: whether the client waits for the pack now
    is_done: bool
    has_any: bool
    deepens: bool
    banded: bool


class ServedRepository(msgspec.Struct, frozen=True):
    """A repository of one commit."""

    commit: str
    #: Makes its pack; called only where it is sent.
    pack: Callable[[], Awaitable[bytes]]


#: Reads the repository that an address means. Where it has changed since a client looked, the commit that the client
#: wants tells which one.
ReadRepository = Callable[[Request, frozenset[str]], Awaitable[ServedRepository]]


def show_refs(request: Request, commit: str) -> Response:
    """The first answer: the one branch, or in version 2 what can be asked for."""
    head = packet(b"# service=git-upload-pack\n") + FLUSH
    if "version=2" in request.headers.get("git-protocol", "").split(":"):
        body = b"".join(packet(f"{line}\n".encode()) for line in _COMMANDS)
    else:
        body = packet(f"{commit} HEAD\0{_ABLE}\n".encode()) + packet(f"{commit} {BRANCH}\n".encode())
    return Response(head + body + FLUSH, 200, _NO_STORE, "application/x-git-upload-pack-advertisement")


async def read_fetch(request: Request) -> WantedCommits:
    """The second request; InvalidInput where git did not send it."""
    lines = list(packets(_decompress(request, await read_body(request, MOST_REQUEST))))
    stripped = [line.strip() for line in lines]
    command = next((line[8:] for line in stripped if line.startswith(b"command=")), b"")
    return WantedCommits(
        wanted=frozenset(
            line[5:45].decode("ascii", "replace") for line in lines if line.startswith(b"want ")
        ),
        command=command.decode("ascii", "replace"),
        is_done=b"done" in stripped,
        has_any=any(line.startswith(b"have ") for line in lines),
        deepens=any(line.startswith(b"deepen") for line in lines),
        banded=bool(command) or (bool(lines) and b"side-band-64k" in lines[0]),
    )


def list_refs(commit: str) -> Response:
    """Version 2's answer to `ls-refs`."""
    head = packet(f"{commit} HEAD symref-target:{BRANCH}\n".encode())
    return _answer(head + packet(f"{commit} {BRANCH}\n".encode()) + FLUSH)


def negotiate(asked: WantedCommits) -> Response | None:
    """What to answer before the pack is wanted; None where it is. Nothing that a client has is in common with us."""
    if asked.is_done or (asked.command and not asked.has_any):
        return None
    if asked.command:
        return _answer(packet(b"acknowledgments\n") + packet(b"NAK\n") + FLUSH)
    shallow = FLUSH if asked.deepens else b""
    return _answer(shallow + (packet(b"NAK\n") if asked.has_any or not asked.deepens else b""))


def send_pack(asked: WantedCommits, pack: bytes) -> Response:
    # One commit has no history to cut off, so there is nothing to say about depth but that all is said.
    begin = (FLUSH if asked.deepens else b"") + packet(b"NAK\n")
    head = packet(b"packfile\n") if asked.command else begin
    return StreamingResponse(
        _stream(head, pack, banded=asked.banded), 200, _NO_STORE, "application/x-git-upload-pack-result"
    )


async def _stream(head: bytes, pack: bytes, *, banded: bool) -> AsyncIterator[bytes]:
    yield head
    view = memoryview(pack)
    for begin in range(0, len(pack), _BAND):
        piece = bytes(view[begin : begin + _BAND])
        yield packet(b"\x01" + piece) if banded else piece
    if banded:
        yield FLUSH


def _answer(body: bytes) -> Response:
    return Response(body, 200, _NO_STORE, "application/x-git-upload-pack-result")


def git_endpoints(place: str, read: ReadRepository, no_scope: str) -> tuple[Endpoint, Endpoint]:
    @wraps(read)
    async def refs(request: Request) -> Response:
        if query_of(request, ServiceQuery).service != "git-upload-pack":
            raise NotPermitted(
                "This repository is made from verified records, and nothing can be pushed to it",
                fix="submit the skill to the registry",
            )
        return show_refs(request, (await read(request, frozenset())).commit)

    @wraps(read)
    async def fetch(request: Request) -> Response:
        asked = await read_fetch(request)
        served = await read(request, asked.wanted)
        if asked.command == "ls-refs":
            return list_refs(served.commit)
        if asked.wanted != {served.commit}:
            return _answer(packet(b"ERR another version was published; fetch again\n"))
        return negotiate(asked) or send_pack(asked, await served.pack())

    answers = {"media": "*/*", "documented": False, "for_git": True}
    return (
        get(f"{place}/info/refs", refs, query=ServiceQuery, **answers),
        post(
            f"{place}/git-upload-pack",
            fetch,
            no_scope=no_scope,
            reads_only=True,
            most_body=MOST_REQUEST,
            **answers,
        ),
    )


# Packets.


def packet(data: bytes) -> bytes:
    return b"%04x" % (len(data) + 4) + data


def packets(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        head = data[at : at + 4]
        try:
            size = int(head, 16)
        except ValueError:
            size = -1
        if len(head) < 4 or size < 0 or at + size > len(data):
            raise InvalidInput("The request does not come from git.", field="body", fix="use git to fetch")
        if size > 4:
            yield data[at + 4 : at + size]
        at += max(size, 4)


def _decompress(request: Request, body: bytes) -> bytes:
    """Git compresses longer requests."""
    if request.headers.get("content-encoding", "") not in ("gzip", "x-gzip"):
        return body
    try:
        plain = gzip.GzipFile(fileobj=io.BytesIO(body)).read(MOST_REQUEST + 1)
    except (OSError, EOFError) as error:
        raise InvalidInput(f"The body is not gzip: {error}", field="body", fix="send it plain") from None
    if len(plain) > MOST_REQUEST:
        raise InvalidInput("The request is too long.", field="body", fix="clone anew")
    return plain
