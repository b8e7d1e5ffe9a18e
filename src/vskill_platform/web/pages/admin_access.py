"""Admin pages for whom the registry lets in, with a preview before the change, and for teams."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.access import (
    CHANGE_ACCESS,
    PREVIEW_ACCESS,
    SHOW_ACCESS,
    PreviewAccess,
    ShowAccess,
)
from vskill_platform.actions.teams import (
    ADD_TO_TEAM,
    CREATE_TEAM,
    DELETE_TEAM,
    LIST_TEAMS,
    REMOVE_FROM_TEAM,
    ListTeams,
    split_names,
)
from vskill_platform.actions.wire import Asked
from vskill_platform.domain.namespace import RegistryMode, Submitters
from vskill_platform.domain.plural import counted
from vskill_platform.web.auth import text_of
from vskill_platform.web.flash import see_other
from vskill_platform.web.pages.acting import act_by_form, acting, admin_page, require_confirmed
from vskill_platform.web.principal import principal_of, services_of
from vskill_platform.web.routing import form, page, query_of

ACCESS = "/admin/access"
TEAMS = "/admin/teams"
#: Of the list of names that a form sends.
MOST_TEXT = 20_000


class AccessQuery(Asked, frozen=True):
    """What is looked at before it is set; nothing shows the present."""

    mode: RegistryMode | None = None
    submitters: Submitters | None = None


async def access(request: Request) -> Response:
    services, reader = services_of(request), principal_of(request)
    asked = query_of(request, AccessQuery)
    found = await SHOW_ACCESS(services, reader, ShowAccess())
    mode = asked.mode or found.mode
    submitters = asked.submitters or found.submitters
    is_change = (mode, submitters) != (found.mode, found.submitters)
    preview = await PREVIEW_ACCESS(services, reader, PreviewAccess(mode=mode)) if is_change else None
    return admin_page(request, "access.html", found=found, mode=mode, submitters=submitters, preview=preview)


@acting(ACCESS)
async def change_access(request: Request) -> Response:
    await require_confirmed(request)
    changed = await act_by_form(request, CHANGE_ACCESS)
    done = f"The registry is {changed.mode.value}. Who may submit: {changed.submitters.value}."
    return see_other(request, ACCESS, done)


async def teams(request: Request) -> Response:
    found = await LIST_TEAMS(services_of(request), principal_of(request), ListTeams())
    return admin_page(request, "teams.html", teams=found.teams)


@acting(TEAMS)
async def create(request: Request) -> Response:
    made = await act_by_form(request, CREATE_TEAM)
    return see_other(request, TEAMS, f"The team {made.name} was created. It is empty.")


@acting(TEAMS)
async def add(request: Request) -> Response:
    accounts = split_names(await text_of(request, "accounts", MOST_TEXT))
    changed = await act_by_form(request, ADD_TO_TEAM, accounts=accounts)
    return see_other(request, TEAMS, f"{changed.name} has {counted(len(changed.members), 'member')}.")


@acting(TEAMS)
async def remove(request: Request) -> Response:
    account = await text_of(request, "account", 100)
    changed = await act_by_form(request, REMOVE_FROM_TEAM, accounts=[account])
    return see_other(request, TEAMS, f"{account} is no longer in {changed.name}.")


@acting(TEAMS)
async def delete(request: Request) -> Response:
    await require_confirmed(request)
    await act_by_form(request, DELETE_TEAM)
    return see_other(request, TEAMS, f"The team {await text_of(request, 'name', 100)} was deleted.")


ENDPOINTS = (
    page(ACCESS, access, action=SHOW_ACCESS, shows=("access.preview",), query=AccessQuery),
    form(ACCESS, change_access, action=CHANGE_ACCESS),
    page(TEAMS, teams, action=CREATE_TEAM),
    form(f"{TEAMS}/create", create, action=CREATE_TEAM),
    form(f"{TEAMS}/add", add, action=ADD_TO_TEAM),
    form(f"{TEAMS}/remove", remove, action=REMOVE_FROM_TEAM),
    form(f"{TEAMS}/delete", delete, action=DELETE_TEAM),
)
