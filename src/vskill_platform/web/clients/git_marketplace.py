"""Marketplaces as git repositories (of everything, of what accounts may read, of an owner, and of a collection), and
the repositories that they name: each skill as a plugin.

A repository holds one commit without history. A marketplace's is made of the list that `actions.skills.git_lists`
gives, and packed once for each address that a process is reached by. A plugin's holds the current version's verified
bytes below `skills/`, those of a whole plugin at its root; what is blocked or withdrawn answers 403 or 410, with the
reason as text.
"""

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_core.content import SkillFile
from vskill_core.errors import BlobUnavailable, NotFound, NotPermitted, NotVerifiedYet
from vskill_core.kind import Kind
from vskill_platform.actions.skills import git_lists
from vskill_platform.actions.skills.skill_names import find_installable, find_skill, name_skill, read_files
from vskill_platform.domain.skills.git_list import BASE, MANIFEST, ServedList
from vskill_platform.domain.skills.plugin_form import generated_files, whole_plugin
from vskill_platform.domain.skills.skill import PublishedSkill, listed_version
from vskill_platform.web.api.skills import made_of
from vskill_platform.web.clients.artifacts import count_install
from vskill_platform.web.clients.git_objects import Repository, pack_of, repository_of
from vskill_platform.web.clients.git_protocol import ServedRepository, git_endpoints
from vskill_platform.web.exchange import answer_with_tag, principal_of, public_address, services_of
from vskill_platform.web.kept import PackedList, kept_of
from vskill_platform.web.routing import get

PLUGIN = "/marketplace/{owner}/{repo}/{name}"


async def read_plugin(request: Request, _wanted: frozenset[str]) -> ServedRepository:
    given = request.path_params
    slug = given["name"].removesuffix(".git")
    if slug == given["name"]:
        raise NotFound("A plugin's repository ends in .git.", name=slug[:200])
    reader = principal_of(request)
    try:
        skill = await find_skill(reader, f"{given['owner']}/{given['repo']}/{slug}")
    except NotVerifiedYet as error:
        if reader.account is None:
            raise
        # Clients show the text of a 403. They take a 404 for a mistyped address.
        raise NotPermitted(error.message) from None
    ref = await find_installable(services_of(request), skill, None)
    name = await name_skill(reader, skill, in_repo=True)

    def make(files: tuple[SkillFile, ...]) -> Repository:
        message = f"{skill.canonical} {ref.number}"
        return repository_of(plugin_files(name, skill, files), message=message, at_ms=ref.published_at)

    repository = await made_of(await read_files(ref.digest), make)

    async def pack() -> bytes:
        packed = await asyncio.to_thread(pack_of, repository)
        await count_install(request, skill)
        return packed

    return ServedRepository(repository.commit, pack)


def plugin_files(name: str, skill: PublishedSkill, files: tuple[SkillFile, ...]) -> tuple[SkillFile, ...]:
    """A plugin whole; a skill's folder, unchanged, in a plugin of that name. The number is the one of the lists:
    clients believe the plugin and not the list."""
    if skill.kind is Kind.PLUGIN:
        return whole_plugin(name, listed_version(skill), skill.description, files)
    moved = (SkillFile(f"skills/{name}/{file.path}", file.mode, file.data) for file in files)
    return (*generated_files(name, listed_version(skill), skill.description), *moved)


NO_SCOPE = "reads only, as its address without a token does"
INTERNAL = "/internal/marketplace.git"


async def read_list(request: Request, wanted: frozenset[str]) -> ServedRepository:
    packed, before = await _read_packed(request)
    if wanted and wanted != {packed.commit} and before is not None:
        # The list has changed between the two requests of a client.
        packed = await _pack(request, before) or packed

    async def pack() -> bytes:
        return packed.pack

    return ServedRepository(packed.commit, pack)


async def _read_packed(request: Request) -> tuple[PackedList, ServedList | None]:
    """The list of now, and the one before it."""
    services, scope = services_of(request), await _scope(request)
    found = await git_lists.current_git_list(services, scope)
    packed = await _pack(request, found.served)
    if packed is None:
        found = await git_lists.current_git_list(services, scope, is_lost=True)
        packed = await _pack(request, found.served)
    if packed is None:
        raise BlobUnavailable("The list was made and could not be read again.")
    return packed, found.before


async def read_document(request: Request) -> Response:
    """The list of an upstream as the document in its repository."""
    given = request.path_params["upstream"]
    if not given.endswith(".json"):
        raise NotFound("The list of an upstream ends in .json, or in .git for a clone.", name=given[:200])
    scope = await git_lists.upstream_scope(principal_of(request), given.removesuffix(".json"))
    found = await git_lists.current_git_list(services_of(request), scope)
    files = await git_lists.read_git_list(found.served)
    if files is None:
        found = await git_lists.current_git_list(services_of(request), scope, is_lost=True)
        files = await git_lists.read_git_list(found.served)
    if files is None:
        raise BlobUnavailable("The list was made and could not be read again.")
    text = next(one.data for one in files if one.path == MANIFEST)
    return answer_with_tag(request, text.replace(BASE, msgspec.json.encode(public_address(request))[1:-1]))


async def _scope(request: Request) -> git_lists.ListScope:
    services, reader, given = services_of(request), principal_of(request), request.path_params
    if "collection" in given:
        return await git_lists.collection_scope(services, reader, _without_ending(given["collection"]))
    if "upstream" in given:
        return await git_lists.upstream_scope(reader, _without_ending(given["upstream"]))
    if "owner" in given:
        return await git_lists.owner_scope(services, reader, _without_ending(given["owner"]))
    is_internal = request.scope["endpoint"].path.startswith(INTERNAL)
    return await (git_lists.internal_scope if is_internal else git_lists.public_scope)(services, reader)


def _without_ending(name: str) -> str:
    if not name.endswith(".git"):
        raise NotFound("The address of a marketplace for git ends in .git.", name=name[:200])
    return name.removesuffix(".git")


async def _pack(request: Request, served: ServedList) -> PackedList | None:
    """The commit and its objects for the address that the client came to; None where the files are lost."""
    base, kept = public_address(request), kept_of(request).packed_lists
    key = (served, base)
    known = kept.get(key)
    if known is None:
        files = await git_lists.read_git_list(served)
        if files is None:
            return None
        known = await made_of(files, lambda files: _pack_files(files, served, base))
        kept.put(key, known, len(known.pack))
    return known


def _pack_files(files: tuple[SkillFile, ...], served: ServedList, base: str) -> PackedList:
    address = msgspec.json.encode(base)[1:-1]
    rendered = (
        SkillFile(one.path, one.mode, one.data.replace(BASE, address)) if one.path == MANIFEST else one
        for one in files
    )
    repository = repository_of(rendered, message=served.message, at_ms=served.changed_at)
    return PackedList(repository.commit, pack_of(repository))


ENDPOINTS = (
    *git_endpoints(PLUGIN, read_plugin, "reads, and counts the clone as an anonymous one"),
    *git_endpoints("/marketplace.git", read_list, NO_SCOPE),
    *git_endpoints(INTERNAL, read_list, NO_SCOPE),
    *git_endpoints("/{owner}", read_list, NO_SCOPE),
    *git_endpoints("/upstreams/{upstream}", read_list, NO_SCOPE),
    get("/upstreams/{upstream}", read_document, documented=False),
    *git_endpoints("/collections/{collection}", read_list, NO_SCOPE),
)
