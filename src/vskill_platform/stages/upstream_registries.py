"""Upstreams that are registries: those that speak ClawHub's protocol, and other installations of this platform.

What they say is foreign: each answer is bounded in bytes, the list in pages. Only public addresses are asked, without
redirects, by the same code that posts webhooks. A version is fetched once: other bytes under the same number are never
looked at. Of another installation only bytes come that it signed, by a key that it had at the first look.
"""

import asyncio
import hashlib
from collections.abc import Iterable
from urllib.parse import quote, urlencode

import msgspec

from vskill_core.archive_reading import SERVED_LIMITS, read_archive
from vskill_core.content import DEFAULT_LIMITS
from vskill_core.dsse import MAX_BYTES
from vskill_core.errors import InvalidInput, LimitExceeded, SourceGone, SourceUnavailable
from vskill_core.foreign_json import read_json
from vskill_core.signing_keys import jwk, public_from_jwk, public_from_jwks
from vskill_core.statement import AttestedOrigin
from vskill_core.verification import check_attestation
from vskill_platform.domain.skills.upstream import MOST_OFFERED, Brought, Offer, Upstream, UpstreamEntry
from vskill_platform.notifications.post import request
from vskill_platform.stages.upstream_bundles import entry_of
from vskill_platform.worker_context import require_env

#: What ClawHub's list has no name for: a slug is unique there.
REPO = "skills"
#: What both take for one page.
_PAGE = 100
_MOST_PAGES = MOST_OFFERED // 25
_MOST_PAGE_BYTES = 4 * 1024 * 1024
_OK, _BAD, _BROKEN = 200, 400, 500
_TOO_MANY = 429


class _Version(msgspec.Struct, frozen=True):
    version: str


class _Item(msgspec.Struct, frozen=True, rename="camel"):
    """A skill in ClawHub's list, as far as it is read."""

    slug: str
    summary: str | None = None
    #: none while nothing of it can be installed
    latest_version: _Version | None = None


class _Items(msgspec.Struct, frozen=True, rename="camel"):
    """A page of it."""

    items: tuple[_Item, ...]
    next_cursor: str | None = None

    def entries(self) -> Iterable[UpstreamEntry]:
        for one in self.items:
            if one.latest_version is not None and (number := one.latest_version.version):
                where = {"slug": one.slug, "version": number}
                yield UpstreamEntry(REPO, one.slug, number, where, one.summary or "", number)

    def following(self) -> str | None:
        """How the next one is asked for."""
        return self.next_cursor


class _Card(msgspec.Struct, frozen=True, rename="camel"):
    """A skill in the list of an installation, as far as it is read."""

    name: str
    description: str
    #: none while nothing of it can be installed
    current_version: str | None


class _After(msgspec.Struct, frozen=True):
    after: str | None = None


class _Cards(msgspec.Struct, frozen=True):
    """A page of it."""

    skills: tuple[_Card, ...]
    pagination: _After

    def entries(self) -> Iterable[UpstreamEntry]:
        for one in self.skills:
            if number := one.current_version:
                yield entry_of(one.name, number, one.description, number)

    def following(self) -> str | None:
        return self.pagination.after


PageKind = type[_Items] | type[_Cards]


class ClawhubSource:
    """Every skill of the registry, at its newest version."""

    async def list_entries(self, upstream: Upstream) -> Offer:
        return Offer(await _list(upstream, _Items, "cursor"))

    async def fetch(self, upstream: Upstream, entry: UpstreamEntry) -> Brought:
        asked = urlencode({"slug": entry.where["slug"], "version": entry.where["version"]}, quote_via=quote)
        data = await _get(upstream, f"/api/v1/download?{asked}", DEFAULT_LIMITS.bytes_total)
        return Brought(await asyncio.to_thread(read_archive, data), entry.version)


class InstallationSource:
    """Every skill that everybody may read there, at its current version."""

    async def list_entries(self, upstream: Upstream) -> Offer:
        keys = upstream.state.keys or tuple(
            map(jwk, public_from_jwks(await _get(upstream, "/.well-known/vskill-keys.json", MAX_BYTES)))
        )
        return Offer(await _list(upstream, _Cards, "after"), keys=keys)

    async def fetch(self, upstream: Upstream, entry: UpstreamEntry) -> Brought:
        skill, number = entry.where["path"], entry.version
        path = f"/api/v1/skills/{quote(skill, safe='/~')}"
        attestation = await _get(upstream, f"{path}/versions/{quote(number, safe='')}/attestation", MAX_BYTES)
        asked = urlencode({"version": number, "format": "tar.gz"}, quote_via=quote)
        archive = await _get(upstream, f"{path}/archive?{asked}", SERVED_LIMITS.bytes_total)
        files = await asyncio.to_thread(read_archive, archive, SERVED_LIMITS)
        trusted = tuple(map(public_from_jwk, upstream.state.keys))
        about = f"{skill}@{number}"
        checked = check_attestation(attestation, trusted, archive=archive, files=files, about=about)
        address = hashlib.sha256(attestation).hexdigest()
        await require_env("blobs").blobs.put(address, attestation)
        registry = checked.statement.predicate.registry
        return Brought(files, number, AttestedOrigin(registry, skill, number, checked.key.key_id, address))


async def _list(upstream: Upstream, kind: PageKind, cursor: str) -> tuple[UpstreamEntry, ...]:
    """Every page of a list, of which the next is asked for by this parameter."""
    found: dict[str, UpstreamEntry] = {}
    asked = {"limit": str(_PAGE)}
    for _ in range(_MOST_PAGES):
        page = _decoded(await _get(upstream, f"/api/v1/skills?{urlencode(asked)}", _MOST_PAGE_BYTES), kind)
        found |= {one.name: one for one in page.entries()}
        following = page.following()
        if not following or following == asked.get(cursor):
            return tuple(found.values())
        if len(found) > MOST_OFFERED:
            break
        asked[cursor] = following
    message = f"The registry lists more than {MOST_OFFERED} skills, or never ends its list."
    raise LimitExceeded(message, limit="entries", allowed=MOST_OFFERED)


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


def _decoded(data: bytes, kind: PageKind) -> _Items | _Cards:
    try:
        return read_json(data, kind)
    except msgspec.DecodeError as error:
        message = f"The upstream does not answer as a registry of its kind: {str(error)[:200]}"
        raise InvalidInput(message, field="address", fix="give the address of its protocol") from None
