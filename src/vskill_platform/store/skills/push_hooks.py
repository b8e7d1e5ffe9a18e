"""Push webhooks, at `push_hook:{id}`: the secret that a forge signs with, and the last deliveries. A follow names its
own, so both end together."""

import msgspec

from vskill_core.identity import Identity
from vskill_platform.domain import keys
from vskill_platform.ledger.kv.entries import ABSENT, Delete, Operation, Put
from vskill_platform.records import persist, read_record
from vskill_platform.store.people.audit import AuditNote, commit_audited
from vskill_platform.store.skills.follows import follow_to_change
from vskill_platform.worker_context import require_env

#: Deliveries that are kept, and so known again.
MOST_DELIVERIES = 20
#: Of deliveries with a wrong signature only one in this time is kept, and one at all.
UNSIGNED_EVERY_MS = 60_000


class PushDelivery(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a forge sent, and what became of it."""

    #: Of the forge; empty where it sends none, or its signature is wrong.
    id: str
    at: int
    forge: str
    #: `checked`, `ignored` or `refused`
    outcome: str
    #: Why; empty where a check was asked for.
    reason: str = ""


class PushHook(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record. The secret checks signatures, so it is kept as it is and never shown again."""

    id: str
    identity: Identity
    secret: str
    #: The latest first.
    deliveries: tuple[PushDelivery, ...] = ()


async def read_hook(hook_id: str) -> PushHook | None:
    """The record; None for an id that nothing has, also an empty one."""
    found, _ = await read_record(keys.push_hook(hook_id or "none"), PushHook)
    return found


async def make_hook(identity: Identity, secret: str, *, by: str, reason: str) -> PushHook:
    """A webhook for a followed repository, instead of the one that it has."""
    hook = PushHook(require_env("clock").clock.new_id(), identity, secret)

    async def make() -> tuple[PushHook, list[Operation]]:
        follow, version = await follow_to_change(identity)
        changed = msgspec.structs.replace(follow, hook=hook.id)
        earlier = [Delete(keys.push_hook(follow.hook))] if follow.hook else []
        put = Put(keys.push_hook(hook.id), msgspec.json.encode(hook), ABSENT)
        return hook, [put, Put(changed.key, msgspec.json.encode(changed), version), *earlier]

    return await commit_audited(AuditNote("push webhook made", identity.url, by, reason), make)


async def keep_delivery(hook_id: str, delivery: PushDelivery) -> None:
    """Note it, unless the webhook is gone. What is not signed takes the place of the last such one."""

    async def write() -> None:
        key = keys.push_hook(hook_id)
        hook, version = await read_record(key, PushHook)
        if hook is None:
            return
        kept = hook.deliveries
        if not delivery.id:
            kept = tuple(one for one in kept if one.id)
            last = next((one for one in hook.deliveries if not one.id), None)
            if last is not None and delivery.at < last.at + UNSIGNED_EVERY_MS:
                return
        changed = msgspec.structs.replace(hook, deliveries=(delivery, *kept)[:MOST_DELIVERIES])
        await require_env("kv").kv.commit([Put(key, msgspec.json.encode(changed), version)])

    await persist(write)
