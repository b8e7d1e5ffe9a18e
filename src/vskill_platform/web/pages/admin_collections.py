"""Collections, for whoever curates them: what an organisation is offered as a marketplace of its own."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.store.collections import (
    add_skills,
    create_collection,
    delete_collection,
    list_collections,
    remove_skills,
)
from vskill_platform.web.addresses import public_address
from vskill_platform.web.auth import text_of
from vskill_platform.web.flash import see_other
from vskill_platform.web.pages.acting import acting, admin_page, reason_of, require_confirmed
from vskill_platform.web.principal import Guard, principal_of
from vskill_platform.web.routing import form, page

LIST = "/admin/collections"
#: Of the list of names that a form sends.
MOST_TEXT = 20_000


async def collections(request: Request) -> Response:
    found = await list_collections()
    return admin_page(
        request,
        "collections.html",
        items=found.items,
        skipped=found.skipped,
        base=public_address(request),
    )


@acting(LIST)
async def create(request: Request) -> Response:
    name = await text_of(request, "name", 100)
    await create_collection(
        name,
        title=await text_of(request, "title", 200),
        description=await text_of(request, "description"),
        by=principal_of(request).actor,
        reason=await reason_of(request),
    )
    return see_other(request, LIST, f"The collection {name} is there, and empty.")


@acting(LIST)
async def add(request: Request) -> Response:
    """Names of skills, one to a line."""
    name = await text_of(request, "name", 100)
    wanted = (await text_of(request, "skills", MOST_TEXT)).split()
    actor, reason = principal_of(request).actor, await reason_of(request)
    changed = await add_skills(name, wanted, by=actor, reason=reason)
    return see_other(request, LIST, f"{name} has {len(changed.skills)} skills.")


@acting(LIST)
async def remove(request: Request) -> Response:
    name, skill = await text_of(request, "name", 100), await text_of(request, "skill", 400)
    actor, reason = principal_of(request).actor, await reason_of(request)
    await remove_skills(name, [skill], by=actor, reason=reason)
    return see_other(request, LIST, f"{skill} is no longer in {name}.")


@acting(LIST)
async def delete(request: Request) -> Response:
    name, reason = await text_of(request, "name", 100), await reason_of(request)
    await require_confirmed(request)
    await delete_collection(name, by=principal_of(request).actor, reason=reason)
    return see_other(request, LIST, f"The collection {name} is gone.")


ENDPOINTS = (
    page(LIST, collections, guard=Guard.ADMIN),
    form(f"{LIST}/create", create, guard=Guard.ADMIN, scope="admin"),
    form(f"{LIST}/add", add, guard=Guard.ADMIN, scope="admin"),
    form(f"{LIST}/remove", remove, guard=Guard.ADMIN, scope="admin"),
    form(f"{LIST}/delete", delete, guard=Guard.ADMIN, scope="admin"),
)
