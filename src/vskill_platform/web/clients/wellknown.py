"""Agent Skills discovery: `/.well-known/agent-skills/index.json`, which `npx skills add` reads, and the older
`/.well-known/skills/` beside it.

Every prefix of a canonical name is a scope of its own: `/acme/.well-known/…` lists an owner, `/acme/tools/…` a
repository, `/acme/tools/lint/…` one skill. What is blocked or withdrawn is in no index, and its files answer 403 or
410. An index names at most `MOST_LISTED` skills and says `truncated` beyond that: the client downloads everything
that an index names before it asks which skill is wanted. For the same reason only downloads from the scope of one
skill count as installs.
"""

from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.blocked_skills import current_blocklist
from vskill_platform.actions.catalogue import search_catalogue
from vskill_platform.actions.flat_names import name_skills
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.scopes import list_scope
from vskill_platform.actions.skill_contents import read_files, read_version, read_versions
from vskill_platform.actions.skill_names import find_installable
from vskill_platform.actions.visibility import document_reader, namespace_reader
from vskill_platform.actions.wire import Asked, encode
from vskill_platform.archives import ZIP_TYPE
from vskill_platform.domain.content import skill_file_of
from vskill_platform.domain.errors import BlobUnavailable, NotFound
from vskill_platform.domain.skill import PublishedSkill, PublishedSkillSummary
from vskill_platform.gate import some_at_a_time
from vskill_platform.web.addresses import public_address
from vskill_platform.web.api.files import BYTES_TYPE
from vskill_platform.web.api.names import asked_skill
from vskill_platform.web.clients.artifacts import artifact_of, count_install, zip_files
from vskill_platform.web.kept import answer_until_change
from vskill_platform.web.principal import principal_of, services_of
from vskill_platform.web.responses import attachment, foreign_file, json_response, with_tag
from vskill_platform.web.routing import Endpoint, get, query_of
from vskill_platform.worker_context import require_env

SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
CURRENT = "/.well-known/agent-skills"
OLDER = "/.well-known/skills"
SCOPES = ("", "/{owner}", "/{owner}/{repo}", "/{owner}/{repo}/{slug}")
ONE = SCOPES[3]
MARKDOWN_TYPE = "text/markdown; charset=utf-8"
#: Hits of a search.
MOST_FOUND = 100
MOST_DESCRIPTION = 1024
#: Contents read at the same time.
_AT_ONCE = 8


class IndexEntry(msgspec.Struct, frozen=True):
    """One skill of an index."""

    name: str
    description: str
    #: `skill-md` or `archive`
    type: str
    url: str
    digest: str


class Index(msgspec.Struct, frozen=True, omit_defaults=True):
    """The document of schema 0.2.0."""

    schema: str = msgspec.field(name="$schema")
    skills: tuple[IndexEntry, ...]
    #: there are more: a narrower scope lists them
    truncated: bool = False


class OlderEntry(msgspec.Struct, frozen=True):
    """One skill of the older form, which names files instead of one download."""

    name: str
    description: str
    files: tuple[str, ...]


class OlderIndex(msgspec.Struct, frozen=True, omit_defaults=True):
    """The older document; it has no schema."""

    skills: tuple[OlderEntry, ...]
    truncated: bool = False


# The skills of a scope.


def prefix_of(request: Request) -> str:
    """The scope as the beginning of canonical names; empty is everything."""
    given = request.path_params
    parts = [given[name] for name in ("owner", "repo", "slug") if name in given]
    return "".join(f"{part}/" for part in parts)


async def scope_reader(request: Request) -> Principal:
    """The reader as the documents of the scope know it."""
    reader, owner = principal_of(request), request.path_params.get("owner")
    return await (document_reader(reader) if owner is None else namespace_reader(reader, owner))


# The index of today.


async def index(request: Request) -> Response:
    prefix, reader = prefix_of(request), await scope_reader(request)

    async def make() -> bytes:
        listed = await list_scope(services_of(request), reader, prefix)
        is_one = prefix.count("/") == 3
        made = await some_at_a_time(
            lambda item: _entry(request, *item, is_one=is_one), listed.skills.items(), _AT_ONCE
        )
        return encode(Index(SCHEMA, tuple(one for one in made if one is not None), listed.truncated))

    return await answer_until_change(request, make, reader)


async def _entry(request: Request, name: str, skill: PublishedSkill, *, is_one: bool) -> IndexEntry | None:
    """None where the content cannot be read now: one skill must not hide the others."""
    try:
        artifact = await artifact_of(request, skill.current_digest or "")
    except BlobUnavailable as error:
        services_of(request).log.warning("left out of an index", skill=skill.canonical, error=error.message)
        return None
    scope = "/".join(quote(part, safe="") for part in skill.canonical.split("/"))
    place = f"/{scope}{CURRENT}" if is_one else f"{CURRENT}/skills/{scope}"
    file = quote(f"{skill.current_version}.{'md' if artifact.is_plain else 'zip'}", safe="")
    kind = "skill-md" if artifact.is_plain else "archive"
    return IndexEntry(name, describe_skill(skill), kind, f"{place}/{file}", f"sha256:{artifact.sha256}")


def describe_skill(skill: PublishedSkill | PublishedSkillSummary) -> str:
    """Never empty, never longer than the schema allows."""
    return (skill.description.strip() or skill.name or skill.slug)[:MOST_DESCRIPTION]


async def artifact(request: Request) -> Response:
    """A version in one piece, as an index names it."""
    given = request.path_params
    number, _, kind = given["file"].rpartition(".")
    if kind not in ("md", "zip"):
        raise NotFound("Ask for VERSION.md or VERSION.zip.", file=given["file"][:100])
    skill = await asked_skill(request)
    ref = await find_installable(services_of(request), skill, number)
    files = await read_files(services_of(request), ref.digest)
    tag, name = f'"{ref.digest[:24]}-{kind}"', f"{skill.slug}-{number}.{kind}"
    if kind == "md":
        return foreign_file(request, skill_file_of(files).data, tag, MARKDOWN_TYPE, name)
    return attachment(with_tag(request, await zip_files(files), tag, ZIP_TYPE), name)


async def counted_artifact(request: Request) -> Response:
    """The same from the scope of one skill: who fetches it there, installs it."""
    response = await artifact(request)
    await count_install(request, await asked_skill(request))
    return response


# What `skills find` asks, where SKILLS_API_URL names this registry.


class FindQuery(Asked, frozen=True):
    """Words to look for, perhaps among one owner's."""

    q: Annotated[str, msgspec.Meta(max_length=400)] = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10
    owner: Annotated[str, msgspec.Meta(max_length=200)] = ""


async def find(request: Request) -> Response:
    """The source is the scope of one skill, which `skills add` takes."""
    asked = query_of(request, FindQuery)
    base, blocklist = public_address(request), await current_blocklist(services_of(request))
    services = services_of(request)
    found = await search_catalogue(
        services, principal_of(request), asked.q, limit=min(asked.limit, MOST_FOUND)
    )
    offered = [
        one
        for one in found.items
        if one.listing is not None
        and not blocklist.hits_skill(one)
        and (not asked.owner or one.canonical.startswith(f"{asked.owner.lower()}/"))
    ]
    shown = [
        {
            "id": one.canonical,
            "name": name,
            "source": f"{base}/{one.canonical}",
            "installs": one.listing.installs if one.listing is not None else 0,
        }
        for name, one in (await name_skills(services, principal_of(request), offered)).items()
    ]
    return json_response({"skills": shown})


# The older form.


async def older_index(request: Request) -> Response:
    prefix, reader = prefix_of(request), await scope_reader(request)

    async def make() -> bytes:
        listed = await list_scope(services_of(request), reader, prefix)
        made = [await _older_entry(name, skill) for name, skill in listed.skills.items()]
        return encode(OlderIndex(tuple(one for one in made if one is not None), listed.truncated))

    return await answer_until_change(request, make, reader)


async def _older_entry(name: str, skill: PublishedSkill) -> OlderEntry | None:
    records = await read_versions(require_env(), msgspec.structs.replace(skill, versions=_current(skill)))
    record = records.get(skill.current_version or "")
    if record is None:
        return None
    return OlderEntry(name, describe_skill(skill), tuple(file.path for file in record.manifest))


def _current(skill: PublishedSkill) -> Any:
    return tuple(ref for ref in skill.versions if ref.number == skill.current_version)


async def older_file(request: Request) -> Response:
    """One file of the current version of the skill that has this name in this scope."""
    given = request.path_params
    services, reader = services_of(request), await scope_reader(request)
    skill = (await list_scope(services, reader, prefix_of(request))).skills.get(given["name"])
    if skill is None:
        raise NotFound(f"There is no skill {given['name'][:100]!r} here.", skill=given["name"][:100])
    ref = await find_installable(services_of(request), skill, None)
    record = await read_version(services_of(request), skill, ref)
    entry = next((one for one in record.manifest if one.path == given["path"]), None)
    if entry is None:
        raise NotFound(f"{skill.canonical} has no file {given['path'][:200]!r}.", path=given["path"][:200])
    file = next(one for one in await read_files(services_of(request), ref.digest) if one.path == entry.path)
    name = entry.path.rpartition("/")[2]
    return foreign_file(request, file.data, f'"{entry.sha256[:24]}"', BYTES_TYPE, name)


def _endpoints() -> tuple[Endpoint, ...]:
    made: list[Endpoint] = []
    for scope in SCOPES:
        made += [
            get(f"{scope}{CURRENT}/index.json", index, documented=False),
            get(f"{scope}{OLDER}/index.json", older_index, documented=False),
            get(f"{scope}{OLDER}/{{name}}/{{path:path}}", older_file, media="*/*", documented=False),
        ]
    whole = f"{CURRENT}/skills{ONE}/{{file}}"
    return (
        *made,
        get("/api/search", find, query=FindQuery, documented=False),
        get(whole, artifact, media="*/*", documented=False, challenges=True),
        get(f"{ONE}{CURRENT}/{{file}}", counted_artifact, media="*/*", documented=False, challenges=True),
    )


ENDPOINTS = _endpoints()
