"""The queue consumer: takes batches of messages and works each submission under a claim and a time budget.

`handle_submission_queue` is one batch. `run_consumer` is the loop around it: up to `max_concurrency` batches of
up to `max_batch_size` at once, each a task in a fresh, empty context, so nothing that one sets is seen by
another. A message only says which record to look at; whatever happens here, the record tells the next worker
where to go on.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import Context

import msgspec
import structlog

from vskill_core.errors import (
    BlobUnavailable,
    ClaimLost,
    PlatformError,
    QueueUnavailable,
    Shortage,
    SourceUnavailable,
    StoreUnavailable,
)
from vskill_platform.domain.messages import SubmissionMessage, TaskMessage, decode_body
from vskill_platform.domain.submissions.attempts import due_at, exhaustion, is_suspect
from vskill_platform.ledger.broker.contract import Batch, Message
from vskill_platform.machine.shortages import shortage_of
from vskill_platform.pipeline import process_submission
from vskill_platform.queue.control import current_pause
from vskill_platform.queue.keeper import attempt, kept_alive, take_claim
from vskill_platform.queue.tasks import handle_task, settle_unclaimed
from vskill_platform.store.claims import HeldClaim, NotClaimed, claim_submission
from vskill_platform.store.operation.workers import give_sign
from vskill_platform.submission_store import read_submission
from vskill_platform.tiers.pool import SCANNER
from vskill_platform.upkeep.work_needs import find_lack, find_scanner_lack
from vskill_platform.worker_context import Env, require_env, run_with_worker_env

#: Handles a batch. Messages that it leaves unsettled are acked after it, or retried if it raises.
Handler = Callable[[Batch, Env], Awaitable[None]]

#: How long one receive waits; a pause and a stop are noticed at least this often.
RECEIVE_WAIT_MS = 1_000
#: Delay after an unexpected error.
RETRY_AFTER_ERROR_MS = 5_000


async def handle_submission_queue(batch: Batch, env: Env) -> None:
    """Process every message of a batch independently: one failure does not affect the others."""

    async def handle() -> None:
        await asyncio.gather(*(_handle_settled(message) for message in batch.messages))

    await run_with_worker_env(env, handle)


async def _handle_settled(message: Message) -> None:
    """Handle one message; on an error retry it, without affecting the others. The record says where to resume."""
    env = require_env("broker")
    with structlog.contextvars.bound_contextvars(message_key=message.key):
        try:
            outcome = await _handle(message)
            env.metrics.messages.labels(outcome).inc()
        except ClaimLost as error:
            env.metrics.messages.labels("claim lost").inc()
            env.log.info("claim lost; looking at the record again", reason=str(error))
            await _retry_or_leave(message, 0)
        except Exception as error:
            env.metrics.messages.labels("error").inc()
            env.log.error(  # noqa: TRY400 - an error of ours needs no traceback
                "message failed", error=repr(error), exc_info=not isinstance(error, PlatformError)
            )
            await _retry_or_leave(message, RETRY_AFTER_ERROR_MS)


async def _retry_or_leave(message: Message, delay_ms: int) -> None:
    """Return the message to the queue; if this fails too, its lease expires and it is delivered again."""
    try:
        await message.retry(delay_ms)
    except PlatformError as error:
        require_env("log").log.warning("message not settled; its lease will end", error=str(error))


async def _handle(message: Message) -> str:
    """Read the record, claim it, work on it, settle the message. Returns the outcome, for the metrics."""
    try:
        body = decode_body(message.body)
    except msgspec.DecodeError as error:
        await message.dead_letter(f"not a message of this platform: {error}")
        return "malformed"
    if isinstance(body, TaskMessage):
        return await handle_task(message, body)
    with structlog.contextvars.bound_contextvars(submission_id=body.submission_id, run=body.run):
        return await _handle_submission(message, body)


async def _handle_submission(message: Message, body: SubmissionMessage) -> str:
    seen = await read_submission(body.submission_id)
    gate = require_env("gate").gate
    # Run alone if workers have died over this submission.
    place = gate.alone() if seen is not None and is_suspect(seen[0]) else gate.company()
    async with kept_alive(message) as keeper, place:
        claim = await take_claim(claim_submission(body.submission_id, body.run, seen), _hand_back)
        if isinstance(claim, NotClaimed):
            return await settle_unclaimed(message, claim)
        keeper.claim = claim
        span = require_env("tracing").tracing.span
        with span("submission", submission_id=body.submission_id, run=body.run):
            await _work(claim)
        return await _settle_worked(message, claim)


async def _work(claim: HeldClaim) -> None:
    env = require_env("kv")

    async def lacked_nothing(_: object) -> None:
        env.shortages.last = None

    await attempt(
        lambda: process_submission(claim),
        env.settings.submission_budget_ms,
        done=lacked_nothing,
        later=lambda error: _attempt_later(claim, error),
        failed=lambda reason, error: _attempt_failed(claim, reason, error),
        hand_back=lambda: _hand_back(claim),
    )


async def _attempt_later(claim: HeldClaim, error: PlatformError) -> None:
    env = require_env("metrics")
    env.metrics.attempts.labels("unavailable").inc()
    if isinstance(error, Shortage) or not isinstance(error, SourceUnavailable):
        if (
            isinstance(error, (Shortage, StoreUnavailable, BlobUnavailable))
            and "passing" not in error.details
        ):
            env.shortages.meet(error, env.kv.now())
        env.log.warning(
            "attempt waits for the registry itself", waiting_for=_dependency(error), error=str(error)
        )
    await claim.unavailable(_dependency(error), str(error))


async def _attempt_failed(claim: HeldClaim, reason: str, error: Exception | None) -> None:
    env = require_env("metrics")
    if error is not None:
        env.log.warning("attempt failed", error=repr(error), exc_info=not isinstance(error, PlatformError))
    env.metrics.attempts.labels("failed").inc()
    await claim.failed(reason)


def _dependency(error: PlatformError) -> str:
    names = {SourceUnavailable: "its source", BlobUnavailable: "the blob store"}
    return str(error.details.get("host") or names.get(type(error), "the record store"))


async def _hand_back(claim: HeldClaim) -> None:
    with suppress(ClaimLost):
        await claim.hand_back("its worker is stopping")


async def _settle_worked(message: Message, claim: HeldClaim) -> str:
    """Read the record again before acking: a submission that became active meanwhile needs its message."""
    ended = claim.record
    reason = exhaustion(ended)
    if reason is not None:
        await message.dead_letter(reason)
        return "exhausted"
    if ended.state.terminal:
        # Only a new run can follow, which has its own message.
        await message.ack()
        return "done"
    found = await read_submission(ended.id)
    if found is not None and found[0].run == ended.run and found[0].state.moving:
        now = require_env("kv").kv.now()
        await message.retry(max((due_at(found[0]) or now) - now, 0))
        return "again"
    await message.ack()
    return "done"


# The loop.


async def run_consumer(
    env: Env, stop: asyncio.Event, handler: Handler = handle_submission_queue, *, tries_machine: bool = False
) -> None:
    """Receive and handle batches until `stop` is set; then let running ones finish, or hand them back. With
    `tries_machine`, check what this machine lacks before a submission needs it."""
    await _Consumer(env, stop, handler, tries_machine=tries_machine).run()


class _Consumer:
    """The running batches of one process."""

    def __init__(self, env: Env, stop: asyncio.Event, handler: Handler, *, tries_machine: bool) -> None:
        self._env = env
        self._stop = stop
        self._handler = handler
        self._tries_machine = tries_machine
        self._running: set[asyncio.Task[None]] = set()
        self._slot_free = asyncio.Event()
        #: How long the last sign of life took to write.
        self._write_ms = 0

    async def run(self) -> None:
        beside = [asyncio.create_task(self._give_signs(), context=Context())]
        if self._tries_machine:
            beside.append(asyncio.create_task(self._try_what_lacked(), context=Context()))
        try:
            while not self._stop.is_set():
                for batch in await self._receive():
                    await self._start(batch)
        finally:
            await self._finish()
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)

    async def _give_signs(self) -> None:
        """Write signs of life until cancelled, then that this worker stopped."""
        try:
            while True:
                await self._sign(stopped=False)
                await asyncio.sleep(self._env.pace.sign_every_s)
        finally:
            await self._sign(stopped=True)

    async def _try_what_lacked(self) -> None:
        """Try the scanner at the start, and scanner or content again while the last attempt failed for lack of it: the
        next attempt, which would tell, may be many minutes away."""
        env, shortages, tried = self._env, self._env.shortages, False
        while True:
            last = shortages.last
            if not tried or (isinstance(last, Shortage) and last.text("host") == SCANNER):
                tried, lack = True, await self._try(find_scanner_lack(env), None)
                if lack is not None:
                    shortages.meet(lack, env.kv.now())
                elif shortages.last is last:
                    shortages.last = None
            elif isinstance(last, BlobUnavailable):
                with suppress(PlatformError):
                    await env.blobs.check()
                    if shortages.last is last:
                        shortages.last = None
            await asyncio.sleep(env.pace.sign_every_s)

    async def _sign(self, *, stopped: bool) -> None:
        """Write one sign of life, with how long the last one took. A slow store gets until the next one is due, or
        less where the worker stops."""
        env = self._env
        within_s = env.pace.ready_within_s if stopped else max(env.pace.sign_every_s, env.pace.ready_within_s)
        tried = await self._try(find_lack(), within_s) if self._tries_machine else None
        lack = tried or env.shortages.lacked_lately(env.kv.now())
        lacks = lack.public_message if lack else ""
        began = env.clock.monotonic()
        try:
            async with asyncio.timeout(within_s):
                await run_with_worker_env(
                    env, lambda: give_sign(stopped=stopped, write_ms=self._write_ms, lacks=lacks)
                )
        except (PlatformError, TimeoutError) as error:
            env.log.warning("sign of life not written", error=str(error) or "no answer in time")
        self._write_ms = int((env.clock.monotonic() - began) * 1000)

    async def _try(self, need: Awaitable[Shortage | None], within_s: float | None) -> Shortage | None:
        """What is lacking. An error here must not end the signs of life."""
        try:
            async with asyncio.timeout(within_s):
                return await need
        except Exception as error:  # noqa: BLE001 - whatever it is, the worker goes on
            self._env.log.warning("what work needs cannot be tried", error=repr(error))
            return shortage_of(error)

    async def _receive(self) -> tuple[Batch, ...]:
        """Batches for all free slots at once, or none after a short wait, so that a stop is noticed soon."""
        settings = self._env.settings
        try:
            free = settings.max_concurrency - len(self._running)
            if free <= 0:
                self._slot_free.clear()
                async with asyncio.timeout(RECEIVE_WAIT_MS / 1000):
                    await self._slot_free.wait()
                return ()
            if await run_with_worker_env(self._env, current_pause) is not None:
                await asyncio.sleep(self._env.pace.pause_after_error_s)
                return ()
            return await self._env.broker.receive(settings.max_batch_size, RECEIVE_WAIT_MS, free)
        except TimeoutError:
            return ()
        except PlatformError as error:
            if isinstance(error, StoreUnavailable) and not isinstance(error, QueueUnavailable):
                self._env.shortages.store_failed_at = self._env.kv.now()
            self._env.log.error("cannot receive", error=str(error), code=error.code)  # noqa: TRY400 - as above
            await asyncio.sleep(self._env.pace.pause_after_error_s)
            return ()

    async def _start(self, batch: Batch) -> None:
        if self._stop.is_set():
            await self._settle_quietly(batch.hand_back())
            return
        task = asyncio.create_task(self._run_batch(batch), context=Context())
        self._running.add(task)
        self._env.metrics.batch_in_flight.set(len(self._running))
        task.add_done_callback(self._on_task_end)

    def _on_task_end(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._env.metrics.batch_in_flight.set(len(self._running))
        self._slot_free.set()

    async def _run_batch(self, batch: Batch) -> None:
        """Run the handler; then ack what it left unsettled, or retry that if it raised."""
        try:
            await self._handler(batch, self._env)
        except asyncio.CancelledError:
            await self._settle_quietly(batch.hand_back())
            raise
        except Exception as error:
            self._env.log.exception("batch failed", error=repr(error))
            await self._settle_quietly(batch.retry_all(RETRY_AFTER_ERROR_MS))
        else:
            await self._settle_quietly(batch.ack_all())

    async def _settle_quietly(self, settling: Awaitable[None]) -> None:
        try:
            await settling
        except PlatformError as error:
            self._env.log.warning("batch not settled; its leases will end", error=str(error))

    async def _finish(self) -> None:
        if not self._running:
            return
        running = tuple(self._running)
        _, late = await asyncio.wait(running, timeout=self._env.settings.shutdown_grace_ms / 1000)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
