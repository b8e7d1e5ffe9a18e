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
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.web.routing import get

FILE = "marketplace.json"


async def document(request: Request) -> Response:
    """Of a collection, of an owner or one skill, or of everything."""
    services, prefix = services_of(request), prefix_of(request)
    registry = services.settings.registry_name
    name, owner, about = marketplace_name(registry), registry, f"Every skill that {registry} has verified."
    if "collection" in request.path_params:
        found = await read_collection(services, principal_of(request), request.path_params["collection"])
        name, about = found.name, found.description or found.title or f"The collection {found.name}."
    elif prefix:
        name, owner = marketplace_name(prefix), prefix.partition("/")[0]
        about = f"What {registry} has verified of {prefix.strip('/')}."
    head = {"name": name, "owner": {"name": owner}, "metadata": {"description": about}}

    async def plugins(base: str, named: Mapping[str, ListedSkill]) -> Mapping[str, object]:
        return {name: _plugin(base, name, skill) for name, skill in named.items()}

    return await answer_entries(request, plugins, lambda found: {**head, "plugins": found})


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


ENDPOINTS = tuple(
    get(f"{scope}/{FILE}", document, documented=False)
    for scope in ("", "/{owner}", "/{owner}/{repo}/{slug}", "/collections/{collection}")
)
