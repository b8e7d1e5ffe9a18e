"""Admin pages for collections: curated lists that an organisation adds as a marketplace."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.collections import (
    ADD_SKILLS,
    CREATE_COLLECTION,
    DELETE_COLLECTION,
    REMOVE_SKILLS,
    measure_contexts,
    read_collections,
)
from vskill_platform.domain.plural import counted
from vskill_platform.web.addresses import public_address
from vskill_platform.web.auth import text_of
from vskill_platform.web.flash import see_other
from vskill_platform.web.pages.acting import act_by_form, acting, admin_page, require_confirmed
from vskill_platform.web.principal import principal_of, services_of
from vskill_platform.web.routing import form, page

LIST = "/admin/collections"
#: Of the list of names that a form sends.
MOST_TEXT = 20_000
#: Of English text, by the tokenizers of most models.
CHARACTERS_PER_TOKEN = 4


async def collections(request: Request) -> Response:
    found = await read_collections(services_of(request), principal_of(request))
    return admin_page(
        request,
        "collections.html",
        items=found.items,
        skipped=found.skipped,
        characters=await measure_contexts(principal_of(request), found.items),
        per_token=CHARACTERS_PER_TOKEN,
        base=public_address(request),
    )


@acting(LIST)
async def create(request: Request) -> Response:
    made = await act_by_form(request, CREATE_COLLECTION)
    return see_other(request, LIST, f"The collection {made.name} was created. It is empty.")


@acting(LIST)
async def add(request: Request) -> Response:
    """Names of skills, one to a line."""
    wanted = (await text_of(request, "skills", MOST_TEXT)).split()
    changed = await act_by_form(request, ADD_SKILLS, skills=wanted)
    return see_other(request, LIST, f"{changed.name} has {counted(len(changed.skills), 'skill')}.")


@acting(LIST)
async def remove(request: Request) -> Response:
    skill = await text_of(request, "skill", 400)
    changed = await act_by_form(request, REMOVE_SKILLS, skills=[skill])
    return see_other(request, LIST, f"{skill} is no longer in {changed.name}.")


@acting(LIST)
async def delete(request: Request) -> Response:
    await require_confirmed(request)
    await act_by_form(request, DELETE_COLLECTION)
    return see_other(request, LIST, f"The collection {await text_of(request, 'name', 100)} was deleted.")


ENDPOINTS = (
    page(LIST, collections, action=CREATE_COLLECTION, shows=("skill.lock",)),
    form(f"{LIST}/create", create, action=CREATE_COLLECTION),
    form(f"{LIST}/add", add, action=ADD_SKILLS),
    form(f"{LIST}/remove", remove, action=REMOVE_SKILLS),
    form(f"{LIST}/delete", delete, action=DELETE_COLLECTION),
)
