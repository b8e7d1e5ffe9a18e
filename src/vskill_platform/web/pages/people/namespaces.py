"""Pages of namespaces: those that one belongs to, one with its members and quotas, and what another visibility would
hide and show, which is seen before the button that sets it."""

from typing import Annotated
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from vskill_client.wire.base import Asked, NoParameters
from vskill_platform.actions.people.credentials import (
    ADD_KEY,
    ADD_TOKEN,
    LIST_CREDENTIALS,
    REMOVE_CREDENTIAL,
    SET_HOST_KEY,
)
from vskill_platform.actions.people.namespace_policy import (
    CHANGE_VISIBILITY,
    MAKE_PUBLIC,
    PREVIEW_VISIBILITY,
    SET_QUOTAS,
    SET_REVIEWERS,
    PreviewVisibility,
)
from vskill_platform.actions.people.namespaces import (
    ADD_MEMBER,
    HAND_OVER,
    LEAVE_NAMESPACE,
    LIST_NAMESPACES,
    REMOVE_MEMBER,
    SHOW_NAMESPACE,
    NamespaceRequest,
    NamespaceView,
)
from vskill_platform.actions.people.teams import LIST_TEAMS
from vskill_platform.actions.principal import ActionObject, Right, may
from vskill_platform.actions.skills.versions import NARROW_SKILL, WIDEN_SKILL
from vskill_platform.domain.people.namespace import MOST_NAMESPACE, NamespaceRole, Visibility
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.web.pages.acting import form, private_page
from vskill_platform.web.routing import page, query_of

LIST = "/namespaces"
_ONE = f"{LIST}/{{name}}"
_CREDENTIALS = f"{_ONE}/credentials"
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
        return RedirectResponse(f"{LIST}/{quote(wanted, safe='~')}", 303)
    found = await LIST_NAMESPACES(services, reader, NoParameters())
    teams = await LIST_TEAMS(services, reader, NoParameters())
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


async def credentials(request: Request) -> Response:
    reader, asked = principal_of(request), NamespaceRequest(name=request.path_params["name"])
    found = await LIST_CREDENTIALS(services_of(request), reader, asked)
    is_owner = await may(reader, Right.OWNER, ActionObject(namespace=found.name))
    return private_page(request, "namespace_credentials.html", found=found, is_owner=is_owner)


def _show(request: Request, template: str, **context: object) -> Response:
    return private_page(request, template, visibilities=VISIBILITIES, **context)


def told_visibility(now: NamespaceView, to: Visibility) -> str:
    return f"{now.name} is {to.value}: {VISIBILITIES[to]} may read it."


ENDPOINTS = (
    page(LIST, namespaces, action=LIST_NAMESPACES, shows=("team.list", "team.show"), query=NamespacesQuery),
    page(_ONE, namespace, action=SHOW_NAMESPACE),
    form(
        f"{_ONE}/members",
        ADD_MEMBER,
        lambda now, asked: f"{asked.member} is now {asked.role.value} of {now.name}.",
        at=_ONE,
    ),
    page(_CREDENTIALS, credentials, action=LIST_CREDENTIALS),
    form(f"{_CREDENTIALS}/token", ADD_TOKEN, "The token is added.", at=_CREDENTIALS),
    form(
        f"{_CREDENTIALS}/key",
        ADD_KEY,
        lambda now, _: f"Add this key to the repository, to read only: {now.credentials[-1].public_key}",
        at=_CREDENTIALS,
    ),
    form(f"{_CREDENTIALS}/host-key", SET_HOST_KEY, "The host key is changed.", at=_CREDENTIALS),
    form(f"{_CREDENTIALS}/remove", REMOVE_CREDENTIAL, "The credential is removed.", at=_CREDENTIALS),
    form(
        f"{_ONE}/hand-over",
        HAND_OVER,
        lambda now, asked: f"{now.name} belongs to {asked.to} now.",
        at=_ONE,
        to=LIST,
        confirm=True,
    ),
    form(
        f"{_ONE}/members/remove",
        REMOVE_MEMBER,
        lambda _, asked: f"{asked.member} is no member any more.",
        at=_ONE,
    ),
    form(
        f"{_ONE}/leave",
        LEAVE_NAMESPACE,
        lambda _, asked: f"You left {asked.name}.",
        at=_ONE,
        to=LIST,
        confirm=True,
    ),
    page(f"{_ONE}/visibility", visibility, action=PREVIEW_VISIBILITY, query=VisibilityQuery),
    form(
        f"{_ONE}/visibility",
        CHANGE_VISIBILITY,
        lambda now, asked: told_visibility(now, asked.to),
        at=_ONE,
        confirm=True,
    ),
    form(
        f"{_ONE}/make-public",
        MAKE_PUBLIC,
        lambda now, _: told_visibility(now, Visibility.PUBLIC),
        at=_ONE,
        confirm=True,
    ),
    form(
        f"{_ONE}/review", SET_REVIEWERS, lambda now, _: f"Who reviews in {now.name}: {now.review}.", at=_ONE
    ),
    form(f"{_ONE}/quotas", SET_QUOTAS, lambda now, _: f"The quotas of {now.name} are set.", at=_ONE),
    form(
        f"{_SKILL}/narrow",
        NARROW_SKILL,
        lambda now, _: (
            f"The skill is {now.narrowed.value if now.narrowed else 'as readable as its namespace'}."
        ),
        at=_SKILL,
    ),
    form(
        f"{_SKILL}/widen",
        WIDEN_SKILL,
        lambda now, _: f"The skill is as readable as its namespace, {now.visibility.value}.",
        at=_SKILL,
    ),
)
