"""Webhooks: who wants to hear of what, at `webhook:{id}`. Adding and removing one is audited by the commit that does
it."""

import msgspec

from vskill_core.errors import InvalidInput, NotFound
from vskill_platform.domain import keys
from vskill_platform.ledger.kv.entries import ABSENT, Delete, Entry, Operation, Put
from vskill_platform.records import decode, decode_readable, iter_entries
from vskill_platform.store.people.audit import AuditNote, commit_audited
from vskill_platform.worker_context import require_env

MOST_WEBHOOKS = 100
_REASON = "asked for it"


class Webhook(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `webhook:{id}`. The secret signs deliveries, so it is kept as it is and never shown again."""

    id: str
    url: str
    secret: str
    events: tuple[str, ...]
    created_at: int
    created_by: str = ""


async def add_webhook(url: str, secret: str, events: tuple[str, ...], *, by: str) -> Webhook:
    env = require_env("kv")
    if not events:
        raise InvalidInput("No event was chosen.", field="events", fix="choose at least one")
    if len(await list_webhooks()) >= MOST_WEBHOOKS:
        raise InvalidInput(
            f"There are {MOST_WEBHOOKS} webhooks already.", field="url", fix="remove one first"
        )
    hook = Webhook(env.clock.new_id(), url, secret, events, env.kv.now(), by)

    async def add() -> tuple[Webhook, list[Operation]]:
        return hook, [Put(keys.webhook(hook.id), msgspec.json.encode(hook), ABSENT)]

    return await commit_audited(AuditNote("webhook added", hook.id, by, _REASON, {"url": url}), add)


async def list_webhooks() -> list[Webhook]:
    return decode_readable(
        [entry async for entry in iter_entries(keys.webhook.prefix)], Webhook, "list_webhooks"
    )


async def get_webhook(webhook_id: str) -> Webhook:
    return decode(await _entry(webhook_id), Webhook)


async def remove_webhook(webhook_id: str, *, by: str) -> None:
    """Deliver nothing more to it; NotFound if there is none."""

    async def remove() -> tuple[None, list[Operation]]:
        entry = await _entry(webhook_id)
        return None, [Delete(entry.key, entry.version)]

    await commit_audited(AuditNote("webhook removed", webhook_id, by, _REASON), remove)


async def _entry(webhook_id: str) -> Entry:
    entry = await require_env("kv").kv.get(keys.webhook(webhook_id))
    if entry is None:
        raise NotFound(f"There is no webhook {webhook_id}.", webhook=webhook_id)
    return entry
