"""Admin pages for collections: curated lists that an organisation adds as a marketplace."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_core.plural import counted
from vskill_platform.actions.skills.collections import (
    ADD_SKILLS,
    CREATE_COLLECTION,
    DELETE_COLLECTION,
    REMOVE_SKILLS,
    measure_contexts,
    read_collections,
)
from vskill_platform.web.exchange import principal_of, public_address, services_of
from vskill_platform.web.pages.acting import admin_page, form
from vskill_platform.web.routing import page

LIST = "/admin/collections"
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


ENDPOINTS = (
    page(LIST, collections, action=CREATE_COLLECTION, shows=("skill.lock",)),
    form(
        f"{LIST}/create",
        CREATE_COLLECTION,
        lambda made, _: f"The collection {made.name} was created. It is empty.",
        at=LIST,
    ),
    form(
        f"{LIST}/add",
        ADD_SKILLS,
        lambda now, _: f"{now.name} has {counted(len(now.skills), 'skill')}.",
        at=LIST,
    ),
    form(
        f"{LIST}/remove",
        REMOVE_SKILLS,
        lambda now, asked: f"{', '.join(asked.skills)} is no longer in {now.name}.",
        at=LIST,
    ),
    form(
        f"{LIST}/delete",
        DELETE_COLLECTION,
        lambda _, asked: f"The collection {asked.name} was deleted.",
        at=LIST,
        confirm=True,
    ),
)
