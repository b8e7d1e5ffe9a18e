"""The repositories that marketplaces name: each skill as a plugin, to be cloned with git over HTTP.

A repository holds one commit: the current version's verified bytes below `skills/`, and the plugin's manifests. What is
blocked or withdrawn answers 403 or 410, with the reason as text.
"""

import asyncio

import msgspec
from starlette.requests import Request

from vskill_core.content import SkillFile
from vskill_core.errors import NotFound
from vskill_platform.actions.skills.skill_contents import read_files
from vskill_platform.actions.skills.skill_names import find_installable, find_skill, name_skill
from vskill_platform.domain.skills.skill import PublishedSkill, listed_version
from vskill_platform.web.api.files import made_of
from vskill_platform.web.clients.artifacts import count_install
from vskill_platform.web.clients.git_objects import Repository, pack_of, repository_of
from vskill_platform.web.clients.git_protocol import ServedRepository, git_endpoints
from vskill_platform.web.exchange import principal_of, services_of

PLACE = "/marketplace/{owner}/{repo}/{name}"
#: By which clients know a plugin, and Gemini CLI an extension; they read the same fields.
MANIFESTS = (".claude-plugin/plugin.json", "gemini-extension.json")


async def read_plugin(request: Request, _wanted: frozenset[str]) -> ServedRepository:
    given = request.path_params
    slug = given["name"].removesuffix(".git")
    if slug == given["name"]:
        raise NotFound("A plugin's repository ends in .git.", name=slug[:200])
    reader = principal_of(request)
    skill = await find_skill(reader, f"{given['owner']}/{given['repo']}/{slug}")
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
    """The skill's folder, unchanged, in a plugin of that name. Its number is the one of the lists: Claude Code and
    Codex believe the plugin and not the list."""
    manifest = {"name": name, "version": listed_version(skill), "description": skill.description}
    moved = [SkillFile(f"skills/{name}/{file.path}", file.mode, file.data) for file in files]
    encoded = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
    return (*(SkillFile(path, "100644", encoded) for path in MANIFESTS), *moved)


ENDPOINTS = git_endpoints(PLACE, read_plugin, "reads, and counts the clone as an anonymous one")
