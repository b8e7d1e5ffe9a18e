"""Pages of followed repositories: those of a namespace, and one with what its last check found."""

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Asked
from vskill_core.identity import MAX_URL
from vskill_platform.actions.people.owners import repository_of
from vskill_platform.actions.skills.follows import (
    FOLLOW,
    LIST_FOLLOWS,
    SHOW_FOLLOW,
    UNFOLLOW,
    ListFollows,
    ShowFollow,
)
from vskill_platform.actions.skills.push_hooks import MAKE_PUSH_HOOK, SHOW_PUSH_HOOK, ShowPushHook
from vskill_platform.domain.people.namespace import MOST_NAMESPACE, namespace_of
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.web.pages.acting import form, private_page
from vskill_platform.web.routing import page, query_of

PAGE = "/follows"


class FollowQuery(Asked, frozen=True):
    """Which repository, or whose; without either the page asks for one."""

    namespace: Annotated[str, msgspec.Meta(max_length=MOST_NAMESPACE)] = ""
    repo_url: Annotated[str, msgspec.Meta(max_length=MAX_URL)] = ""


async def show(request: Request) -> Response:
    services, reader, asked = services_of(request), principal_of(request), query_of(request, FollowQuery)
    if asked.namespace and not asked.repo_url:
        listed = await LIST_FOLLOWS(services, reader, ListFollows(namespace=asked.namespace))
        return private_page(request, "namespace_follows.html", found=listed)
    made = request.scope.get("made")
    found, hook, namespace, wanted = None, None, "", made.repo_url if made else asked.repo_url
    if wanted:
        found = await SHOW_FOLLOW(services, reader, ShowFollow(repo_url=wanted))
        hook = await SHOW_PUSH_HOOK(services, reader, ShowPushHook(repo_url=wanted))
        namespace = namespace_of(repository_of(found.repo_url))
    return private_page(request, "follow.html", found=found, hook=hook, namespace=namespace)


_PAGE = page(PAGE, show, action=SHOW_FOLLOW, shows=("follow.list", "follow.webhook"), query=FollowQuery)
ENDPOINTS = (
    _PAGE,
    # The secret is shown once, by the answer to the form.
    form(f"{PAGE}/webhook", MAKE_PUSH_HOOK, at=PAGE, shown_by=_PAGE),
    form(f"{PAGE}/add", FOLLOW, "The repository is followed; it is being checked.", at=PAGE),
    form(f"{PAGE}/remove", UNFOLLOW, "It is followed no longer; its skills stay.", at=PAGE, confirm=True),
)
