"""What one's account was told, where its daily mail goes, and what it watches."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.notifications import (
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
    OwnNotifications,
)
from vskill_platform.actions.wire import Asked
from vskill_platform.web.flash import clear_flash, flash_of, see_other
from vskill_platform.web.pages.acting import act_by_form, acting, back_of
from vskill_platform.web.principal import principal_of, services_of
from vskill_platform.web.render import render
from vskill_platform.web.routing import form, page, query_of


class NotificationsQuery(Asked, frozen=True):
    """Which page."""

    after: str | None = None


async def show(request: Request) -> Response:
    asked = query_of(request, NotificationsQuery)
    services, principal = services_of(request), principal_of(request)
    found = await LIST_NOTIFICATIONS(services, principal, ListNotifications(after=asked.after))
    shown = render(
        request,
        "notifications.html",
        found=found,
        watches=await LIST_WATCHES(services, principal, OwnNotifications()),
        mail=await SHOW_MAIL(services, principal, OwnNotifications()),
        sends_mail=bool(services.settings.smtp_url),
        flash=flash_of(request),
    )
    shown.headers["cache-control"] = "no-store"
    return clear_flash(request, shown)


@acting(PAGE)
async def mark_read(request: Request) -> Response:
    await act_by_form(request, READ_NOTIFICATIONS)
    return see_other(request, PAGE, "All notifications are marked as read.")


@acting(PAGE)
async def set_mail(request: Request) -> Response:
    chosen = await act_by_form(request, SET_MAIL)
    told = f"A code is on its way to {chosen.unconfirmed}." if chosen.unconfirmed else "You get no more mail."
    return see_other(request, PAGE, told)


@acting(PAGE)
async def confirm_mail(request: Request) -> Response:
    chosen = await act_by_form(request, CONFIRM_MAIL)
    return see_other(request, PAGE, f"Mail goes to {chosen.mail} from now on.")


@acting(PAGE)
async def add_watch(request: Request) -> Response:
    await act_by_form(request, ADD_WATCH)
    return see_other(request, await back_of(request, PAGE), "You watch it from now on.")


@acting(PAGE)
async def remove_watch(request: Request) -> Response:
    await act_by_form(request, REMOVE_WATCH)
    return see_other(request, await back_of(request, PAGE), "You do not watch it any more.")


ENDPOINTS = (
    page(
        PAGE,
        show,
        action=LIST_NOTIFICATIONS,
        shows=("notification.settings", "watch.list"),
        query=NotificationsQuery,
    ),
    form(f"{PAGE}/read", mark_read, action=READ_NOTIFICATIONS),
    form(f"{PAGE}/mail", set_mail, action=SET_MAIL),
    form(f"{PAGE}/confirm", confirm_mail, action=CONFIRM_MAIL),
    form(f"{PAGE}/watch", add_watch, action=ADD_WATCH),
    form(f"{PAGE}/unwatch", remove_watch, action=REMOVE_WATCH),
)
