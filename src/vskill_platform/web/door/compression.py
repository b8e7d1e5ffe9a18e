"""Compresses answers: pages, JSON and other text that a GET asks for, with gzip.

The length of a compressed answer tells whether text that an attacker put into the URL also occurs elsewhere in the
answer, and so, guess by guess, reveals a secret in it (BREACH). So answers made for a session are not compressed. The
only browser secret in answers to visitors or tokens is a form's, which each answer masks differently.
"""

import asyncio
import gzip
from functools import partial

import re2
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.machine.process_cache import MOST_BYTES, Kept
from vskill_platform.web.browser import Browser

#: Smaller ones fit into one packet anyway.
LEAST_BYTES = 1_024
#: More than this is compressed in a thread, to not block other requests.
MOST_INLINE = 32_768
LEVEL = 5
_TEXT = ("text/", "application/json", "application/xml", "application/javascript")
_TEXT_ENDINGS = ("+json", "+xml")
_READING = frozenset({"GET", "HEAD"})


class Compression:
    """Compression of one process: an answer with an ETag is compressed once, and cached."""

    def __init__(self) -> None:
        self._kept: Kept[bytes] = Kept(MOST_BYTES // 2, MOST_BYTES // 8)

    async def apply(self, request: Request, response: Response) -> None:
        """Compress the answer's body in place, if that is useful and safe."""
        browser: Browser | None = request.scope.get("browser")
        has_session = browser is not None and browser.session is not None
        if request.method not in _READING or has_session:
            return
        tag = response.headers.get("etag")
        if response.status_code == 304:
            # A cache knows the answer by the weak ETag that we sent.
            if tag is not None and _weak(tag) in request.headers.get("if-none-match", ""):
                response.headers["etag"] = _weak(tag)
            return
        body = getattr(response, "body", b"")
        media = response.headers.get("content-type", "").partition(";")[0].strip()
        is_text = media.startswith(_TEXT) or media.endswith(_TEXT_ENDINGS)
        if len(body) < LEAST_BYTES or not is_text or "content-encoding" in response.headers:
            return
        response.headers.append("vary", "Accept-Encoding")
        if accepts_gzip(request.headers.get("accept-encoding", "")):
            response.body = await self._packed(tag, bytes(body))
            response.headers["content-encoding"] = "gzip"
            response.headers["content-length"] = str(len(response.body))
            if tag is not None:
                # A weak ETag: equivalent content, but other bytes.
                response.headers["etag"] = _weak(tag)

    async def _packed(self, tag: str | None, body: bytes) -> bytes:
        found = self._kept.get((tag, len(body))) if tag is not None else None
        if found is not None:
            return found
        pack = partial(gzip.compress, body, LEVEL, mtime=0)
        packed = pack() if len(body) <= MOST_INLINE else await asyncio.to_thread(pack)
        if tag is not None:
            self._kept.put((tag, len(body)), packed, len(packed))
        return packed


def accepts_gzip(accepted: str) -> bool:
    """Whether the client accepts gzip: named, and not with weight 0."""
    for part in accepted.lower().split(","):
        name, _, weight = part.strip().partition(";")
        if name.strip() in ("gzip", "x-gzip"):
            return re2.fullmatch(r"\s*q\s*=\s*0(\.0*)?\s*", weight) is None
    return False


def _weak(tag: str) -> str:
    return tag if tag.startswith("W/") else f"W/{tag}"
