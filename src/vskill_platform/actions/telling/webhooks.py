"""Webhooks: send decisions to other systems."""

from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, NoParameters, Wire
from vskill_core.errors import NotFound
from vskill_platform.actions.action import action
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.notifications.notices import NoticeType
from vskill_platform.notifications.subscriptions import subscribe
from vskill_platform.store.telling.webhooks import list_webhooks, remove_webhook

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


class NewWebhook(Wire, frozen=True):
    """The webhook, with the secret that signs what it is sent; it is not shown again."""

    webhook: WebhookView
    secret: str


class AddWebhook(ActionRequest, frozen=True, kw_only=True):
    """An address, and what it wants to hear of."""

    #: the address that deliveries are posted to
    url: Annotated[str, msgspec.Meta(pattern=_ADDRESS, max_length=2048)]
    #: an event to send
    events: Annotated[tuple[NoticeType, ...], msgspec.Meta(min_length=1, max_length=len(NoticeType))]


class RemoveWebhook(ActionRequest, frozen=True, kw_only=True):
    """One webhook."""

    webhook_id: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


async def list_all(_request: NoParameters) -> WebhooksAnswer:
    return WebhooksAnswer(tuple(WebhookView.of(hook) for hook in await list_webhooks()))


async def add(actor: Principal, request: AddWebhook) -> NewWebhook:
    hook = await subscribe(request.url, (event.value for event in request.events), by=actor.actor)
    return NewWebhook(WebhookView.of(hook), hook.secret)


async def remove(actor: Principal, request: RemoveWebhook) -> None:
    await remove_webhook(request.webhook_id, by=actor.actor)


LIST_WEBHOOKS = action(
    list_all,
    "webhook.list",
    WEBHOOKS,
    right=Right.ADMIN,
    summary="List webhooks",
)
ADD_WEBHOOK = action(
    add,
    "webhook.add",
    WEBHOOKS,
    right=Right.ADMIN,
    status=201,
    summary="Add a webhook",
    about="The answer shows the secret that signs deliveries, only this once.",
)
REMOVE_WEBHOOK = action(
    remove,
    "webhook.remove",
    f"{WEBHOOKS}/{{webhook_id}}",
    method="DELETE",
    right=Right.ADMIN,
    errors=(NotFound,),
    status=204,
    summary="Remove a webhook",
)
