"""A forge's word that somebody pushed: checked, and then only a hint to check the repository now. The schedule stays
the truth, so a delivery that is lost, repeated or late harms nothing."""

from collections.abc import Mapping

import msgspec

from vskill_core.errors import InvalidInput, PlatformError
from vskill_core.identity import parse_place
from vskill_platform.domain.skills.forges import Forge, delivery_id, forge_of, is_signed, read_push
from vskill_platform.notifications.signature import new_secret
from vskill_platform.stages.repo_check import ask_for_check
from vskill_platform.store.skills.follows import read_follow
from vskill_platform.store.skills.push_hooks import PushDelivery, PushHook, keep_delivery, read_hook
from vskill_platform.worker_context import require_env

#: Forges send up to some megabytes for a push of many commits.
MOST_BODY_BYTES = 4 * 1024 * 1024
UNSIGNED = "The delivery is not signed with the secret of this webhook."


class Received(msgspec.Struct, frozen=True):
    """What becomes of a delivery."""

    outcome: str
    reason: str
    #: What is still to be noted, once the sender has its answer: who may not know whether there is such a webhook must
    #: not learn it from the time either.
    noted: tuple[str, PushDelivery] | None = None


async def receive(hook_id: str, headers: Mapping[str, str], body: bytes) -> Received:
    """Check a delivery, and ask for a check of its repository."""
    hook, forge, now = await read_hook(hook_id), forge_of(headers), require_env("kv").kv.now()
    # Compare even where there is no such webhook, so that time does not tell.
    secret = hook.secret if hook is not None else new_secret()
    signed = forge is not None and is_signed(forge, secret, headers, body)
    name = forge.name if forge is not None else "unknown"
    if hook is None or forge is None or not signed:
        require_env("metrics").metrics.push_deliveries.labels(name, "unsigned").inc()
        lost = PushDelivery("", now, name, "refused", UNSIGNED)
        return Received("unsigned", UNSIGNED, None if hook is None else (hook.id, lost))
    sent = delivery_id(forge, headers) or f"{now}"
    if any(one.id == sent for one in hook.deliveries):
        outcome, reason = "repeated", "It was delivered before."
    else:
        outcome, reason = await _look_at(hook, forge, headers, body)
        await keep_delivery(hook.id, PushDelivery(sent, now, name, outcome, reason))
    require_env("metrics").metrics.push_deliveries.labels(name, outcome).inc()
    return Received(outcome, reason)


async def _look_at(hook: PushHook, forge: Forge, headers: Mapping[str, str], body: bytes) -> tuple[str, str]:
    """What becomes of a signed delivery, and why."""
    event = headers[forge.event][:100]
    if event != forge.push:
        return "ignored", "The forge tries it out." if event == forge.ping else f"{event} is no push."
    try:
        push = read_push(forge, body)
        repository = parse_place(push.repository)
    except InvalidInput as error:
        return "refused", error.in_words
    if repository.repo_key != hook.identity.repo_key:
        return "refused", f"It is about {repository.url}, and this webhook is for {hook.identity.url}."
    follow, _ = await read_follow(hook.identity)
    is_other = follow is not None and follow.branch and follow.branch not in push.branches
    if follow is None or is_other or not push.branches:
        told = ", ".join(push.branches)[:200] or "no branch"
        return "ignored", f"It is about {told}, which is not followed."
    await ask_for_check(hook.identity)
    return "checked", ""


async def note(received: Received) -> None:
    """Note a delivery that is not signed. What cannot be written is only logged: its sender has its answer."""
    try:
        if received.noted is not None:
            await keep_delivery(*received.noted)
    except PlatformError as error:
        require_env("log").log.warning("delivery not noted", reason=error.message)


def require_taken(received: Received) -> None:
    """Raise for what was refused."""
    if received.outcome == "unsigned":
        fix = "give the forge the address and the secret that the page of the followed repository shows once"
        raise InvalidInput(received.reason, field="signature", fix=fix)
    if received.outcome == "refused":
        raise InvalidInput(
            received.reason, field="body", fix="see the last deliveries on the repository's page"
        )
