"""The first page: a search and how to install, what is popular and new, and what the registry's admins have collected.
Only a skill that a person vouches for is given as an example to install: anybody can be the newest or count installs.
One quiet line says whether the queue's promise holds; its figures are on the queue's own page."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_core.errors import PlatformError
from vskill_platform.actions.action import Services
from vskill_platform.actions.operation.queue import HealthAnswer
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.skills.catalogue import list_front_page
from vskill_platform.actions.skills.collections import (
    read_collected_skills,
    read_collection,
    read_collections,
)
from vskill_platform.actions.skills.skill_names import look_again
from vskill_platform.domain.skills.listing import OTHER
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.web.clients.commands import install_address
from vskill_platform.web.exchange import principal_of, public_address, services_of
from vskill_platform.web.kept import answer_recently
from vskill_platform.web.pages.skills.skills import recent_facets
from vskill_platform.web.pages.submissions.queue import recent_health
from vskill_platform.web.render import render
from vskill_platform.web.routing import page

#: Of each list, as many as fill two rows on a desk.
SHOWN = 6
#: How old the choice of skills may be.
FRONT_PAGE_AGE_S = 5.0
#: Fewer are no list.
LEAST_POPULAR = 3
#: Stands for a skill's name where there is none to recommend.
PLACEHOLDER = "OWNER/REPOSITORY/SKILL"


async def home(request: Request) -> Response:
    services, reader, base = services_of(request), principal_of(request), public_address(request)
    popular, newest, vouched_for = await _front_page(request)
    counts = await recent_facets(request)
    collections = [one for one in (await read_collections(services, reader)).items if one.skills]
    example = next(iter(vouched_for), None)
    installed = [one for one in popular if one.listing and one.listing.installs]
    return render(
        request,
        "home.html",
        base=base,
        popular=installed if len(installed) >= LEAST_POPULAR else [],
        newest=newest,
        example=example,
        install_one="npx skills add " + install_address(base, example.canonical if example else PLACEHOLDER),
        collections=collections[:SHOWN],
        facets=counts,
        categories=sorted(counts.category.items(), key=lambda pair: (pair[0] == OTHER, -pair[1], pair[0])),
        health=await _health(request),
    )


async def _front_page(request: Request) -> tuple[list[PublishedSkill], ...]:
    """Which skills are popular, new and vouched for may be a few seconds old; what is shown of them is not."""
    services, reader = services_of(request), principal_of(request)
    lists = await answer_recently(request, "front page", FRONT_PAGE_AGE_S, lambda: _choose(services, reader))
    now = await look_again(services, reader, [one for found in lists for one in found])
    return tuple([now[one.canonical] for one in found if one.canonical in now] for found in lists)


async def _choose(services: Services, reader: Principal) -> tuple[tuple[PublishedSkill, ...], ...]:
    """The popular, the newest, and what admins collected before what is certified."""
    popular, newest, certified = await list_front_page(services, reader, SHOWN)
    collections = (one for one in (await read_collections(services, reader)).items if one.skills)
    first = next(collections, None)
    curated = await read_collected_skills(services, reader, first) if first else ()
    return popular, newest, (*curated[:1], *certified)


async def collection(request: Request) -> Response:
    """One collection: its skills, and the address by which clients install it."""
    services, reader = services_of(request), principal_of(request)
    found = await read_collection(services, reader, request.path_params["collection"])
    return render(
        request,
        "collection.html",
        collection=found,
        skills=await read_collected_skills(services, reader, found),
        base=public_address(request),
    )


async def _health(request: Request) -> HealthAnswer | None:
    """None if the store cannot be read: the page says so instead of failing."""
    try:
        return await recent_health(request)
    except PlatformError as error:
        services_of(request).log.warning("health not shown", error=error.message, code=error.code)
        return None


ENDPOINTS = (page("/", home), page("/collections/{collection}", collection))
