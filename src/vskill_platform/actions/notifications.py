"""Notifications of one's own account, and what it watches."""

from typing import Annotated

import msgspec

from vskill_platform.actions.account import own_name
from vskill_platform.actions.action import Action, Missing, Services
from vskill_platform.actions.checks import ActionRequest, Cursor, PageSize, SkillName
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.rights import Right
from vskill_platform.actions.visibility import audiences_of
from vskill_platform.actions.wire import Wire, iso_time
from vskill_platform.domain.errors import InvalidInput, NotFound
from vskill_platform.domain.notification import Notification, Topic
from vskill_platform.domain.token import TokenScope
from vskill_platform.store.accounts import get_user
from vskill_platform.store.notifications import (
    count_unread,
    list_notifications,
    mark_read,
    read_watches,
    unwatch,
    watch,
)
from vskill_platform.store.skills import find_by_name

NOTIFICATIONS = "/api/v1/notifications"
WATCHES = "/api/v1/watches"
#: Where it is all shown and chosen.
PAGE = "/account/notifications"

WatchedNamespace = Annotated[str, msgspec.Meta(min_length=1, max_length=300, pattern=r"^[^/\s]+$")]


class NotificationView(Wire, frozen=True):
    """Something that the account was told."""

    id: str
    #: why: own, watched, reviews or reports
    topic: Topic
    #: what happened, as webhooks name it
    type: str
    at: str
    text: str
    #: written since the account last marked them as read
    unread: bool
    #: the skill that it is about
    skill: str | None
    #: the submission that it is about
    submission_id: str | None


class NotificationsAnswer(Wire, frozen=True):
    """The latest first."""

    #: how many of the latest 100 are unread
    unread: int
    notifications: tuple[NotificationView, ...]
    #: asks for the next page; null on the last
    after: str | None


class WatchesAnswer(Wire, frozen=True):
    """What the account watches, in the order of names."""

    skills: tuple[str, ...]
    namespaces: tuple[str, ...]


class ListNotifications(ActionRequest, frozen=True, kw_only=True):
    """A page of one's notifications."""

    #: the `after` of the page before
    after: Cursor | None = None
    #: how many to show on a page
    limit: PageSize = 50


class OwnNotifications(ActionRequest, frozen=True, kw_only=True):
    """All notifications of the account that asks."""


class WatchTarget(ActionRequest, frozen=True, kw_only=True):
    """A skill or a namespace."""

    #: the name of a skill
    skill: SkillName | None = None
    #: the name of a namespace: the first part of its skills' names
    namespace: WatchedNamespace | None = None


async def list_all(_services: Services, actor: Principal, request: ListNotifications) -> NotificationsAnswer:
    user = await get_user(own_name(actor))
    audiences = audiences_of(actor)
    page = await list_notifications(user, after=request.after, limit=request.limit, audiences=audiences)
    seen = (await read_watches(user.name))[0].seen_at
    return NotificationsAnswer(
        await count_unread(user, audiences=audiences),
        tuple(_view(one, seen) for one in page.items),
        page.after,
    )


def _view(one: Notification, seen_at: int) -> NotificationView:
    return NotificationView(
        one.id,
        one.topic,
        one.type,
        iso_time(one.at),
        one.text,
        one.is_unread(seen_at),
        one.skill or None,
        one.submission or None,
    )


async def read_all(_services: Services, actor: Principal, _request: OwnNotifications) -> None:
    await mark_read(own_name(actor))


async def list_watches(_services: Services, actor: Principal, _request: OwnNotifications) -> WatchesAnswer:
    return _watches((await read_watches(own_name(actor)))[0].watched)


async def add_watch(_services: Services, actor: Principal, request: WatchTarget) -> WatchesAnswer:
    return _watches((await watch(own_name(actor), await _target(actor, request))).watched)


async def remove_watch(_services: Services, actor: Principal, request: WatchTarget) -> WatchesAnswer:
    """By the name as it is listed: what one may not read any more can still be left."""
    account = own_name(actor)
    known = (await read_watches(account))[0].watched
    named = request.skill or request.namespace
    target = named if named in known else await _target(actor, request)
    return _watches((await unwatch(account, target)).watched)


async def _target(actor: Principal, request: WatchTarget) -> str:
    """The canonical name of the skill, or the name of the namespace. Whether a namespace exists is not looked up: its
    name says nothing, and what happens in it is told to those who may read it."""
    if (request.skill is None) == (request.namespace is None):
        raise InvalidInput("Name one thing to watch.", field="skill", fix="give a skill or a namespace")
    if request.skill is None:
        return (request.namespace or "").lower()
    return (await find_by_name(request.skill, audiences=audiences_of(actor))).canonical


def _watches(watched: tuple[str, ...]) -> WatchesAnswer:
    return WatchesAnswer(
        tuple(one for one in watched if "/" in one), tuple(one for one in watched if "/" not in one)
    )


_NO_TOOL = Missing("what a person is told is for the person to choose and to read, not for an agent")

LIST_NOTIFICATIONS = Action(
    name="notification.list",
    run=list_all,
    request=ListNotifications,
    answer=NotificationsAnswer,
    method="GET",
    path=NOTIFICATIONS,
    right=Right.SIGNED_IN,
    scope=TokenScope.READ,
    summary="List your notifications",
    about="Only those about what you may read now.",
    tag="account",
    page=PAGE,
    command="notification list",
    mcp=_NO_TOOL,
)
READ_NOTIFICATIONS = Action(
    name="notification.read",
    run=read_all,
    request=OwnNotifications,
    answer=None,
    path=f"{NOTIFICATIONS}/read",
    right=Right.SIGNED_IN,
    scope=TokenScope.OWN,
    status=204,
    summary="Mark your notifications as read",
    tag="account",
    page=f"{PAGE}/read",
    command="notification read",
    mcp=_NO_TOOL,
)
LIST_WATCHES = Action(
    name="watch.list",
    run=list_watches,
    request=OwnNotifications,
    answer=WatchesAnswer,
    method="GET",
    path=WATCHES,
    right=Right.SIGNED_IN,
    scope=TokenScope.READ,
    summary="List the skills and namespaces that you watch",
    tag="account",
    page=PAGE,
    command="watch list",
    mcp=_NO_TOOL,
)
ADD_WATCH = Action(
    name="watch.add",
    run=add_watch,
    request=WatchTarget,
    answer=WatchesAnswer,
    path=WATCHES,
    right=Right.SIGNED_IN,
    scope=TokenScope.OWN,
    errors=(NotFound,),
    summary="Watch a skill or a namespace",
    about="You are told of new, withdrawn, yanked and restored versions, from now on.",
    tag="account",
    page=f"{PAGE}/watch",
    command="watch add",
    mcp=_NO_TOOL,
)
REMOVE_WATCH = Action(
    name="watch.remove",
    run=remove_watch,
    request=WatchTarget,
    answer=WatchesAnswer,
    path=f"{WATCHES}/remove",
    right=Right.SIGNED_IN,
    scope=TokenScope.OWN,
    errors=(NotFound,),
    summary="Stop watching a skill or a namespace",
    tag="account",
    page=f"{PAGE}/unwatch",
    command="watch remove",
    mcp=_NO_TOOL,
)

ACTIONS = (LIST_NOTIFICATIONS, READ_NOTIFICATIONS, LIST_WATCHES, ADD_WATCH, REMOVE_WATCH)
