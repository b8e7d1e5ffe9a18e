"""Claims: how a worker takes a submission, keeps it, and writes the outcome.

One `HeldClaim` per job owns the record's current version and serialises renewals and transitions. After a conflict or
an unknown outcome it reads again. If its own token is there, it still holds the claim, and applies its change to the
new version, keeping fields that others wrote. Otherwise the claim is lost.
"""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from vskill_core.errors import ClaimLost, Conflict, StoreUnavailable
from vskill_platform import submission_store
from vskill_platform.domain.submissions import attempts
from vskill_platform.domain.submissions import submission as domain
from vskill_platform.domain.submissions.attempts import CLAIM_MS, Owed
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Step, Submission
from vskill_platform.ledger.kv.entries import Operation, Put
from vskill_platform.machine.shortages import MACHINE
from vskill_platform.records import PAUSE_MS, note_store_failure, persist
from vskill_platform.worker_context import require_env

#: The reason for repeating work whose claim expired before it ended.
RAN_OUT = "its claim ran out, as when this machine slept"
#: The part of a claim that is left to write down that the store refuses another write.
LEFT_TO_GIVE_UP_MS = CLAIM_MS // 2


class NotClaimed(msgspec.Struct, frozen=True):
    """Why there is nothing to do now."""

    reason: str
    #: When to look again; None: this run needs no worker any more.
    again_in_ms: int | None = None
    #: The run just ended because its worker died too often: its message is a dead letter.
    exhausted: bool = False


async def claim_submission(
    submission_id: str, run: int, seen: tuple[Submission, int] | None = None
) -> "HeldClaim | NotClaimed":
    """Claim this run of a submission, if it is due and no live worker holds it.

    `seen` is the record as it was a moment ago: a claim needs no further read, a refusal is based on a fresh one.
    Each try has its own token: one with an unknown outcome may have succeeded, and another worker may have taken over
    since.
    """
    env = require_env("kv")
    tried: list[str] = []
    if seen is not None and _refusal(seen[0], run) is None:
        try:
            outcome = await _claim(*seen, tried)
        except (Conflict, StoreUnavailable):
            outcome = await persist(lambda: _try_claim(submission_id, run, tried))
    else:
        outcome = await persist(lambda: _try_claim(submission_id, run, tried))
    label = "claimed" if isinstance(outcome, HeldClaim) else "refused"
    env.metrics.claims.labels(label).inc()
    return outcome


async def _try_claim(submission_id: str, run: int, tried: list[str]) -> "HeldClaim | NotClaimed":
    found = await submission_store.read_submission(submission_id)
    if found is None:
        return NotClaimed("there is no such submission")
    record, version = found
    if record.claim is not None and record.claim.token in tried:
        return HeldClaim(record, version, record.claim.token)
    return _refusal(record, run) or await _claim(record, version, tried)


async def _claim(record: Submission, version: int, tried: list[str]) -> "HeldClaim | NotClaimed":
    env = require_env("kv")
    token = env.clock.new_id()
    tried.append(token)
    # One id for the step that says that a worker died, one for the step that begins the attempt.
    ids = (f"{token}-0", f"{token}-1")
    claimed = attempts.claim(
        record,
        token=token,
        worker=env.worker_id,
        now=env.kv.now(),
        event_ids=ids,
        died=not store_failed_under(record),
    )
    stored, operations = submission_store.stored_form(submission_store.RecordChange(claimed), version, token)
    version = await submission_store.commit_change(operations, record, stored)
    if stored.held_by(token):
        return HeldClaim(stored, version, token)
    return NotClaimed(claimed.history[-1].reason, exhausted=True)


def store_failed_under(record: Owed) -> bool:
    """Whether the store failed for this process since the claim was last renewed: then its worker could not renew it
    either, and need not have died."""
    claim, failed_at = record.claim, require_env("kv").shortages.store_failed_at
    return claim is not None and failed_at >= claim.until - CLAIM_MS


def _refusal(record: Submission, run: int) -> NotClaimed | None:
    if record.run > run:
        return NotClaimed(f"run {run} is over; run {record.run} has its own message")
    if not record.state.active:
        # Repeated here, because the first settlement may have been lost.
        reason = attempts.exhaustion(record)
        return NotClaimed(reason or f"it is {record.state}", exhausted=reason is not None)
    now = require_env("kv").kv.now()
    if not attempts.claimable(record, now):
        if record.state is State.COOLDOWN:
            return NotClaimed("it waits by a rule of the policy; recovery sends it when it is due")
        return NotClaimed("it is held or not due yet", again_in_ms=(attempts.due_at(record) or now) - now)
    return None


#: Builds a change on the record as it is now; called again after a conflict.
Build = Callable[[Submission], Awaitable[submission_store.RecordChange]]


class Passed(msgspec.Struct, frozen=True):
    """A state that a run only passes through: it appears in the history, and is written together with the next one."""

    to: State
    reason: str
    changes: dict[str, object]


class HeldClaim:
    """A worker's hold on one submission. Every write goes through it, one at a time."""

    def __init__(self, record: Submission, version: int, token: str) -> None:
        self.record = record
        self._version = version
        self._token = token
        self._run = record.run
        self._lock = asyncio.Lock()
        self._learnt: dict[str, object] = {}
        #: Our own write gave up the claim: the run ended, or went back to the queue.
        self.over = False

    async def renew(self) -> None:
        """Extend the claim; ClaimLost if another worker has it."""
        async with self._lock:
            if not self.over:
                await self._write(self._renewal, None)

    async def move(self, to: State, reason: str, **changes: object) -> None:
        async def build(record: Submission) -> submission_store.RecordChange:
            step = self._step(event_id, reason)
            held = record.claim if to.active else None
            return submission_store.RecordChange(domain.move(record, to, step, claim=held, **changes))

        event_id = self._new_event_id()
        await self._apply(build, event_id)

    def learn(self, **facts: object) -> None:
        """Note facts about the content, which the run's next write includes."""
        self._learnt |= facts
        self.record = msgspec.structs.replace(self.record, **facts)

    async def end(
        self,
        to: State,
        reason: str,
        extra: Callable[[Submission], Awaitable[tuple[tuple[Operation, ...], dict[str, object]]]],
        passed: Passed | None = None,
    ) -> None:
        """End the run together with other records, in one commit. `extra` is called for each try, with the record
        after it has `passed`."""

        async def build(record: Submission) -> submission_store.RecordChange:
            if passed is not None:
                step = self._step(f"{event_id}-passed", passed.reason)
                record = domain.move(record, passed.to, step, claim=record.claim, **passed.changes)
            operations, changes = await extra(record)
            return submission_store.RecordChange(
                domain.move(record, to, self._step(event_id, reason), **changes), operations
            )

        event_id = self._new_event_id()
        await self._apply(build, event_id)

    async def failed(self, reason: str) -> None:
        await self._give_up(attempts.record_failure, reason)

    async def unavailable(self, waiting_for: str, reason: str) -> None:
        await self._give_up(
            lambda record, step: attempts.record_unavailable(record, step, waiting_for), reason
        )

    async def hand_back(self, reason: str) -> None:
        await self._give_up(attempts.hand_back, reason)

    async def _give_up(self, change: Callable[[Submission, Step], Submission], reason: str) -> None:
        async def build(record: Submission) -> submission_store.RecordChange:
            return submission_store.RecordChange(change(record, self._step(event_id, reason)))

        event_id = self._new_event_id()
        await self._apply(build, event_id, leave_ms=0)

    async def _apply(self, build: Build, event_id: str, leave_ms: int = LEFT_TO_GIVE_UP_MS) -> None:
        async with self._lock:
            if self.over:
                raise ClaimLost("this claim was already released", submission=self.record.id)
            if self._left_ms() <= 0:
                # The claim expired, so another worker may have the submission: discard the result.
                await self._hand_back_expired()
                raise ClaimLost(RAN_OUT, submission=self.record.id)
            await self._write(build, event_id, leave_ms)

    async def _hand_back_expired(self) -> None:
        async def build(record: Submission) -> submission_store.RecordChange:
            return submission_store.RecordChange(
                attempts.record_unavailable(record, self._step(event_id, RAN_OUT), MACHINE)
            )

        event_id = self._new_event_id()
        await self._write(build, event_id)

    async def _renewal(self, record: Submission) -> submission_store.RecordChange:
        return submission_store.RecordChange(attempts.renew(record, self._token, require_env("kv").kv.now()))

    async def _write(self, build: Build, event_id: str | None, leave_ms: int = LEFT_TO_GIVE_UP_MS) -> None:
        """Retry until it is written or the claim is lost. Raises StoreUnavailable once only `leave_ms` of the claim are
        left: the store may refuse only this write, and accept a smaller one that says so."""
        pause, stale = PAUSE_MS, False
        while True:
            try:
                if stale and await self._read_again(event_id):
                    return
                stale = True
                await self._commit(await build(self.record), event_id)
                return
            except Conflict:
                continue
            except StoreUnavailable as error:
                note_store_failure()
                left_ms = self._left_ms()
                if left_ms <= 0:
                    raise ClaimLost(f"the store was unavailable until the claim expired: {error}") from error
                if left_ms <= leave_ms:
                    raise
                await asyncio.sleep(pause / 1000)
                pause = min(pause * 2, 1_000)

    async def _commit(self, change: submission_store.RecordChange, event_id: str | None) -> None:
        if event_id is None:
            put = Put(self.record.key, msgspec.json.encode(change.record), self._version, quiet=True)
            self._version = await require_env("kv").kv.commit([put], urgent=True)
            # Work goes on during a renewal, and may have learnt something since the change was built.
            self.record = self._with_learnt(change.record)
            return
        stored, operations = submission_store.stored_form(change, self._version, event_id)
        self._version = await submission_store.commit_change(operations, self.record, change.record, stored)
        self.over = not stored.held_by(self._token)
        # Even if the next run was stored in its place, this is the run that ended.
        self.record = change.record

    async def _read_again(self, event_id: str | None) -> bool:
        """Take the record as it is now; whether our event is already in it. Raises ClaimLost."""
        found = await submission_store.read_submission(self.record.id)
        if found is None:
            raise ClaimLost("the submission was deleted", submission=self.record.id)
        record, version = found
        if event_id is not None and await submission_store.was_written(record, event_id, self._run):
            self._version = version
            self.over = not record.held_by(self._token)
            self.record = record
            return True
        if not record.held_by(self._token):
            raise ClaimLost(f"{record.id} is {record.state} now, and not held by this worker")
        self.record, self._version = self._with_learnt(record), version
        return False

    def _with_learnt(self, record: Submission) -> Submission:
        return msgspec.structs.replace(record, **self._learnt)

    def _left_ms(self) -> int:
        return 0 if self.record.claim is None else self.record.claim.until - require_env("kv").kv.now()

    def _step(self, event_id: str, reason: str) -> Step:
        env = require_env("kv")
        return Step(event_id, env.kv.now(), f"worker:{env.worker_id}", reason)

    def _new_event_id(self) -> str:
        return require_env("clock").clock.new_id()
