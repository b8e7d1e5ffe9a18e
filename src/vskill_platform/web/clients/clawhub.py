"""ClawHub's protocol, version 1, under `/clawhub`: what the `clawhub` command searches, inspects, installs and updates
with. How skills are called there is in `clawhub_names`, how the client knows what it has in `clawhub_fingerprints`,
publishing in `clawhub_publish`.

A blocked skill answers with `moderation.isMalwareBlocked`, which the client refuses to install; of a withdrawn one the
answer to `install` says why. Downloads of either are 403 and 410, whatever the client makes of the rest.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Asked, NoParameters
from vskill_core.errors import Blocked, InvalidInput, NotFound, Withdrawn
from vskill_core.plain_text import plain_text
from vskill_platform.actions.action import Services
from vskill_platform.actions.people.account import WHO_AM_I
from vskill_platform.actions.skills import skill_names
from vskill_platform.actions.skills.catalogue import list_catalogue, search_catalogue
from vskill_platform.actions.skills.installs import with_current_installs
from vskill_platform.domain.downloads import ZIP_TYPE, zip_archive
from vskill_platform.domain.recall.block_index import Blocklist
from vskill_platform.domain.skills.catalogue import Sort
from vskill_platform.domain.skills.skill import PublishedSkill, VersionRef, VersionStatus
from vskill_platform.web.api.skills import BYTES_TYPE, made_of
from vskill_platform.web.clients.artifacts import count_install
from vskill_platform.web.clients.clawhub_fingerprints import fingerprints
from vskill_platform.web.clients.clawhub_names import JOIN, asked_skill, flat_slugs, handle_of
from vskill_platform.web.exchange import (
    attachment,
    foreign_file,
    json_response,
    principal_of,
    public_address,
    services_of,
    with_tag,
)
from vskill_platform.web.routing import Endpoint, View, get, post, query_of
from vskill_platform.worker_context import require_env

API = "/clawhub/api/v1"
SKILL = f"{API}/skills/{{slug}}"

Slug = Annotated[str, msgspec.Meta(min_length=1, max_length=400)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Cursor = Annotated[str, msgspec.Meta(max_length=2000)]

#: What a folder is called that holds a version which was blocked or taken down: lower than every version, so that the
#: client installs the latest in its place. It calls a folder up to date whose version is not lower than the latest.
RECALLED = "0.0.0-recalled"

SkillView = Callable[[Request, PublishedSkill], Awaitable[Response]]

_SORTS = {
    "updated": Sort.UPDATED,
    "createdAt": Sort.NEWEST,
    "newest": Sort.NEWEST,
    "downloads": Sort.INSTALLS,
    "installs": Sort.INSTALLS,
    "installsCurrent": Sort.INSTALLS,
    "installsAllTime": Sort.INSTALLS,
    "stars": Sort.INSTALLS,
    "rating": Sort.INSTALLS,
    "trending": Sort.INSTALLS,
}


#: An account's role in this protocol's words; the others are users.
_ROLES = {"admin": "admin", "reviewer": "moderator"}


class SearchQuery(Asked, frozen=True):
    """Words to look for; `mode=exact` wants the slug itself."""

    q: Annotated[str, msgspec.Meta(max_length=400)] = ""
    limit: Limit = 25
    mode: str = ""
    highlighted_only: str = ""
    non_suspicious_only: str = ""


class ListQuery(Asked, frozen=True):
    """A page of all skills, or of those whose slug begins with `prefix`."""

    limit: Limit = 25
    cursor: Cursor = ""
    sort: str = "updated"
    prefix: Annotated[str, msgspec.Meta(max_length=200)] = ""
    dir: str = ""
    non_suspicious_only: str = ""


class ClawHubOwnerQuery(Asked, frozen=True, kw_only=True):
    """Whose skill, where several have the slug."""

    owner_handle: str = ""


class SkillQuery(ClawHubOwnerQuery, frozen=True, kw_only=True):
    """What the client may send along when it asks about one skill."""

    force_install: str = ""


class VersionsQuery(ClawHubOwnerQuery, frozen=True, kw_only=True):
    """A page of versions, newest first; the cursor is the number of those before it."""

    limit: Limit = 25
    cursor: Annotated[str, msgspec.Meta(pattern="^[0-9]{0,6}$")] = ""


class ClawHubFileQuery(ClawHubOwnerQuery, frozen=True, kw_only=True):
    """Which file of which version."""

    path: Annotated[str, msgspec.Meta(min_length=1, max_length=600)]
    version: str = ""
    tag: str = ""


class ResolveQuery(ClawHubOwnerQuery, frozen=True, kw_only=True):
    """Which version has this fingerprint."""

    slug: Slug
    hash: Annotated[str, msgspec.Meta(max_length=200)] = ""


class DownloadQuery(ClawHubOwnerQuery, frozen=True, kw_only=True):
    """Which version; the current one where none is named."""

    slug: Slug
    version: str = ""
    tag: str = ""


# Reading.


async def discovery(request: Request) -> Response:
    base = public_address(request)
    return json_response({"apiBase": f"{base}/clawhub", "authBase": base})


async def search(request: Request) -> Response:
    """Only what can be installed: the protocol has no mark for what cannot."""
    asked = query_of(request, SearchQuery)
    found = await search_catalogue(principal_of(request), asked.q, limit=asked.limit)
    items = await _installable_skills(services_of(request), found.items)
    if asked.mode == "exact":
        items = tuple(one for one in items if asked.q.lower() in (one.slug, one.name.lower()))
    slugs = await flat_slugs(request, items)
    results = [_result(one, slugs[one.canonical], rank, len(items)) for rank, one in enumerate(items)]
    return json_response({"results": results})


def _result(skill: PublishedSkill, slug: str, rank: int, among: int) -> dict[str, Any]:
    return {
        "source": "clawhub",
        "slug": slug,
        "ownerHandle": handle_of(skill),
        "displayName": skill.name or skill.slug,
        "summary": plain_text(skill.description) or None,
        "version": skill.current_version,
        # They come in order of relevance, which is all that is known about it.
        "score": round(1 - rank / max(1, among), 3),
        "downloads": skill.listing.installs if skill.listing else 0,
        "updatedAt": skill.updated_at,
        "owner": {"handle": handle_of(skill), "displayName": skill.owner},
    }


async def list_all(request: Request) -> Response:
    asked = query_of(request, ListQuery)
    if asked.sort not in _SORTS:
        raise InvalidInput(
            f"There is no order {asked.sort[:40]!r}.", field="sort", fix=f"use {', '.join(_SORTS)}"
        )
    services, reader = services_of(request), principal_of(request)
    after = asked.cursor or None
    if asked.prefix:
        page = await skill_names.list_beginning_with(services, reader, asked.prefix, after, asked.limit)
    else:
        page = await list_catalogue(reader, sort=_SORTS[asked.sort], after=after, limit=asked.limit)
    offered = await _installable_skills(services, page.items)
    slugs = await flat_slugs(request, offered)
    return json_response(
        {"items": [_card(one, slugs[one.canonical]) for one in offered], "nextCursor": page.after}
    )


async def _installable_skills(
    services: Services, items: tuple[PublishedSkill, ...]
) -> tuple[PublishedSkill, ...]:
    return await skill_names.leave_out_blocked(services, [one for one in items if one.listing is not None])


def _card(skill: PublishedSkill, slug: str) -> dict[str, Any]:
    installs = skill.listing.installs if skill.listing else 0
    card: dict[str, Any] = {
        "slug": slug,
        "displayName": skill.name or skill.slug,
        "summary": plain_text(skill.description) or None,
        "tags": {"latest": skill.current_version} if skill.current_version else {},
        "stats": {"downloads": installs, "installsAllTime": installs, "versions": len(skill.versions)},
        "createdAt": skill.created_at,
        "updatedAt": skill.updated_at,
    }
    current = _current(skill)
    if current is not None:
        card["latestVersion"] = _version(current)
    return card


def _current(skill: PublishedSkill) -> VersionRef | None:
    return next((ref for ref in skill.versions if ref.number == skill.current_version), None)


def _version(ref: VersionRef) -> dict[str, Any]:
    """Leave the licence out: the protocol knows only one, which skills here did not choose."""
    return {"version": ref.number, "createdAt": ref.published_at, "changelog": "", "license": None}


async def detail(request: Request, skill: PublishedSkill) -> Response:
    skill = await with_current_installs(services_of(request), skill)
    card = _card(skill, (await flat_slugs(request, [skill]))[skill.canonical])
    moderation = _moderation(skill, await skill_names.current_blocklist(require_env()))
    latest = card.pop("latestVersion", None)
    return json_response(
        {
            "skill": card,
            "latestVersion": None if moderation["isMalwareBlocked"] else latest,
            "metadata": None,
            "owner": {"handle": handle_of(skill), "displayName": skill.owner},
            "moderation": moderation,
        }
    )


def _moderation(skill: PublishedSkill, blocklist: Blocklist) -> dict[str, Any]:
    """Our verdict in this protocol's words. The client refuses what is blocked, asks before it installs what is
    suspicious, and prints the verdict of everything else."""
    is_live = skill.current_version is not None
    latest = _current(skill) or next(reversed(skill.versions), None)
    hits = blocklist.hits_version(skill, latest) if latest is not None else ()
    down = [ref for ref in skill.versions if not is_live and ref.status is VersionStatus.TAKEN_DOWN]
    # What a person took down without naming a danger need not be malicious: `install` says why there is nothing.
    bad = [ref for ref in down if ref.threat_type or not ref.by.startswith(("admin:", "user:"))]
    taint = blocklist.taint(skill.identity, skill.audience) if is_live else None
    code = reason = ""
    if hits:
        code, reason = "blocked", hits[0].reason
    elif down:
        code, reason = "taken-down", (bad or down)[-1].reason
    elif taint is not None:
        code, reason = "tainted", f"another skill of this repository is blocked: {taint.reason}"
    is_blocked = bool(hits or bad)
    return {
        "isSuspicious": code == "tainted",
        "isMalwareBlocked": is_blocked,
        "verdict": "malicious" if is_blocked else "suspicious" if code else "clean",
        "reasonCodes": [code] if code else [],
        "updatedAt": skill.updated_at,
        "summary": reason or None,
    }


async def moderation(_request: Request, skill: PublishedSkill) -> Response:
    verdict = _moderation(skill, await skill_names.current_blocklist(require_env()))
    return json_response({"moderation": {**verdict, "evidence": []}})


async def versions(request: Request, skill: PublishedSkill) -> Response:
    asked = query_of(request, VersionsQuery)
    live = [ref for ref in reversed(skill.versions) if ref.status is VersionStatus.LIVE]
    begin = int(asked.cursor or 0)
    shown = live[begin : begin + asked.limit]
    more = str(begin + asked.limit) if begin + asked.limit < len(live) else None
    return json_response({"items": [_version(ref) for ref in shown], "nextCursor": more})


async def version(request: Request, skill: PublishedSkill) -> Response:
    ref = await skill_names.find_installable(services_of(request), skill, request.path_params["version"])
    record = await skill_names.read_version(skill, ref)
    files = [{"path": one.path, "size": one.size, "sha256": one.sha256} for one in record.manifest]
    shown = {**_version(ref), "files": files}
    flat = (await flat_slugs(request, [skill]))[skill.canonical]
    return json_response({"version": shown, "skill": {"slug": flat, "displayName": skill.name or skill.slug}})


async def file(request: Request, skill: PublishedSkill) -> Response:
    asked = query_of(request, ClawHubFileQuery)
    ref = await skill_names.find_installable(
        services_of(request), skill, _number(skill, asked.version, asked.tag)
    )
    found = await skill_names.read_file(skill, ref, asked.path)
    name = found.path.rpartition("/")[2]
    return foreign_file(request, found.data, f'"{ref.digest[:24]}"', BYTES_TYPE, name)


def _number(skill: PublishedSkill, number: str, tag: str) -> str | None:
    if tag and tag != "latest":
        raise NotFound(f"{skill.canonical} has no tag {tag[:80]!r}.", tag=tag[:80])
    return number or None


# Installing.


async def install(request: Request, skill: PublishedSkill) -> Response:
    """Where to get the current version, or why there is none; the client shows the message."""
    slug = request.path_params["slug"]
    try:
        ref = await skill_names.find_installable(services_of(request), skill, None)
    except (Blocked, Withdrawn, NotFound) as error:
        refusal = {"ok": False, "slug": slug, "reason": "archive_version_missing", "message": error.message}
        return json_response({**refusal, "status": error.status}, error.status)
    flat = skill.canonical.replace("/", JOIN)
    url = f"{public_address(request)}{API}/download?slug={flat}&version={ref.number}"
    archive = {"version": ref.number, "downloadUrl": url}
    return json_response({"ok": True, "slug": slug, "installKind": "archive", "archive": archive})


async def resolve(request: Request, skill: PublishedSkill) -> Response:
    """Which version a folder on the client's disk is, by the fingerprint that the client makes of it."""
    asked = query_of(request, ResolveQuery)
    latest, blocklist = skill.current_version, await skill_names.current_blocklist(services_of(request))
    match = None
    for number, record in (await skill_names.read_versions(skill)).items():
        if asked.hash in fingerprints(record):
            ref = skill_names.require_version(skill, number)
            is_recalled = ref.status is VersionStatus.TAKEN_DOWN or blocklist.hits_version(skill, ref)
            match = RECALLED if is_recalled else number
    return json_response(
        {
            "match": {"version": match} if match else None,
            "latestVersion": {"version": latest} if latest else None,
        }
    )


async def download(request: Request, skill: PublishedSkill) -> Response:
    asked = query_of(request, DownloadQuery)
    ref = await skill_names.find_installable(
        services_of(request), skill, _number(skill, asked.version, asked.tag)
    )
    body = await made_of(await skill_names.read_files(ref.digest), zip_archive)
    await count_install(request, skill)
    return attachment(
        with_tag(request, body, f'"{ref.digest[:24]}-zip"', ZIP_TYPE), f"{skill.slug}-{ref.number}.zip"
    )


async def whoami(request: Request) -> Response:
    mine = await WHO_AM_I(services_of(request), principal_of(request), NoParameters())
    user = {"handle": mine.account, "displayName": mine.account, "role": _ROLES.get(mine.role, "user")}
    return json_response({"user": user})


async def telemetry(_request: Request) -> Response:
    """What a client tells after an install. Downloads are counted already, and nothing more is wanted."""
    return json_response({"ok": True})


def _read(path: str, view: View, **declared: Any) -> Endpoint:
    return get(path, view, documented=False, **declared)


def _read_skill(
    path: str, view: SkillView, query: type[ClawHubOwnerQuery] = SkillQuery, **declared: Any
) -> Endpoint:
    """An address about one skill. Where its slug means several, they are the answer instead of the view's."""

    async def answer(request: Request) -> Response:
        slug = {**request.query_params, **request.path_params}["slug"]
        found = await asked_skill(request, slug, query_of(request, query).owner_handle)
        return found if isinstance(found, Response) else await view(request, found)

    return _read(path, answer, query=query, **declared)


ENDPOINTS = (
    _read("/.well-known/clawhub.json", discovery),
    _read("/.well-known/clawdhub.json", discovery),
    _read(f"{API}/search", search, query=SearchQuery),
    _read(f"{API}/skills", list_all, query=ListQuery),
    _read_skill(SKILL, detail),
    _read_skill(f"{SKILL}/moderation", moderation),
    _read_skill(f"{SKILL}/versions", versions, VersionsQuery),
    _read_skill(f"{SKILL}/versions/{{version}}", version),
    _read_skill(f"{SKILL}/file", file, ClawHubFileQuery, media="*/*"),
    _read_skill(f"{SKILL}/install", install),
    _read_skill(f"{API}/resolve", resolve, ResolveQuery),
    _read_skill(f"{API}/download", download, DownloadQuery, media="*/*", challenges=True),
    _read(f"{API}/whoami", whoami, action=WHO_AM_I),
    post(
        "/clawhub/api/cli/telemetry/install",
        telemetry,
        no_scope="writes nothing",
        reads_only=True,
        documented=False,
    ),
)
