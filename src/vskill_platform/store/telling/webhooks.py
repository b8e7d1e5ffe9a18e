"""Webhooks: who wants to hear of what, at `webhook:{id}`. Adding and removing one is audited by the commit that does
it."""

import msgspec

from vskill_core.errors import InvalidInput, NotFound
from vskill_platform.domain import keys
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.ledger.kv.entries import ABSENT, Delete, Entry, Put
from vskill_platform.records import Skips, decode, persist
from vskill_platform.store.people.audit import record_audit, was_audited
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
    """Deliver these events to this address from now on."""
    env = require_env("kv")
    if not events:
        raise InvalidInput("No event was chosen.", field="events", fix="choose at least one")
    if len(await list_webhooks()) >= MOST_WEBHOOKS:
        raise InvalidInput(
            f"There are {MOST_WEBHOOKS} webhooks already.", field="url", fix="remove one first"
        )
    hook = Webhook(env.clock.new_id(), url, secret, events, env.kv.now(), by)
    entry_id = env.clock.new_id()

    async def write() -> Webhook:
        if not await was_audited(entry_id):
            audit = record_audit(
                "webhook added", hook.id, by=by, reason=_REASON, details={"url": url}, entry_id=entry_id
            )
            await env.kv.commit([Put(keys.webhook(hook.id), msgspec.json.encode(hook), ABSENT), audit])
        return hook

    return await persist(write)


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
    return decode(await _entry(webhook_id), Webhook)


async def remove_webhook(webhook_id: str, *, by: str) -> None:
    """Deliver nothing more to it; NotFound if there is none."""
    env = require_env("kv")
    entry_id = env.clock.new_id()

    async def write() -> None:
        if await was_audited(entry_id):
            return
        found = await _entry(webhook_id)
        audit = record_audit("webhook removed", webhook_id, by=by, reason=_REASON, entry_id=entry_id)
        await env.kv.commit([Delete(found.key, found.version), audit])

    await persist(write)


async def _entry(webhook_id: str) -> Entry:
    entry = await require_env("kv").kv.get(keys.webhook(webhook_id))
    if entry is None:
        raise NotFound(f"There is no webhook {webhook_id}.", webhook=webhook_id)
    return entry
