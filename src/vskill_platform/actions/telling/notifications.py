"""An account's own notifications, and what it watches."""

from email.utils import parseaddr
from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, NoParameters, SkillName, Wire
from vskill_core.errors import InvalidInput, NotFound, PlatformError, RateLimited
from vskill_platform.actions.action import Cursor, PageSize, Services, action
from vskill_platform.actions.people.account import own_name
from vskill_platform.actions.principal import Principal, Right, audiences_of
from vskill_platform.domain.telling.notification import AccountChoices, Notification, Topic, topics_heard
from vskill_platform.store.people.accounts import get_user
from vskill_platform.store.skills.skills import find_by_name
from vskill_platform.store.telling.notifications import (
    confirm_address,
    list_notifications,
    mark_read,
    read_choices,
    read_unread,
    set_address,
    topics_of,
    unwatch,
    watch,
)

NOTIFICATIONS = "/api/v1/notifications"
WATCHES = "/api/v1/watches"
#: Where it is all shown.
PAGE = "/account/notifications"

WatchedNamespace = Annotated[str, msgspec.Meta(min_length=1, max_length=300, pattern=r"^[^/\s]+$")]


class NotificationView(Wire, frozen=True):
    """Something that the account was told."""

    id: str
    #: why: own, watched, reviews, reports or alerts
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
    #: the page where one looks at it, or decides
    path: str


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


class MailSettings(Wire, frozen=True):
    """Where the account's daily mail goes."""

    #: the confirmed address; null: no mail is sent
    mail: str | None
    #: the address whose code was not given yet
    unconfirmed: str | None


class ListNotifications(ActionRequest, frozen=True, kw_only=True):
    """A page of one's notifications."""

    #: the `after` of the page before
    after: Cursor | None = None
    #: how many to show on a page
    limit: PageSize = 50


class SetAddress(ActionRequest, frozen=True, kw_only=True):
    """Where the daily mail goes."""

    #: your address; an empty one ends the mail
    address: Annotated[str, msgspec.Meta(max_length=254)]


class ConfirmAddress(ActionRequest, frozen=True, kw_only=True):
    """That one reads what is mailed there."""

    #: the code in the mail
    code: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class WatchTarget(ActionRequest, frozen=True, kw_only=True):
    """A skill or a namespace."""

    #: the name of a skill
    skill: SkillName | None = None
    #: the name of a namespace: the first part of its skills' names
    namespace: WatchedNamespace | None = None


async def list_all(actor: Principal, request: ListNotifications) -> NotificationsAnswer:
    user = await get_user(own_name(actor))
    audiences = audiences_of(actor)
    page = await list_notifications(user, after=request.after, limit=request.limit, audiences=audiences)
    unread = await read_unread(user.name, topics_of(user), audiences=audiences)
    return NotificationsAnswer(
        unread.count, tuple(_view(one, unread.seen_at) for one in page.items), page.after
    )


async def count_for_header(reader: Principal) -> int | None:
    """The number of unread notifications, for the header of every page; at most one read. None if nobody is signed in,
    or the store fails: the page must not fail because of it."""
    if reader.account is None:
        return None
    try:
        return (await read_unread(reader.account, _topics(reader), audiences=audiences_of(reader))).count
    except PlatformError:
        return None


def _view(one: Notification, seen_at: int) -> NotificationView:
    skill, submission_id = one.skill or None, one.submission or None
    unread = one.is_unread(seen_at)
    return NotificationView.of(one, unread=unread, skill=skill, submission_id=submission_id)


async def read_all(actor: Principal, _request: NoParameters) -> None:
    await mark_read(own_name(actor))


async def show_mail(actor: Principal, _request: NoParameters) -> MailSettings:
    return _mail_settings((await read_choices(own_name(actor)))[0])


async def set_mail(services: Services, actor: Principal, request: SetAddress) -> MailSettings:
    if request.address:
        _check_address(request.address)
        if not services.settings.smtp_url:
            message = "This registry sends no mail."
            raise InvalidInput(message, field="address", fix="ask the operator to set VSKILL_SMTP_URL")
    return _mail_settings(await set_address(own_name(actor), request.address))


async def confirm_mail(actor: Principal, request: ConfirmAddress) -> MailSettings:
    return _mail_settings(await confirm_address(own_name(actor), request.code.strip()))


def _check_address(address: str) -> None:
    """Raise InvalidInput unless it is one plain address that mail can be sent to."""
    local, _, domain = address.rpartition("@")
    is_plain = address.isascii() and address.isprintable() and " " not in address
    if not (is_plain and local and domain) or parseaddr(address)[1] != address:
        raise InvalidInput(
            "This is not an e-mail address.", field="address", fix="write it as name@example.org"
        )


def _mail_settings(known: AccountChoices) -> MailSettings:
    return MailSettings(known.mail or None, (known.proof.address or None) if known.proof else None)


def _topics(reader: Principal) -> frozenset[Topic]:
    return topics_heard(reads_all=reader.is_reviewer, operates=reader.is_admin)


async def list_watches(actor: Principal, _request: NoParameters) -> WatchesAnswer:
    return _watches((await read_choices(own_name(actor)))[0].watched)


async def add_watch(actor: Principal, request: WatchTarget) -> WatchesAnswer:
    return _watches((await watch(own_name(actor), await _target(actor, request))).watched)


async def remove_watch(actor: Principal, request: WatchTarget) -> WatchesAnswer:
    """By the name in the list, so that an account can stop watching what it may not read any more."""
    account = own_name(actor)
    known = (await read_choices(account))[0].watched
    named = request.skill or request.namespace
    target = named if named in known else await _target(actor, request)
    return _watches((await unwatch(account, target)).watched)


async def _target(actor: Principal, request: WatchTarget) -> str:
    """The canonical name of the skill, or the name of the namespace. Whether the namespace exists is not checked: the
    name reveals nothing, and only those who may read it are told what happens there."""
    if (request.skill is None) == (request.namespace is None):
        raise InvalidInput("Name one thing to watch.", field="skill", fix="give a skill or a namespace")
    if request.skill is None:
        return (request.namespace or "").lower()
    return (await find_by_name(request.skill, audiences=audiences_of(actor))).canonical


def _watches(watched: tuple[str, ...]) -> WatchesAnswer:
    return WatchesAnswer(
        tuple(one for one in watched if "/" in one), tuple(one for one in watched if "/" not in one)
    )


LIST_NOTIFICATIONS = action(
    list_all,
    "notification.list",
    NOTIFICATIONS,
    right=Right.SIGNED_IN,
    summary="List your notifications",
    about="Only those about what you may read now.",
)
READ_NOTIFICATIONS = action(
    read_all,
    "notification.read",
    f"{NOTIFICATIONS}/read",
    right=Right.SIGNED_IN,
    status=204,
    summary="Mark your notifications as read",
)
SHOW_MAIL = action(
    show_mail,
    "notification.settings",
    f"{NOTIFICATIONS}/settings",
    method="GET",
    right=Right.SIGNED_IN,
    summary="Show where your daily mail goes",
)
SET_MAIL = action(
    set_mail,
    "notification.mail",
    f"{NOTIFICATIONS}/mail",
    right=Right.SIGNED_IN,
    errors=(RateLimited,),
    summary="Set the address that your notifications are mailed to once a day",
    about="A code is mailed there; mail goes there once you have confirmed it. An empty address ends the mail.",
)
CONFIRM_MAIL = action(
    confirm_mail,
    "notification.confirm",
    f"{NOTIFICATIONS}/mail/confirm",
    right=Right.SIGNED_IN,
    summary="Confirm the address by the code that was mailed there",
)
LIST_WATCHES = action(
    list_watches,
    "watch.list",
    WATCHES,
    right=Right.SIGNED_IN,
    summary="List the skills and namespaces that you watch",
)
ADD_WATCH = action(
    add_watch,
    "watch.add",
    WATCHES,
    right=Right.SIGNED_IN,
    errors=(NotFound,),
    summary="Watch a skill or a namespace",
    about="You are told of new, withdrawn, yanked and restored versions, from now on.",
)
REMOVE_WATCH = action(
    remove_watch,
    "watch.remove",
    f"{WATCHES}/remove",
    right=Right.SIGNED_IN,
    errors=(NotFound,),
    summary="Stop watching a skill or a namespace",
)
