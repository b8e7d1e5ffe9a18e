"""Webhooks: who wants to hear of what, at `webhook:{id}`."""

import msgspec

from vskill_platform.domain import keys
from vskill_platform.domain.errors import InvalidInput, NotFound
from vskill_platform.kv.contract import iterate_pages
from vskill_platform.kv.entries import ABSENT
from vskill_platform.store.records import Skips, decode
from vskill_platform.submission_store import persist
from vskill_platform.worker_context import require_env

MOST_WEBHOOKS = 100


class Webhook(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `webhook:{id}`. The secret signs deliveries, so it is kept as it is and never shown again."""

    id: str
    url: str
    secret: str
    events: tuple[str, ...]
    created_at: int
    created_by: str = ""


async def add_webhook(url: str, secret: str, events: tuple[str, ...], *, by: str) -> Webhook:
    """Deliver these events to this address from now on."""
    env = require_env("kv")
    if not events:
        raise InvalidInput("No event was chosen.", field="events", fix="name at least one")
    if len(await list_webhooks()) >= MOST_WEBHOOKS:
        raise InvalidInput(
            f"There are {MOST_WEBHOOKS} webhooks already.", field="url", fix="remove one first"
        )
    hook = Webhook(env.clock.new_id(), url, secret, events, env.kv.now(), by)
    await persist(lambda: env.kv.put(keys.webhook(hook.id), msgspec.json.encode(hook), if_version=ABSENT))
    return hook


async def list_webhooks() -> list[Webhook]:
    """All of them, oldest first."""
    env = require_env("kv")
    skips = Skips("list_webhooks")
    found: list[Webhook] = []
    async for page in iterate_pages(env.kv, keys.WEBHOOK):
        for error in page.failed.values():
            raise error
        found += [hook for entry in page.items if (hook := skips.decode(entry, Webhook)) is not None]
    skips.report(env)
    return found


async def get_webhook(webhook_id: str) -> Webhook:
    """The record, or NotFound."""
    entry = await require_env("kv").kv.get(keys.webhook(webhook_id))
    if entry is None:
        raise NotFound(f"there is no webhook {webhook_id}", webhook=webhook_id)
    return decode(entry, Webhook)


async def remove_webhook(webhook_id: str) -> None:
    """Deliver nothing more to it; NotFound if there is none."""
    hook = await get_webhook(webhook_id)
    await persist(lambda: require_env("kv").kv.delete(keys.webhook(hook.id)))
