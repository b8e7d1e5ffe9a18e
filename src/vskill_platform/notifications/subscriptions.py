"""Webhooks as people add and remove them, whichever door they come through: the address is checked, the secret is made
here, and the audit says who did it."""

from collections.abc import Iterable

from vskill_platform.notifications.post import check_url
from vskill_platform.notifications.signature import new_secret
from vskill_platform.store.audit import note
from vskill_platform.store.webhooks import Webhook, add_webhook, remove_webhook

_REASON = "asked for it"


async def subscribe(url: str, events: Iterable[str], *, by: str) -> Webhook:
    """Deliver these events to this address from now on; the answer is the only place that shows the secret."""
    wanted = tuple(dict.fromkeys(events))
    hook = await add_webhook(check_url(url), new_secret(), wanted, by=by)
    await note("webhook added", hook.id, by=by, reason=_REASON, details={"url": url})
    return hook


async def unsubscribe(webhook_id: str, *, by: str) -> None:
    """Deliver nothing more to it; NotFound if there is none."""
    await remove_webhook(webhook_id)
    await note("webhook removed", webhook_id, by=by, reason=_REASON)
