"""Agent Skills discovery: `/.well-known/agent-skills/index.json`, which `npx skills add` reads, and the older
`/.well-known/skills/` and Claude Code's `marketplace.json` beside it.

Every prefix of a canonical name is a scope of its own: `/acme/.well-known/…` lists an owner, `/acme/tools/…` a
repository, `/acme/tools/lint/…` one skill. What is blocked or withdrawn is in no index, and its files answer 403 or
410. So is a collection. An index is complete; the client downloads everything that an index names before it asks which
skill is wanted, so only downloads from the scope of one skill count as installs.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Asked
from vskill_core.content import skill_file_of
from vskill_core.errors import NotFound
from vskill_platform.actions.principal import Principal, common_reader, document_reader, namespace_reader
from vskill_platform.actions.skills import scopes, skill_names
from vskill_platform.actions.skills.catalogue import search_catalogue
from vskill_platform.actions.skills.collections import read_collection
from vskill_platform.domain.downloads import ZIP_TYPE, Artifact, zip_archive
from vskill_platform.domain.recall.block_index import Blocklist
from vskill_platform.domain.skills.skill import PublishedSkill, PublishedSkillSummary, listed_version
from vskill_platform.web import exchange
from vskill_platform.web.api.names import asked_skill
from vskill_platform.web.api.skills import BYTES_TYPE, made_of
from vskill_platform.web.clients.artifacts import count_install
from vskill_platform.web.clients.commands import marketplace_name
from vskill_platform.web.kept import MakeDocument, answer_document
from vskill_platform.web.routing import Endpoint, get, query_of

SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
CURRENT = "/.well-known/agent-skills"
OLDER = "/.well-known/skills"
ONE = "/{owner}/{repo}/{slug}"
SCOPES = ("", "/{owner}", "/{owner}/{repo}", ONE, "/collections/{collection}")
MARKDOWN_TYPE = "text/markdown; charset=utf-8"
#: Hits of a search.
MOST_FOUND = 1000


# The skills of a scope.


def prefix_of(request: Request) -> str:
    """The scope as the beginning of canonical names; empty is everything."""
    given = request.path_params
    parts = [given[name] for name in ("owner", "repo", "slug") if name in given]
    return "".join(f"{part}/" for part in parts)


async def answer_scope(request: Request, make: MakeDocument) -> Response:
    """A document of a scope. That of one skill is made anew, which takes no longer than a look whether it changed, and
    so is that of a collection, which changes by itself."""
    reader = await scope_reader(request)
    if "slug" not in request.path_params and "collection" not in request.path_params:
        return await answer_document(request, exchange.JSON_TYPE, make, reader)
    blocklist = await skill_names.current_blocklist(exchange.services_of(request))
    return exchange.answer_with_tag(request, await make(exchange.public_address(request), reader, blocklist))


async def scope_reader(request: Request) -> Principal:
    """The reader as the documents of the scope know it."""
    reader, given = exchange.principal_of(request), request.path_params
    if "collection" in given:
        found = await read_collection(exchange.services_of(request), reader, given["collection"])
        return await common_reader(reader, found.audience)
    owner = given.get("owner")
    return await (document_reader(reader) if owner is None else namespace_reader(reader, owner))


async def listed_skills(
    request: Request, reader: Principal, blocklist: Blocklist
) -> AsyncIterator[dict[str, scopes.ListedSkill]]:
    """What can be installed from the scope, some at a time, by the names that they have in it."""
    services, collection = exchange.services_of(request), request.path_params.get("collection")
    if collection is None:
        async for named in scopes.iterate_scope(reader, prefix_of(request), blocklist):
            yield named
        return
    # The reader may read the collection; what is in it is shown as to all of its readers.
    found = await read_collection(services, exchange.principal_of(request), collection)
    skills = await scopes.read_installable(reader, found.skills, blocklist)
    yield dict(await skill_names.name_skills(reader, skills))


# The index of today.


#: Makes the entries of some skills, by name, with the registry's public address.
MakeEntries = Callable[[str, Mapping[str, scopes.ListedSkill]], Awaitable[Mapping[str, object]]]


async def answer_entries(
    request: Request, entries_of: MakeEntries, finish: Callable[[list[msgspec.Raw]], object]
) -> Response:
    """A document that lists what can be installed from the scope. `finish` makes it of all entries."""

    async def make(base: str, reader: Principal, blocklist: Blocklist) -> bytes:
        # Kept as bytes: of a large registry, the objects would take many times as much memory.
        entries: dict[str, msgspec.Raw] = {}
        async for named in listed_skills(request, reader, blocklist):
            made = await entries_of(base, named)
            entries |= {name: msgspec.Raw(msgspec.json.encode(entry)) for name, entry in made.items()}
        return msgspec.json.encode(finish(list(entries.values())))

    return await answer_scope(request, make)


async def index(request: Request) -> Response:
    is_one = prefix_of(request).count("/") == 3

    async def entries(_base: str, named: Mapping[str, scopes.ListedSkill]) -> Mapping[str, object]:
        return {
            name: _entry(name, skill, artifact, is_one=is_one)
            for name, skill in named.items()
            if (artifact := skill.current_artifact) is not None
        }

    # The client takes an empty index of schema 0.2.0 for none, and asks the whole registry instead: then it offers
    # skills that have nothing to do with the one that was blocked. One of the older form it understands.
    return await answer_entries(
        request, entries, lambda found: {"$schema": SCHEMA, "skills": found} if found else {"skills": []}
    )


def _entry(name: str, skill: scopes.ListedSkill, artifact: Artifact, *, is_one: bool) -> dict[str, str]:
    scope = "/".join(quote(part, safe="") for part in skill.canonical.split("/"))
    place = f"/{scope}{CURRENT}" if is_one else f"{CURRENT}/skills/{scope}"
    file = quote(f"{skill.current_version}.{'md' if artifact.is_plain else 'zip'}", safe="")
    return {
        "name": name,
        "description": scopes.describe_skill(skill),
        "type": "skill-md" if artifact.is_plain else "archive",
        "url": f"{place}/{file}",
        "digest": f"sha256:{artifact.sha256}",
    }


async def artifact(request: Request) -> Response:
    """A version in one piece, as an index names it. Who fetches it from the scope of one skill, installs it."""
    given = request.path_params
    number, _, kind = given["file"].rpartition(".")
    if kind not in ("md", "zip"):
        raise NotFound("Ask for VERSION.md or VERSION.zip.", file=given["file"][:100])
    skill = await asked_skill(request)
    ref = await skill_names.find_installable(exchange.services_of(request), skill, number)
    files = await skill_names.read_files(ref.digest)
    tag, name = f'"{ref.digest[:24]}-{kind}"', f"{skill.slug}-{number}.{kind}"
    if kind == "md":
        response = exchange.foreign_file(request, skill_file_of(files).data, tag, MARKDOWN_TYPE, name)
    else:
        response = exchange.attachment(
            exchange.with_tag(request, await made_of(files, zip_archive), tag, ZIP_TYPE), name
        )
    if request.scope["endpoint"].path.startswith(ONE):
        await count_install(request, skill)
    return response


# What `skills find` asks, where SKILLS_API_URL names this registry.


class FindQuery(Asked, frozen=True):
    """Words to look for, perhaps among one owner's."""

    q: Annotated[str, msgspec.Meta(max_length=400)] = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_FOUND)] = 10
    owner: Annotated[str, msgspec.Meta(max_length=200)] = ""


async def find(request: Request) -> Response:
    """The source is the scope of one skill, which `skills add` takes."""
    asked = query_of(request, FindQuery)
    base, blocklist = (
        exchange.public_address(request),
        await skill_names.current_blocklist(exchange.services_of(request)),
    )
    # An owner's skills are chosen among all hits, not among the first.
    most = MOST_FOUND if asked.owner else asked.limit
    found = await search_catalogue(exchange.principal_of(request), asked.q, limit=most)
    offered = [
        one
        for one in found.items
        if one.listing is not None
        and not blocklist.hits_skill(one)
        and (not asked.owner or one.canonical.startswith(f"{asked.owner.lower()}/"))
    ][: asked.limit]
    shown = [
        {
            "id": one.canonical,
            "name": name,
            "source": f"{base}/{one.canonical}",
            "installs": one.listing.installs if one.listing is not None else 0,
        }
        for name, one in (await skill_names.name_skills(exchange.principal_of(request), offered)).items()
    ]
    return exchange.json_response({"skills": shown})


# The older form, which names files instead of one download.


async def older_index(request: Request) -> Response:
    async def entries(_base: str, named: Mapping[str, scopes.ListedSkill]) -> Mapping[str, object]:
        records = await skill_names.read_current_versions(
            {skill.canonical: skill.current_version or "" for skill in named.values()}
        )
        return {
            name: {
                "name": name,
                "description": scopes.describe_skill(skill),
                "files": [file.path for file in record.manifest],
            }
            for name, skill in named.items()
            if (record := records.get(skill.canonical)) is not None
        }

    return await answer_entries(request, entries, lambda found: {"skills": found})


async def older_file(request: Request) -> Response:
    """One file of the current version of the skill that has this name in this scope."""
    given = request.path_params
    skill = await _named_skill(request, given["name"])
    ref = await skill_names.find_installable(exchange.services_of(request), skill, None)
    record = await skill_names.read_version(skill, ref)
    entry = next((one for one in record.manifest if one.path == given["path"]), None)
    if entry is None:
        raise NotFound(f"{skill.canonical} has no file {given['path'][:200]!r}.", path=given["path"][:200])
    file = next(one for one in await skill_names.read_files(ref.digest) if one.path == entry.path)
    name = entry.path.rpartition("/")[2]
    return exchange.foreign_file(request, file.data, f'"{entry.sha256[:24]}"', BYTES_TYPE, name)


async def _named_skill(request: Request, name: str) -> PublishedSkill:
    services, reader = exchange.services_of(request), await scope_reader(request)
    if "collection" not in request.path_params:
        return await scopes.find_in_scope(services, reader, prefix_of(request), name)
    async for named in listed_skills(request, reader, await skill_names.current_blocklist(services)):
        if name in named:
            return await skill_names.find_skill(reader, named[name].canonical)
    raise NotFound(f"There is no skill {name[:100]!r} here.", skill=name[:100])


def _scope_endpoints(scope: str) -> tuple[Endpoint, ...]:
    return (
        get(f"{scope}{CURRENT}/index.json", index, documented=False),
        get(f"{scope}{OLDER}/index.json", older_index, documented=False),
        get(f"{scope}{OLDER}/{{name}}/{{path:path}}", older_file, media="*/*", documented=False),
    )


_FILE = {"media": "*/*", "documented": False, "challenges": True}


# Documents for Claude Code's `/plugin marketplace add`. Each skill is a plugin whose source is a repository that we
# make of the verified bytes (`git_marketplace`): a document at an address of its own can name no files beside it.
# Claude Code asks for an update when a plugin's version changes. What is blocked or withdrawn is in no document.


async def document(request: Request) -> Response:
    """Of a collection, of an owner or one skill, or of everything."""
    services, prefix = exchange.services_of(request), prefix_of(request)
    registry = services.settings.registry_name
    name, owner, about = marketplace_name(registry), registry, f"Every skill that {registry} has verified."
    if "collection" in request.path_params:
        found = await read_collection(
            services, exchange.principal_of(request), request.path_params["collection"]
        )
        name, about = found.name, found.description or found.title or f"The collection {found.name}."
    elif prefix:
        name, owner = marketplace_name(prefix), prefix.partition("/")[0]
        about = f"What {registry} has verified of {prefix.strip('/')}."
    head = {"name": name, "owner": {"name": owner}, "metadata": {"description": about}}

    async def plugins(base: str, named: Mapping[str, scopes.ListedSkill]) -> Mapping[str, object]:
        return {name: _plugin(base, name, skill) for name, skill in named.items()}

    return await answer_entries(request, plugins, lambda found: {**head, "plugins": found})


def _plugin(base: str, name: str, skill: scopes.ListedSkill) -> dict[str, Any]:
    place = "/".join(quote(part, safe="") for part in skill.canonical.split("/"))
    plugin: dict[str, Any] = {
        "name": name,
        "source": {"source": "url", "url": f"{base}/marketplace/{place}.git"},
        "description": scopes.describe_skill(skill),
        "version": skill.listed_version
        if isinstance(skill, PublishedSkillSummary)
        else listed_version(skill),
        "author": {"name": skill.identity.owner if skill.identity is not None else place.partition("/")[0]},
        "homepage": f"{base}/skills/{place}",
        "category": skill.about.category,
    }
    if skill.about.licence not in ("none", "other"):
        plugin["license"] = skill.about.licence
    return plugin


ENDPOINTS = (
    *(endpoint for scope in SCOPES for endpoint in _scope_endpoints(scope)),
    get("/api/search", find, query=FindQuery, documented=False),
    get(f"{CURRENT}/skills{ONE}/{{file}}", artifact, **_FILE),
    get(f"{ONE}{CURRENT}/{{file}}", artifact, **_FILE),
    *(
        get(f"{scope}/marketplace.json", document, documented=False)
        for scope in SCOPES
        if scope != "/{owner}/{repo}"
    ),
)
