"""Documents for Claude Code's `/plugin marketplace add`: of everything, an owner, one skill, and a collection.

Each skill is a plugin whose source is a repository that we make of the verified bytes (`plugin_git`): a document at
an address of its own can name no files beside it. Claude Code asks for an update when a plugin's version changes.
What is blocked or withdrawn is in no document.
"""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.action import Services
from vskill_platform.actions.catalogue import iterate_catalogue
from vskill_platform.actions.collections import read_collection
from vskill_platform.actions.flat_names import name_skills
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.scopes import list_scope, read_installable
from vskill_platform.actions.visibility import common_reader, namespace_reader
from vskill_platform.domain.block_index import Blocklist
from vskill_platform.domain.skill import PublishedSkill, PublishedSkillSummary
from vskill_platform.web.addresses import public_address
from vskill_platform.web.clients.commands import marketplace_name
from vskill_platform.web.clients.wellknown import describe_skill, prefix_of
from vskill_platform.web.kept import answer_document
from vskill_platform.web.principal import principal_of, services_of
from vskill_platform.web.responses import JSON_TYPE, tagged_json
from vskill_platform.web.routing import get

FILE = "marketplace.json"
#: Skills of the whole registry that are named together.
AT_ONCE = 500


class Offer(msgspec.Struct, frozen=True):
    """What one document is about."""

    name: str
    owner: str
    description: str
    skills: tuple[PublishedSkill, ...]
    truncated: bool = False


async def everything(request: Request) -> Response:
    """Every skill, in the order of their names."""

    async def make(base: str, reader: Principal, blocklist: Blocklist) -> bytes:
        return await _make_everything(services_of(request), reader, base, blocklist)

    return await answer_document(request, JSON_TYPE, make)


async def _make_everything(services: Services, reader: Principal, base: str, blocklist: Blocklist) -> bytes:
    plugins: dict[str, bytes] = {}
    async for skills in _some_at_once(iterate_catalogue(services, reader)):
        offered = [
            one for one in skills if one.current_version is not None and not blocklist.hits_summary(one)
        ]
        for name, skill in (await name_skills(services, reader, offered)).items():
            owner = skill.identity.owner if skill.identity is not None else skill.slug.partition("/")[0]
            if name not in plugins:
                # Kept as bytes: of a large registry, the objects would take many times as much memory.
                plugins[name] = msgspec.json.encode(_plugin(base, name, skill.slug, owner, skill))
    named = services.settings.registry_name
    document = _head(marketplace_name(named), named, f"Every skill that {named} has verified.")
    return msgspec.json.encode({**document, "plugins": [msgspec.Raw(plugin) for plugin in plugins.values()]})


async def _some_at_once(
    skills: AsyncIterator[PublishedSkillSummary],
) -> AsyncIterator[list[PublishedSkillSummary]]:
    batch: list[PublishedSkillSummary] = []
    async for skill in skills:
        batch.append(skill)
        if len(batch) == AT_ONCE:
            yield batch
            batch = []
    yield batch


async def of_scope(request: Request) -> Response:
    """An owner, or one skill."""
    prefix = prefix_of(request)
    reader = await namespace_reader(principal_of(request), request.path_params["owner"])
    listed = await list_scope(services_of(request), reader, prefix)
    skills = tuple(listed.skills.values())
    named = services_of(request).settings.registry_name
    about = f"What {named} has verified of {prefix.strip('/')}."
    offer = Offer(marketplace_name(prefix), skills[0].owner, about, skills, listed.truncated)
    return await _document(request, reader, offer)


async def of_collection(request: Request) -> Response:
    services = services_of(request)
    found = await read_collection(services, principal_of(request), request.path_params["name"])
    reader = await common_reader(principal_of(request), found.audience)
    skills = await read_installable(services, reader, found.skills)
    named = services.settings.registry_name
    about = found.description or found.title or f"The collection {found.name}."
    return await _document(request, reader, Offer(found.name, named, about, skills))


async def _document(request: Request, reader: Principal, offer: Offer) -> Response:
    base, services = public_address(request), services_of(request)
    named = await name_skills(services, reader, offer.skills, in_repo=len(offer.skills) == 1)
    plugins = [_plugin(base, name, skill.canonical, skill.owner, skill) for name, skill in named.items()]
    document = {**_head(offer.name, offer.owner, offer.description), "plugins": plugins}
    if offer.truncated:
        document["metadata"]["truncated"] = True
    return tagged_json(request, msgspec.json.encode(document))


def _head(name: str, owner: str, description: str) -> dict[str, Any]:
    return {"name": name, "owner": {"name": owner}, "metadata": {"description": description}}


def _plugin(
    base: str, name: str, canonical: str, owner: str, skill: PublishedSkill | PublishedSkillSummary
) -> dict[str, Any]:
    place = "/".join(quote(part, safe="") for part in canonical.split("/"))
    plugin: dict[str, Any] = {
        "name": name,
        "source": {"source": "url", "url": f"{base}/marketplace/{place}.git"},
        "description": describe_skill(skill),
        "version": skill.current_version,
        "author": {"name": owner},
        "homepage": f"{base}/skills/{place}",
        "category": skill.about.category,
    }
    if skill.about.licence not in ("none", "other"):
        plugin["license"] = skill.about.licence
    return plugin


ENDPOINTS = (
    get(f"/{FILE}", everything, documented=False),
    get(f"/{{owner}}/{FILE}", of_scope, documented=False),
    get(f"/{{owner}}/{{repo}}/{{slug}}/{FILE}", of_scope, documented=False),
    get(f"/collections/{{name}}/{FILE}", of_collection, documented=False),
)
