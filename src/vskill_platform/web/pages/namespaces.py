"""Pages of namespaces: those that one belongs to, one with its members and quotas, and what another visibility would
hide and show, which is seen before the button that sets it."""

from typing import Annotated
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from vskill_platform.actions.namespaces import (
    ADD_MEMBER,
    CHANGE_VISIBILITY,
    LEAVE_NAMESPACE,
    LIST_NAMESPACES,
    MAKE_PUBLIC,
    PREVIEW_VISIBILITY,
    REMOVE_MEMBER,
    SET_QUOTAS,
    SHOW_NAMESPACE,
    ListNamespaces,
    NamespaceRequest,
    PreviewVisibility,
)
from vskill_platform.actions.narrowing import NARROW_SKILL, WIDEN_SKILL
from vskill_platform.actions.rights import ActionObject, Right, may
from vskill_platform.actions.teams import LIST_TEAMS, ListTeams
from vskill_platform.actions.wire import Asked
from vskill_platform.domain.namespace import MOST_NAMESPACE, NamespaceRole, Visibility
from vskill_platform.web.auth import text_of
from vskill_platform.web.flash import clear_flash, flash_of, see_other
from vskill_platform.web.pages.acting import act_by_form, acting, back_of, require_confirmed
from vskill_platform.web.principal import principal_of, services_of
from vskill_platform.web.render import render
from vskill_platform.web.routing import form, page, query_of

LIST = "/namespaces"
_ONE = f"{LIST}/{{name}}"
_SKILL = "/skills/{owner}/{repo}/{slug}"
#: What each visibility and role means, as pages say it.
VISIBILITIES = {
    Visibility.PUBLIC: "everybody whom the registry lets in",
    Visibility.INTERNAL: "every account",
    Visibility.TEAM: "only members",
}
#: How a page asks for a visibility, and what its button says.
QUESTIONS = {
    Visibility.PUBLIC: ("Let everybody read", "Make it public"),
    Visibility.INTERNAL: ("Let every account read", "Make it internal"),
    Visibility.TEAM: ("Let only members read", "Limit it to members"),
}
ROLES = {
    NamespaceRole.READER: "reads",
    NamespaceRole.AUTHOR: "reads and submits",
    NamespaceRole.MAINTAINER: "also withdraws, deletes and narrows skills",
    NamespaceRole.OWNER: "also decides about members and visibility",
}


class NamespacesQuery(Asked, frozen=True):
    """The namespace to open, also one without a record."""

    open: Annotated[str, msgspec.Meta(max_length=MOST_NAMESPACE)] = ""


class VisibilityQuery(Asked, frozen=True):
    """The visibility that is looked at."""

    to: Visibility = Visibility.TEAM


async def namespaces(request: Request) -> Response:
    services, reader = services_of(request), principal_of(request)
    if wanted := query_of(request, NamespacesQuery).open.strip():
        return RedirectResponse(_page(wanted), 303)
    found = await LIST_NAMESPACES(services, reader, ListNamespaces())
    teams = await LIST_TEAMS(services, reader, ListTeams())
    return _show(
        request,
        "namespaces.html",
        found=found.namespaces,
        teams=teams.teams,
        sees_all=MAKE_PUBLIC.allows(reader),
    )


async def namespace(request: Request) -> Response:
    services, reader = services_of(request), principal_of(request)
    found = await SHOW_NAMESPACE(services, reader, NamespaceRequest(name=request.path_params["name"]))
    is_owner = await may(reader, Right.OWNER, ActionObject(namespace=found.name))
    return _show(
        request,
        "namespace.html",
        found=found,
        is_owner=is_owner,
        role_choices=[(role.value, f"{role.value}: {text}") for role, text in ROLES.items()],
        can_set_quotas=SET_QUOTAS.allows(reader),
        is_member=any(one.member == reader.account and one.repo is None for one in found.members),
    )


async def visibility(request: Request) -> Response:
    """The preview, with the button below it."""
    services, reader = services_of(request), principal_of(request)
    asked = PreviewVisibility(name=request.path_params["name"], to=query_of(request, VisibilityQuery).to)
    found = await PREVIEW_VISIBILITY(services, reader, asked)
    is_owner = await may(reader, Right.OWNER, ActionObject(namespace=found.name))
    can_publish = MAKE_PUBLIC.allows(reader)
    return _show(
        request,
        "namespace_visibility.html",
        found=found,
        question=QUESTIONS[found.to],
        may_set=can_publish if found.needs_reviewer else is_owner,
    )


def _show(request: Request, template: str, **context: object) -> Response:
    shown = render(request, template, flash=flash_of(request), visibilities=VISIBILITIES, **context)
    shown.headers["cache-control"] = "no-store"
    return clear_flash(request, shown)


@acting(LIST)
async def add_member(request: Request) -> Response:
    changed = await act_by_form(request, ADD_MEMBER)
    member, role = await text_of(request, "member", 110), await text_of(request, "role")
    return see_other(request, _page(changed.name), f"{member} is now {role} of {changed.name}.")


@acting(LIST)
async def remove_member(request: Request) -> Response:
    changed = await act_by_form(request, REMOVE_MEMBER)
    member = await text_of(request, "member", 110)
    return see_other(request, _page(changed.name), f"{member} is no member any more.")


@acting(LIST)
async def leave(request: Request) -> Response:
    await require_confirmed(request)
    await act_by_form(request, LEAVE_NAMESPACE)
    return see_other(request, LIST, f"You left {request.path_params['name']}.")


@acting(LIST)
async def change_visibility(request: Request) -> Response:
    await require_confirmed(request)
    changed = await act_by_form(request, CHANGE_VISIBILITY)
    return _say_visibility(request, changed.name, await text_of(request, "to"))


@acting(LIST)
async def make_public(request: Request) -> Response:
    await require_confirmed(request)
    changed = await act_by_form(request, MAKE_PUBLIC)
    return _say_visibility(request, changed.name, Visibility.PUBLIC.value)


def _say_visibility(request: Request, name: str, to: str) -> Response:
    return see_other(request, _page(name), f"{name} is {to}: {VISIBILITIES[Visibility(to)]} may read it.")


@acting(LIST)
async def set_quotas(request: Request) -> Response:
    changed = await act_by_form(request, SET_QUOTAS)
    return see_other(request, _page(changed.name), f"The quotas of {changed.name} are set.")


@acting("/skills")
async def narrow(request: Request) -> Response:
    changed = await act_by_form(request, NARROW_SKILL, skill=_skill(request))
    to = "as readable as its namespace" if changed.narrowed is None else changed.narrowed.value
    return see_other(
        request, await back_of(request, f"/skills/{quote(changed.skill)}"), f"The skill is {to}."
    )


@acting("/skills")
async def widen(request: Request) -> Response:
    changed = await act_by_form(request, WIDEN_SKILL, skill=_skill(request))
    done = f"The skill is as readable as its namespace, {changed.visibility.value}."
    return see_other(request, await back_of(request, f"/skills/{quote(changed.skill)}"), done)


def _skill(request: Request) -> str:
    parts = request.path_params
    return f"{parts['owner']}/{parts['repo']}/{parts['slug']}"


def _page(name: str) -> str:
    return f"{LIST}/{quote(name, safe='~')}"


ENDPOINTS = (
    page(LIST, namespaces, action=LIST_NAMESPACES, shows=("team.list", "team.show"), query=NamespacesQuery),
    page(_ONE, namespace, action=SHOW_NAMESPACE),
    form(f"{_ONE}/members", add_member, action=ADD_MEMBER),
    form(f"{_ONE}/members/remove", remove_member, action=REMOVE_MEMBER),
    form(f"{_ONE}/leave", leave, action=LEAVE_NAMESPACE),
    page(f"{_ONE}/visibility", visibility, action=PREVIEW_VISIBILITY, query=VisibilityQuery),
    form(f"{_ONE}/visibility", change_visibility, action=CHANGE_VISIBILITY),
    form(f"{_ONE}/make-public", make_public, action=MAKE_PUBLIC),
    form(f"{_ONE}/quotas", set_quotas, action=SET_QUOTAS),
    form(f"{_SKILL}/narrow", narrow, action=NARROW_SKILL),
    form(f"{_SKILL}/widen", widen, action=WIDEN_SKILL),
)
