"""Admin pages for whom the registry lets in, with a preview before the change, and for teams."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Asked, NoParameters
from vskill_core.plural import counted
from vskill_platform.actions.people import teams
from vskill_platform.actions.people.access import (
    CHANGE_ACCESS,
    MAKE_SCIM_TOKEN,
    PREVIEW_ACCESS,
    REMOVE_SCIM_TOKEN,
    SHOW_ACCESS,
    PreviewAccess,
)
from vskill_platform.domain.people.namespace import OwnReview, RegistryMode, Submitters
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.web.pages.acting import admin_page, answer_page, form
from vskill_platform.web.routing import page, query_of

ACCESS = "/admin/access"
TEAMS = "/admin/teams"


class AccessQuery(Asked, frozen=True):
    """What is looked at before it is set; nothing shows the present."""

    mode: RegistryMode | None = None
    submitters: Submitters | None = None
    own_review: OwnReview | None = None


async def access(request: Request) -> Response:
    services, reader = services_of(request), principal_of(request)
    asked = query_of(request, AccessQuery)
    found = await SHOW_ACCESS(services, reader, NoParameters())
    mode = asked.mode or found.mode
    submitters = asked.submitters or found.submitters
    own_review = asked.own_review or found.own_review
    is_change = (mode, submitters, own_review) != (found.mode, found.submitters, found.own_review)
    preview = await PREVIEW_ACCESS(services, reader, PreviewAccess(mode=mode)) if is_change else None
    wanted = {"mode": mode, "submitters": submitters, "own_review": own_review}
    return admin_page(request, "access.html", found=found, preview=preview, **wanted)


PAGE = page(ACCESS, access, action=SHOW_ACCESS, shows=("access.preview",), query=AccessQuery)

ENDPOINTS = (
    PAGE,
    form(f"{ACCESS}/scim/make", MAKE_SCIM_TOKEN, at=ACCESS, shown_by=PAGE),
    form(
        f"{ACCESS}/scim/remove",
        REMOVE_SCIM_TOKEN,
        lambda gone, _: f"The directory of {gone.issuer} has no access any more.",
        at=ACCESS,
        confirm=True,
    ),
    form(
        ACCESS,
        CHANGE_ACCESS,
        lambda now, _: f"The registry is {now.mode.value}. Who may submit: {now.submitters.value}.",
        at=ACCESS,
        confirm=True,
    ),
    answer_page(TEAMS, "teams.html", action=teams.CREATE_TEAM, found=teams.LIST_TEAMS),
    form(
        f"{TEAMS}/create",
        teams.CREATE_TEAM,
        lambda made, _: f"The team {made.name} was created. It is empty.",
        at=TEAMS,
    ),
    form(
        f"{TEAMS}/add",
        teams.ADD_TO_TEAM,
        lambda team, _: f"{team.name} has {counted(len(team.members), 'member')}.",
        at=TEAMS,
    ),
    form(
        f"{TEAMS}/remove",
        teams.REMOVE_FROM_TEAM,
        lambda team, asked: f"{', '.join(asked.accounts)} is no longer in {team.name}.",
        at=TEAMS,
    ),
    form(
        f"{TEAMS}/delete",
        teams.DELETE_TEAM,
        lambda _, asked: f"The team {asked.name} was deleted.",
        at=TEAMS,
        confirm=True,
    ),
)
