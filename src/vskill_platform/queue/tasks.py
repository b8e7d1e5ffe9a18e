"""Handles a task: claim it, run its kind's function within its budget, write the outcome.

One visible list, `KINDS`, holds every kind of task with its budget and its delays.
"""

from vskill_core.errors import (
    ClaimLost,
    PlatformError,
    StoreUnavailable,
)
from vskill_platform.domain.messages import TaskMessage
from vskill_platform.domain.operation import task as domain
from vskill_platform.domain.operation.task import Task, TaskState
from vskill_platform.external_scan.dispatch import DELAYS_MS, TASK_BUDGET_MS, scan
from vskill_platform.ledger.broker.contract import Message
from vskill_platform.notifications.deliveries import DELIVERY, deliver, tell_again
from vskill_platform.notifications.mail import send_digest, send_mail
from vskill_platform.notifications.telling import TELL
from vskill_platform.queue.keeper import attempt, kept_alive, take_claim
from vskill_platform.stages.repo_check import REPO_CHECK, check_repository
from vskill_platform.stages.rescan import RESCAN, rescan
from vskill_platform.stages.upstreams import SYNC_BUDGET_MS, bring_entry, sync_upstream
from vskill_platform.store.claims import NotClaimed
from vskill_platform.store.external_scans import EXTERNAL_SCAN
from vskill_platform.store.skills.upstreams import UPSTREAM_BRING, UPSTREAM_REMEMBER, UPSTREAM_SYNC
from vskill_platform.store.stored_content import REPAIR
from vskill_platform.store.tasks import HeldTask, TaskEnd, TaskKind, claim_task, read_task
from vskill_platform.store.telling.notifications import DIGEST, MAIL
from vskill_platform.upkeep.repair import repair
from vskill_platform.worker_context import require_env

#: Backoff between failed deliveries: 5 s to 10 h, as the convention for webhooks recommends.
_DELIVERY_DELAYS_MS = (5_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000)

KINDS: tuple[TaskKind, ...] = (
    TaskKind(RESCAN, "judges a live version again by the current rules", rescan),
    TaskKind(DELIVERY, "posts a signed notice to a webhook", deliver, 30_000, _DELIVERY_DELAYS_MS),
    TaskKind(MAIL, "tells one thing by e-mail", send_mail, 60_000, _DELIVERY_DELAYS_MS),
    TaskKind(DIGEST, "mails what an account was told in a day", send_digest, 60_000, _DELIVERY_DELAYS_MS),
    TaskKind(TELL, "tells accounts what could not be told at once", tell_again),
    TaskKind(REPO_CHECK, "looks whether a repository is still there and has moved on", check_repository),
    TaskKind(
        UPSTREAM_SYNC,
        "lists what an upstream has, and asks for what is wanted",
        sync_upstream,
        SYNC_BUDGET_MS,
    ),
    TaskKind(UPSTREAM_BRING, "fetches and submits one skill of an upstream", bring_entry),
    TaskKind(UPSTREAM_REMEMBER, "fetches one skill of an upstream for the memory", bring_entry),
    TaskKind(REPAIR, "brings damaged content back from where it came from", repair),
    TaskKind(EXTERNAL_SCAN, "lets another analyser look at a content", scan, TASK_BUDGET_MS, DELAYS_MS),
)


async def handle_task(message: Message, body: TaskMessage, kinds: tuple[TaskKind, ...] = KINDS) -> str:
    """Handle one message about a task, from claim to settlement. Returns the outcome, for the metrics."""
    kind = next((one for one in kinds if one.name == body.task), None)
    if kind is None:
        await message.dead_letter(f"this version knows no task {body.task!r}")
        return "unknown task"
    async with kept_alive(message) as keeper, require_env("gate").gate.company():
        held = await take_claim(claim_task(body.task, body.id, body.run), _hand_back)
        if isinstance(held, NotClaimed):
            return await settle_unclaimed(message, held)
        keeper.claim = held
        await _work(kind, held)
        return await _settle(message, body)


async def settle_unclaimed(message: Message, refusal: NotClaimed) -> str:
    """Settle a message whose record was not claimed: dead-letter it if exhausted, retry it if due later, or ack."""
    if refusal.exhausted:
        await message.dead_letter(refusal.reason)
        return "exhausted"
    if refusal.again_in_ms is not None:
        await message.retry(refusal.again_in_ms)
        return "not due"
    await message.ack()
    return "over"


async def _work(kind: TaskKind, held: HeldTask) -> None:
    env = require_env("kv")

    async def finish(result: TaskEnd) -> None:
        now, again_at = env.kv.now(), result.again_at

        def end(task: Task) -> Task:
            if again_at is not None:
                return domain.put_off(task, result.outcome, again_at, now)
            return domain.finish(task, result.outcome, now)

        await held.write(end, result.operations)

    async def wait(error: PlatformError) -> None:
        reason, waiting_for, now = str(error), str(error.details.get("host") or error.code), env.kv.now()
        await held.write(lambda task: domain.record_unavailable(task, reason, waiting_for, now))

    async def fail(reason: str, error: Exception | None) -> None:
        now = env.kv.now()
        if error is not None:
            foreign = not isinstance(error, PlatformError)
            env.log.warning("task failed", task=held.task.key, error=repr(error), exc_info=foreign)
        await held.write(lambda task: domain.record_failure(task, reason, kind.delays_ms, now))

    await attempt(
        lambda: kind.run(held.task),
        kind.budget_ms,
        done=finish,
        later=wait,
        failed=fail,
        hand_back=lambda: _hand_back(held),
    )


async def _hand_back(held: HeldTask) -> None:
    try:
        await held.write(
            lambda task: domain.hand_back(task, "its worker stopped", require_env("kv").kv.now())
        )
    except (ClaimLost, StoreUnavailable) as error:
        require_env("log").log.info("task not handed back; its claim will end", reason=str(error))


async def _settle(message: Message, body: TaskMessage) -> str:
    """Read the record again before acking: a task that became active meanwhile needs its message."""
    task, _ = await read_task(body.task, body.id)
    if task is not None and task.run == body.run and task.state.active:
        now = require_env("kv").kv.now()
        await message.retry(max((task.next_attempt_at or now) - now, 0))
        return "again"
    if task is not None and task.run == body.run and task.state is TaskState.FAILED:
        await message.dead_letter(task.outcome)
        return "exhausted"
    await message.ack()
    return "done"
