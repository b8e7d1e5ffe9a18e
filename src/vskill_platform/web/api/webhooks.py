"""Webhooks: where decisions are told to others. For administrators."""

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.wire import Sent, Wire, iso_time
from vskill_platform.notifications.notices import NoticeType
from vskill_platform.notifications.subscriptions import subscribe
from vskill_platform.store.webhooks import Webhook, list_webhooks, remove_webhook
from vskill_platform.web.principal import Guard, principal_of
from vskill_platform.web.responses import json_response
from vskill_platform.web.routing import body_of, delete, get, post

WEBHOOKS = "/api/v1/webhooks"

#: Control characters are named one by one: not every reader of the document counts the same ones as space.
_ADDRESS = r"^https?://[^\x00-\x20\x7f-\xa0\s/?#@]+([/?][!-~]*)?$"


class WebhookView(Wire, frozen=True):
    """Who hears of what. The secret is shown once, when it is made."""

    id: str
    url: str
    events: tuple[str, ...]
    created_at: str
    created_by: str


class WebhooksAnswer(Wire, frozen=True):
    """All of them, oldest first."""

    webhooks: tuple[WebhookView, ...]


class WebhookBody(Sent, frozen=True):
    """An address, and what it wants to hear of."""

    url: Annotated[str, msgspec.Meta(pattern=_ADDRESS, max_length=2048)]
    events: Annotated[tuple[NoticeType, ...], msgspec.Meta(min_length=1, max_length=10)]


class NewWebhook(Wire, frozen=True):
    """The webhook, with the secret that signs what it is sent; it is not shown again."""

    webhook: WebhookView
    secret: str


async def list_view(_request: Request) -> Response:
    return json_response(WebhooksAnswer(tuple(map(_view, await list_webhooks()))))


async def add_view(request: Request) -> Response:
    body = await body_of(request, WebhookBody)
    events = (event.value for event in body.events)
    hook = await subscribe(body.url, events, by=principal_of(request).actor)
    return json_response(NewWebhook(_view(hook), hook.secret), 201)


async def remove_view(request: Request) -> Response:
    await remove_webhook(request.path_params["webhook_id"], by=principal_of(request).actor)
    return Response(None, 204)


def _view(hook: Webhook) -> WebhookView:
    return WebhookView(hook.id, hook.url, hook.events, iso_time(hook.created_at), hook.created_by)


ENDPOINTS = (
    get(
        WEBHOOKS,
        list_view,
        guard=Guard.ADMIN,
        scope="admin",
        answer=WebhooksAnswer,
        tag="webhooks",
        summary="List webhooks",
    ),
    post(
        WEBHOOKS,
        add_view,
        guard=Guard.ADMIN,
        scope="admin",
        body=WebhookBody,
        answer=NewWebhook,
        status=201,
        tag="webhooks",
        summary="Add a webhook",
    ),
    delete(
        f"{WEBHOOKS}/{{webhook_id}}",
        remove_view,
        guard=Guard.ADMIN,
        scope="admin",
        status=204,
        media="",
        problems=(404,),
        tag="webhooks",
        summary="Remove a webhook",
    ),
)
