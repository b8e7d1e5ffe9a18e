"""Subscribing a webhook, by page, API or command: the URL is checked and the secret is made here, so that the store
keeps only webhooks that can be delivered to."""

from collections.abc import Iterable

from vskill_platform.notifications.post import check_receiver
from vskill_platform.notifications.signature import new_secret
from vskill_platform.store.telling.webhooks import Webhook, add_webhook
from vskill_platform.worker_context import require_env


async def subscribe(url: str, events: Iterable[str], *, by: str) -> Webhook:
    """Deliver these events to this address from now on; only this result shows the secret."""
    checked = await check_receiver(url, require_env("settings").settings.allowed_private_hosts)
    return await add_webhook(checked, new_secret(), tuple(dict.fromkeys(events)), by=by)
