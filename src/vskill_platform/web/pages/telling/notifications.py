"""What one's account was told, where its daily mail goes, and what it watches."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Asked, NoParameters
from vskill_platform.actions.telling.notifications import (
    ADD_WATCH,
    CONFIRM_MAIL,
    LIST_NOTIFICATIONS,
    LIST_WATCHES,
    PAGE,
    READ_NOTIFICATIONS,
    REMOVE_WATCH,
    SET_MAIL,
    SHOW_MAIL,
    ListNotifications,
    MailSettings,
)
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.web.pages.acting import form, private_page
from vskill_platform.web.routing import page, query_of


class NotificationsQuery(Asked, frozen=True):
    """Which page."""

    after: str | None = None


async def show(request: Request) -> Response:
    asked = query_of(request, NotificationsQuery)
    services, principal = services_of(request), principal_of(request)
    found = await LIST_NOTIFICATIONS(services, principal, ListNotifications(after=asked.after))
    return private_page(
        request,
        "notifications.html",
        found=found,
        watches=await LIST_WATCHES(services, principal, NoParameters()),
        mail=await SHOW_MAIL(services, principal, NoParameters()),
        sends_mail=bool(services.settings.smtp_url),
    )


def told_mail(chosen: MailSettings, _: object) -> str:
    return f"A code is on its way to {chosen.unconfirmed}." if chosen.unconfirmed else "You get no more mail."


ENDPOINTS = (
    page(
        PAGE,
        show,
        action=LIST_NOTIFICATIONS,
        shows=("notification.settings", "watch.list"),
        query=NotificationsQuery,
    ),
    form(f"{PAGE}/read", READ_NOTIFICATIONS, "All notifications are marked as read.", at=PAGE),
    form(f"{PAGE}/mail", SET_MAIL, told_mail, at=PAGE),
    form(f"{PAGE}/confirm", CONFIRM_MAIL, lambda now, _: f"Mail goes to {now.mail} from now on.", at=PAGE),
    form(f"{PAGE}/watch", ADD_WATCH, "You watch it from now on.", at=PAGE),
    form(f"{PAGE}/unwatch", REMOVE_WATCH, "You do not watch it any more.", at=PAGE),
)
