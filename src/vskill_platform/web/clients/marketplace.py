"""Documents for Claude Code's `/plugin marketplace add`: of everything, an owner, one skill, and a collection.

Each skill is a plugin whose source is a repository that we make of the verified bytes (`plugin_git`): a document at
an address of its own can name no files beside it. Claude Code asks for an update when a plugin's version changes.
What is blocked or withdrawn is in no document.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.skills.collections import read_collection
from vskill_platform.actions.skills.scopes import ListedSkill, describe_skill
from vskill_platform.domain.skills.skill import PublishedSkillSummary, listed_version
from vskill_platform.web.clients.commands import marketplace_name
from vskill_platform.web.clients.wellknown import answer_entries, prefix_of
from vskill_platform.web.principal import principal_of, services_of
from vskill_platform.web.routing import get

FILE = "marketplace.json"


async def everything(request: Request) -> Response:
    """Every skill, in the order of their names."""
    named = services_of(request).settings.registry_name
    head = _head(marketplace_name(named), named, f"Every skill that {named} has verified.")
    return await _answer(request, head)


async def of_scope(request: Request) -> Response:
    """An owner, or one skill."""
    prefix, named = prefix_of(request), services_of(request).settings.registry_name
    about = f"What {named} has verified of {prefix.strip('/')}."
    return await _answer(request, _head(marketplace_name(prefix), prefix.partition("/")[0], about))


async def of_collection(request: Request) -> Response:
    services, name = services_of(request), request.path_params["collection"]
    found = await read_collection(services, principal_of(request), name)
    about = found.description or found.title or f"The collection {found.name}."
    return await _answer(request, _head(found.name, services.settings.registry_name, about))


async def _answer(request: Request, head: dict[str, Any]) -> Response:
    async def plugins(base: str, named: Mapping[str, ListedSkill]) -> Mapping[str, object]:
        return {name: _plugin(base, name, skill) for name, skill in named.items()}

    return await answer_entries(request, plugins, lambda found: {**head, "plugins": found})


def _head(name: str, owner: str, description: str) -> dict[str, Any]:
    return {"name": name, "owner": {"name": owner}, "metadata": {"description": description}}


def _plugin(base: str, name: str, skill: ListedSkill) -> dict[str, Any]:
    place = "/".join(quote(part, safe="") for part in skill.canonical.split("/"))
    plugin: dict[str, Any] = {
        "name": name,
        "source": {"source": "url", "url": f"{base}/marketplace/{place}.git"},
        "description": describe_skill(skill),
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
    get(f"/{FILE}", everything, documented=False),
    get(f"/{{owner}}/{FILE}", of_scope, documented=False),
    get(f"/{{owner}}/{{repo}}/{{slug}}/{FILE}", of_scope, documented=False),
    get(f"/collections/{{collection}}/{FILE}", of_collection, documented=False),
)
