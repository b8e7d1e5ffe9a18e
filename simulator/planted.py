"""Ten bugs that registries of this kind have had, planted on purpose: the tests show that the simulator finds each
of them. They are substitutions in the simulator's own composition; the product's code is not touched."""

import enum
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from simulator.engines import FaultyKV
from vskill_core.errors import PlatformError
from vskill_platform.domain import keys
from vskill_platform.domain.messages import SubmissionMessage, decode_body
from vskill_platform.domain.people.namespace import Directory
from vskill_platform.domain.submissions.attempts import claim, claimable
from vskill_platform.domain.submissions.cooldown import FirstSeen
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.blobs.memory import MemoryBlobs
from vskill_platform.ledger.broker.contract import Batch
from vskill_platform.ledger.broker.memory import MemoryBroker, _Live
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.ledger.kv.entries import Assert, Operation, Put
from vskill_platform.machine.process_cache import KeptReads
from vskill_platform.pipeline import process_submission
from vskill_platform.queue.consumer import Handler, handle_submission_queue
from vskill_platform.queue.jobs import JOBS, Job, JobState
from vskill_platform.queue.recovery import recover_stuck_submissions, recover_tasks
from vskill_platform.records import decode
from vskill_platform.store.claims import HeldClaim
from vskill_platform.submission_store import read_submission
from vskill_platform.worker_context import Env, require_env, run_with_worker_env


class Bug(enum.StrEnum):
    """What is planted."""

    NO_VERSION_CHECK = "submissions are written whatever their version"
    ACK_BEFORE_WRITE = "messages are acked before they are handled, and only the queue is trusted"
    RECOVERY_EXECUTES = "recovery does the work itself, without a claim of its own"
    NO_BLOCKLIST_ASSERTION = "publishing does not assert the blocklist that it has read"
    LEASE_BELIEVED = "a lease is believed however far ahead its end is"
    CLAIM_STOLEN = "a worker takes up what another one holds"
    NO_NAMESPACE_ASSERTION = "records are written without asserting the namespace that was read"
    DIRECTORY_BELIEVED = "a process believes for ever who may read"
    LENGTH_BELIEVED = "content of equal length is taken for the same, and never replaced"
    WAIT_SHORTENED = "what waits by a rule is due at once, as if its bytes had long been known"


def store_class(bug: Bug | None) -> type[FaultyKV]:
    kinds: dict[Bug, type[FaultyKV]] = {
        Bug.NO_VERSION_CHECK: _Unversioned,
        Bug.NO_BLOCKLIST_ASSERTION: _Unasserted,
        Bug.NO_NAMESPACE_ASSERTION: _Unbound,
        Bug.WAIT_SHORTENED: _Hurried,
    }
    return kinds.get(bug, FaultyKV) if bug else FaultyKV


def queue_class(bug: Bug | None) -> type[MemoryBroker]:
    return _Believing if bug is Bug.LEASE_BELIEVED else MemoryBroker


def content_class(bug: Bug | None) -> type[MemoryBlobs]:
    return _Unread if bug is Bug.LENGTH_BELIEVED else MemoryBlobs


def kept_class(bug: Bug | None) -> type[KeptReads]:
    return _BelievedReads if bug is Bug.DIRECTORY_BELIEVED else KeptReads


def handler_of(bug: Bug | None) -> Handler:
    handlers = {Bug.ACK_BEFORE_WRITE: _ack_first, Bug.CLAIM_STOLEN: _steal_first}
    return handlers.get(bug, handle_submission_queue) if bug else handle_submission_queue


def jobs_of(bug: Bug | None) -> Sequence[Job]:
    """ACK_BEFORE_WRITE comes with a recovery that finds nothing: beside the real one, which goes by the records, an
    early ack costs time and loses nothing. The two together are the bug: the message was the truth."""
    replaced = {Bug.ACK_BEFORE_WRITE: _trust_the_queue, Bug.RECOVERY_EXECUTES: _execute_expired}
    if bug not in replaced:
        return JOBS
    return [
        msgspec.structs.replace(job, run=replaced[bug]) if job.name == "recovery" else job for job in JOBS
    ]


class _Unversioned(FaultyKV):
    def substitute(self, operations: Sequence[Operation]) -> Sequence[Operation]:
        return [_without_version(one) for one in operations]


def _without_version(operation: Operation) -> Operation:
    if isinstance(operation, Put) and operation.key.startswith(keys.sub.prefix):
        return msgspec.structs.replace(operation, if_version=None)
    return operation


class _Unasserted(FaultyKV):
    def substitute(self, operations: Sequence[Operation]) -> Sequence[Operation]:
        """Only where it publishes: other commits that assert the blocklist keep doing so."""
        written = [one.key for one in operations if isinstance(one, Put)]
        publishes = any(key.startswith(keys.skill.prefix) for key in written) and any(
            key.startswith(keys.sub.prefix) for key in written
        )
        return [
            one
            for one in operations
            if not (publishes and isinstance(one, Assert) and one.key == keys.CONTROL_BLOCKLIST)
        ]


class _Unbound(FaultyKV):
    def substitute(self, operations: Sequence[Operation]) -> Sequence[Operation]:
        return [
            one
            for one in operations
            if not (isinstance(one, Assert) and one.key.startswith(keys.namespace.prefix))
        ]


class _Hurried(FaultyKV):
    def substitute(self, operations: Sequence[Operation]) -> Sequence[Operation]:
        return [_hurried(one) for one in operations]


def _hurried(operation: Operation) -> Operation:
    if not isinstance(operation, Put) or not operation.key.startswith(keys.sub.prefix):
        return operation
    record = msgspec.json.decode(operation.value, type=Submission)
    if record.state is not State.COOLDOWN:
        return operation
    known = tuple(FirstSeen(seen.digest, 0) for seen in record.first_seen)
    due = msgspec.structs.replace(record, first_seen=known, next_attempt_at=record.updated_at)
    return msgspec.structs.replace(operation, value=msgspec.json.encode(due))


class _EveryVersion:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class _BelievedReads(KeptReads):
    """What was read first of who may read is true for ever."""

    _first: Directory | None = None

    @property
    def directory(self) -> tuple[Any, Directory] | None:
        return None if self._first is None else (_EveryVersion(), self._first)

    @directory.setter
    def directory(self, found: tuple[int, Directory] | None) -> None:
        if found is not None and self._first is None:
            self._first = found[1]


class _Unread(MemoryBlobs):
    async def put(self, address: str, data: bytes, *, replace: bool = False) -> None:
        known, _ = self.content.get(address, (None, 0))
        if known is None or len(known) != len(data):
            await super().put(address, data, replace=replace)


class _Believing(MemoryBroker):
    def _is_held(self, message: _Live, now: int) -> bool:
        return message.token != 0


async def _ack_first(batch: Batch, env: Env) -> None:
    await batch.ack_all()
    await handle_submission_queue(batch, env)


async def _steal_first(batch: Batch, env: Env) -> None:
    await run_with_worker_env(env, lambda: _steal(batch))
    await handle_submission_queue(batch, env)


async def _steal(batch: Batch) -> None:
    env = require_env("kv")
    for message in batch.messages:
        body = decode_body(message.body)
        with suppress(PlatformError):
            found = await read_submission(body.submission_id) if isinstance(body, SubmissionMessage) else None
            if found is not None and found[0].claim is not None:
                token = env.clock.new_id()
                ids = [f"{token}-{number}" for number in range(2)]
                stolen = claim(found[0], token=token, worker=env.worker_id, now=env.kv.now(), event_ids=ids)
                await env.kv.commit([Put(stolen.key, msgspec.json.encode(stolen), found[1])])


async def _trust_the_queue(state: JobState) -> JobState:
    return state


async def _execute_expired(_: JobState) -> JobState:
    """For what a worker left behind, go on in its name; send messages for the rest."""
    env = require_env("kv")
    async for page in iterate_pages(env.kv, keys.sub.prefix):
        for entry in page.items:
            record = decode(entry, Submission)
            if record.claim is not None and claimable(record, env.kv.now()):
                await _execute(HeldClaim(record, entry.version, record.claim.token))
    await recover_stuck_submissions()
    await recover_tasks()
    return {}


async def _execute(claim: HeldClaim) -> None:
    if claim.record.state in (State.TIER1_SCANNING, State.AUTO_APPROVED):
        try:
            await process_submission(claim)
        except (PlatformError, RuntimeError):
            return
