"""Pages of upstreams: for admins all of them with a form for another one, and one with what its last look found; for
readers what one has, with a form to ask for it."""

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Asked
from vskill_core.plural import counted
from vskill_platform.actions.skills.upstream_entries import ASK_FOR_ENTRY, LIST_ENTRIES, ListEntries
from vskill_platform.actions.skills.upstreams import (
    ADD_UPSTREAM,
    CHANGE_UPSTREAM,
    LIST_UPSTREAMS,
    PAUSE_UPSTREAM,
    REMOVE_UPSTREAM,
    RESUME_UPSTREAM,
    SHOW_UPSTREAM,
    SYNC_UPSTREAM,
)
from vskill_platform.actions.submissions.bundles import ADD_BUNDLE, AddBundle, BundleAdded
from vskill_platform.web.exchange import principal_of, public_address, services_of
from vskill_platform.web.pages.acting import answer_page, form, private_page
from vskill_platform.web.routing import page, query_of

PAGE = "/admin/upstreams"
ONE = "/admin/upstream/{name}"

HAS = "/upstreams/{name}/skills"
#: Of the other fields of a form with a file.
MOST_FIELDS = 100_000


class EntriesQuery(Asked, frozen=True):
    """Which entries."""

    q: Annotated[str, msgspec.Meta(max_length=200)] = ""
    after: Annotated[str, msgspec.Meta(max_length=300)] = ""


async def show_entries(request: Request) -> Response:
    asked, name = query_of(request, EntriesQuery), request.path_params["name"]
    wanted = ListEntries(name=name, q=asked.q, after=asked.after or None)
    reader = principal_of(request)
    found = await LIST_ENTRIES(services_of(request), reader, wanted)
    may_ask, base = ASK_FOR_ENTRY.allows(reader), public_address(request)
    return private_page(request, "upstream_skills.html", found=found, asked=asked, may_ask=may_ask, base=base)


def _say_added(done: BundleAdded, _: AddBundle) -> str:
    first = ", which is trusted from now on: compare it with the registry's" if done.first_use else ""
    said = f"{counted(len(done.skills), 'skill')} of {done.registry} came, signed by the key {done.key_id}{first}."
    return f"{said} Blocked because withdrawn there: {len(done.withdrawn)}." if done.withdrawn else said


ENDPOINTS = (
    page(HAS, show_entries, action=LIST_ENTRIES, query=EntriesQuery),
    form("/upstreams/{name}/ask", ASK_FOR_ENTRY, lambda done, _: f"{done.full_name}: {done.state}", at=HAS),
    answer_page(PAGE, "upstreams.html", found=LIST_UPSTREAMS),
    answer_page(ONE, "upstream.html", found=SHOW_UPSTREAM),
    form(f"{PAGE}/add", ADD_UPSTREAM, "The upstream was added; it is being read.", at=PAGE),
    form(f"{ONE}/bundle", ADD_BUNDLE, _say_added, at=ONE, most_body=ADD_BUNDLE.most_body + MOST_FIELDS),
    form(f"{ONE}/change", CHANGE_UPSTREAM, "The upstream was changed; it is being read again.", at=ONE),
    form(f"{ONE}/pause", PAUSE_UPSTREAM, "The upstream is paused.", at=ONE),
    form(f"{ONE}/resume", RESUME_UPSTREAM, "The upstream is being read again.", at=ONE),
    form(
        f"{ONE}/sync",
        SYNC_UPSTREAM,
        "The upstream is being read; reload this page to see what is found.",
        at=ONE,
    ),
    form(
        f"{ONE}/remove",
        REMOVE_UPSTREAM,
        "The upstream was removed; its skills stay.",
        at=ONE,
        to=PAGE,
        confirm=True,
    ),
)
