"""A publisher's page: everything that one owner has published, and what is known about the owner."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Asked
from vskill_core.errors import NotFound
from vskill_core.identity import normalise
from vskill_platform.actions.principal import ActionObject, Principal, Right, may
from vskill_platform.actions.skills.catalogue import list_unblocked
from vskill_platform.domain.skills.catalogue import Filter, Sort
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.web.pages.skills.skills import SORTS
from vskill_platform.web.render import render
from vskill_platform.web.routing import page, query_of

PAGE_SIZE = 60
#: That the page names.
MOST_REPOSITORIES = 20


class OwnerQuery(Asked, frozen=True):
    """How the owner's list is ordered, and where it goes on."""

    sort: Sort = Sort.UPDATED
    after: Annotated[str, msgspec.Meta(max_length=2000)] = ""


async def owner(request: Request) -> Response:
    name = request.path_params["owner"]
    asked = query_of(request, OwnerQuery)
    reader = principal_of(request)
    found = await list_unblocked(
        services_of(request),
        reader,
        Filter(owner=name),
        sort=asked.sort,
        after=asked.after or None,
        limit=PAGE_SIZE,
    )
    if not found.items and not asked.after:
        raise NotFound(f"No published skill belongs to {name[:100]}.", owner=name[:100])
    profile = _profile(found.items)
    return render(
        request,
        "owner.html",
        name=name,
        profile=profile,
        claimable=await _claimable(reader, (url for url, _ in profile["repositories"])),
        skills=found.items,
        asked=asked,
        sorts=SORTS,
        more=found.after,
    )


async def _claimable(principal: Principal, repositories: Iterable[str]) -> list[str]:
    """The repositories that the signed-in account could claim."""
    if principal.account is None:
        return []
    shown = list(repositories)[:MOST_REPOSITORIES]
    places = [ActionObject(normalise(url)) for url in shown]
    mine = await asyncio.gather(*(may(principal, Right.MAINTAINER, place) for place in places))
    return [url for url, is_mine in zip(shown, mine, strict=True) if not is_mine]


def _profile(skills: tuple[PublishedSkill, ...]) -> dict[str, Any]:
    listings = [skill.listing for skill in skills if skill.listing]
    certified = Counter(skill.certification.value for skill in skills if skill.certification is not None)
    fetched = [skill for skill in skills if not skill.identity.is_upload]
    return {
        "hosts": sorted({skill.identity.host for skill in fetched}),
        "repositories": sorted({skill.repo_url: skill.repo for skill in fetched}.items()),
        "installs": sum(listing.installs for listing in listings),
        "since": min((listing.created_at for listing in listings), default=0),
        # The most thorough first.
        "certified": dict(sorted(certified.items())),
    }


ENDPOINTS = (page("/owners/{owner:path}", owner, query=OwnerQuery),)
