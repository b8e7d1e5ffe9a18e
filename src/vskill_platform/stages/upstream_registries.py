"""Upstreams that speak ClawHub's protocol: ClawHub itself, and other registries that answer it.

What it says is foreign: each answer is bounded in bytes, the list in pages. Only public addresses are asked, without
redirects, by the same code that posts webhooks. A version is fetched once: other bytes under the same number are never
looked at.
"""

import asyncio
from typing import TypeVar
from urllib.parse import quote, urlencode

import msgspec

from vskill_core.archive_reading import read_archive
from vskill_core.content import DEFAULT_LIMITS
from vskill_core.errors import InvalidInput, LimitExceeded, SourceGone, SourceUnavailable
from vskill_core.foreign_json import read_json
from vskill_platform.domain.skills.upstream import MOST_OFFERED, Brought, Offer, Upstream, UpstreamEntry
from vskill_platform.notifications.post import request
from vskill_platform.worker_context import require_env

#: What ClawHub's list has no name for: a slug is unique there.
REPO = "skills"
_PAGE = 200
_MOST_PAGES = MOST_OFFERED // 25
_MOST_PAGE_BYTES = 4 * 1024 * 1024
_OK, _BAD, _BROKEN = 200, 400, 500
_TOO_MANY = 429

T = TypeVar("T")


class _Version(msgspec.Struct, frozen=True):
    version: str


class _Item(msgspec.Struct, frozen=True, rename="camel"):
    """A skill in the list, as far as it is read."""

    slug: str
    summary: str | None = None
    #: none while nothing of it can be installed
    latest_version: _Version | None = None


class _Page(msgspec.Struct, frozen=True, rename="camel"):
    items: tuple[_Item, ...]
    next_cursor: str | None = None


class ClawhubSource:
    """Every skill of the registry, at its newest version."""

    async def list_entries(self, upstream: Upstream) -> Offer:
        found: dict[str, UpstreamEntry] = {}
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            asked = {"limit": str(_PAGE), **({"cursor": cursor} if cursor else {})}
            data = await _get(upstream, f"/api/v1/skills?{urlencode(asked)}", _MOST_PAGE_BYTES)
            page = _decoded(data, _Page)
            for item in page.items:
                number = item.latest_version.version if item.latest_version else ""
                if number:
                    found[item.slug] = UpstreamEntry(
                        REPO,
                        item.slug,
                        number,
                        {"slug": item.slug, "version": number},
                        item.summary or "",
                        number,
                    )
            if not page.next_cursor or page.next_cursor == cursor:
                return Offer(tuple(found.values()))
            if len(found) > MOST_OFFERED:
                break
            cursor = page.next_cursor
        message = f"The registry lists more than {MOST_OFFERED} skills, or never ends its list."
        raise LimitExceeded(message, limit="entries", allowed=MOST_OFFERED)

    async def fetch(self, upstream: Upstream, entry: UpstreamEntry) -> Brought:
        asked = urlencode({"slug": entry.where["slug"], "version": entry.where["version"]}, quote_via=quote)
        data = await _get(upstream, f"/api/v1/download?{asked}", DEFAULT_LIMITS.bytes_total)
        return Brought(await asyncio.to_thread(read_archive, data), entry.version)


async def _get(upstream: Upstream, path: str, most: int) -> bytes:
    private = require_env("settings").settings.allowed_private_hosts
    url = f"{upstream.address.rstrip('/')}{path}"
    status, data = await request("GET", url, {}, None, private_hosts=private, most_bytes=most)
    if status == _TOO_MANY or status >= _BROKEN:
        raise SourceUnavailable(f"{upstream.address} answers {status} at the moment.", host=upstream.name)
    if status != _OK:
        what = "redirects, which is not followed" if status < _BAD else f"answers {status}"
        raise SourceGone(f"{upstream.address} {what}; give the address of its protocol.")
    if len(data) > most:
        message = f"{upstream.address} sends more than the {most} bytes that are read."
        raise LimitExceeded(message, limit="bytes", allowed=most)
    return data


def _decoded(data: bytes, kind: type[T]) -> T:
    try:
        return read_json(data, kind)
    except msgspec.DecodeError as error:
        message = f"The upstream does not speak ClawHub's protocol: {str(error)[:200]}"
        raise InvalidInput(message, field="address", fix="give the address of its protocol") from None
