"""Claims under fire: conflicts, unknown outcomes, lost claims, and a store that goes away."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from tests.support.acting import cancel, run_again
from tests.support.counting_kv import CountingKV
from tests.support.envs import active_env
from tests.support.faults import HookedKV
from tests.support.manual_clock import ManualClock
from tests.support.memory_env import memory_env
from tests.support.records import submission
from tests.support.system_reads import get_run, get_submission
from vskill_core.errors import ClaimLost, Conflict, LowerVersion, StoreUnavailable
from vskill_platform.domain.submissions.attempts import CLAIM_MS, MAX_INTERRUPTED
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import (
    Attempts,
    RecordedDecision,
    Rerun,
    Submission,
    request_rerun,
)
from vskill_platform.ledger.kv.entries import Operation, Put
from vskill_platform.ledger.kv.memory import MemoryKV
from vskill_platform.store.claims import HeldClaim, NotClaimed, Passed, claim_submission
from vskill_platform.store.tasks import HeldTask, ask_for, claim_task
from vskill_platform.submission_store import RecordChange, create_submission, update_submission
from vskill_platform.worker_context import worker_env_storage

pytestmark = pytest.mark.anyio


class Flaky(MemoryKV):
    """Commits that fail as a test says: before they are applied, or after."""

    def __init__(self, clock, broker) -> None:
        super().__init__(clock, broker)
        self.script: list[str] = []
        #: Whether each commit was urgent.
        self.urgent: list[bool] = []

    async def commit(self, operations, *, urgent=False):
        self.urgent.append(urgent)
        fault = self.script.pop(0) if self.script else ""
        if fault == "fails":
            raise StoreUnavailable("not applied")
        if fault == "conflicts":
            raise Conflict("something was in the way for a moment")
        version = await super().commit(operations, urgent=urgent)
        if fault == "applied":
            raise StoreUnavailable("applied, but the connection died")
        return version


@pytest.fixture
async def env():
    clock = ManualClock()
    plain = memory_env(clock)
    env = msgspec.structs.replace(plain, kv=Flaky(clock, plain.broker))
    token = worker_env_storage.set(env)
    yield env
    worker_env_storage.reset(token)


async def created(slug: str = "demo") -> Submission:
    record = submission(slug, at=1_700_000_000_000)
    assert await create(record) == record
    return record


async def create(record: Submission) -> Submission | None:
    async def prepare() -> RecordChange:
        return RecordChange(record)

    return await create_submission(prepare)


async def claimed(slug: str = "demo") -> HeldClaim:
    record = await created(slug)
    claim = await claim_submission(record.id, 1)
    assert isinstance(claim, HeldClaim)
    return claim


async def nothing(_: Submission) -> tuple[tuple[Operation, ...], dict[str, object]]:
    return (), {}


async def current(claim: HeldClaim) -> Submission:
    return await get_submission(claim.record.id)


async def test_D4_a_place_has_one_submission_however_often_it_is_created(env):
    def attempt(number: int) -> Submission:
        record = submission(at=env.kv.now())
        event = msgspec.structs.replace(record.history[0], id=f"request-{number}")
        return msgspec.structs.replace(record, history=(event,))

    results = await asyncio.gather(*(create(attempt(number)) for number in range(10)))
    assert sum(result is not None for result in results) == 1
    assert (await env.broker.depth()).ready == 1


@pytest.mark.parametrize("fault", ["fails", "applied", "conflicts"])
async def test_creating_survives_an_unknown_outcome(env, fault):
    env.kv.script = [fault]
    record = await created()
    assert await get_submission(record.id) == record
    assert (await env.broker.depth()).ready == 1


@pytest.mark.parametrize("fault", ["fails", "applied"])
async def test_a_claim_recognises_its_own_token_after_an_unknown_outcome(env, fault):
    record = await created()
    env.kv.script = [fault]
    claim = await claim_submission(record.id, 1)
    assert isinstance(claim, HeldClaim)
    assert (await current(claim)).attempts.started == 1


class Stalling(Flaky):
    """A worker that learns of a failed commit, and looks again when much has happened meanwhile."""

    def __init__(self, clock, broker) -> None:
        super().__init__(clock, broker)
        self.meanwhile: Callable[[], Awaitable[HeldClaim | HeldTask | NotClaimed]] | None = None
        #: Of every claim that was written.
        self.tokens: list[str] = []

    async def commit(self, operations, *, urgent=False):
        for put in operations:
            claim = msgspec.json.decode(put.value).get("claim") if isinstance(put, Put) else None
            self.tokens += [claim["token"]] if claim else []
        return await super().commit(operations, urgent=urgent)

    async def get(self, key):
        if self.meanwhile is not None and len(self.tokens) % 3 == 1:
            other, self.meanwhile = self.meanwhile, None
            assert isinstance(self._clock, ManualClock)
            self._clock.advance(2 * CLAIM_MS)
            held = await other()
            assert not isinstance(held, NotClaimed)
            await held.renew()
            self._clock.advance(2 * CLAIM_MS)
        return await super().get(key)


async def test_a_claim_that_ended_while_its_worker_stalled_is_not_taken_up_under_its_old_token(env):
    """Seed 705262: another worker may have held it meanwhile, and a token tells one hold from another."""
    kv = Stalling(env.clock, env.broker)
    worker_env_storage.set(msgspec.structs.replace(env, kv=kv))
    record = await created()
    await ask_for("demo", "one", {})
    for take in (lambda: claim_submission(record.id, 1), lambda: claim_task("demo", "one", 1)):
        kv.script, kv.meanwhile, kv.tokens = ["applied"], take, []
        assert isinstance(await take(), HeldClaim | HeldTask)
        first, second, renewed, third = kv.tokens
        assert second == renewed
        assert len({first, second, third}) == 3


@pytest.mark.parametrize("fault", ["fails", "applied"])
async def test_a_move_is_written_once_whatever_the_outcome_looked_like(env, fault):
    claim = await claimed()
    env.kv.script = [fault]
    await claim.move(State.AUTO_APPROVED, "passed")
    record = await current(claim)
    assert [event.to for event in record.history] == [
        State.RECEIVED,
        State.TIER1_SCANNING,
        State.AUTO_APPROVED,
    ]
    assert not claim.over
    await claim.hand_back("stopping")
    assert claim.over


@pytest.mark.parametrize("fault", ["none", "fails", "applied"])
async def test_an_approval_and_what_ends_the_run_are_one_commit(env, fault):
    """Approved but never published is no place to be: both steps are there, or neither, and each is counted."""
    claim = await claimed()
    seen: list[Submission] = []

    async def look(record: Submission):
        seen.append(record)
        return (), {"published_version": "1.0.0"}

    env.kv.script = [fault]
    decision = RecordedDecision("passed", score=90)
    await claim.end(
        State.PUBLISHED, "published", look, Passed(State.AUTO_APPROVED, "passed", {"decision": decision})
    )
    assert claim.over
    assert {(record.state, record.decision, record.claim is not None) for record in seen} == {
        (State.AUTO_APPROVED, decision, True)
    }
    record = await current(claim)
    assert [(event.to, event.reason) for event in record.history[2:]] == [
        (State.AUTO_APPROVED, "passed"),
        (State.PUBLISHED, "published"),
    ]
    assert (record.claim, record.next_attempt_at, record.decision) == (None, None, decision)
    if fault == "none":
        counted = env.metrics.render()
        assert b'vskill_transitions_total{to="AUTO_APPROVED"} 1.0' in counted
        assert b'vskill_transitions_total{to="PUBLISHED"} 1.0' in counted


async def test_an_approval_whose_publication_is_refused_is_not_written_either(env):
    claim = await claimed()

    async def refuse(_: Submission):
        raise LowerVersion("version 2.0.0 is live")

    with pytest.raises(LowerVersion):
        await claim.end(State.PUBLISHED, "published", refuse, Passed(State.AUTO_APPROVED, "passed", {}))
    assert not claim.over
    assert (await current(claim)).state is State.TIER1_SCANNING
    await claim.end(State.REJECTED, "a lower version", nothing)


async def test_an_end_whose_run_has_moved_on_is_found_in_the_run_that_ended(env):
    """Applied, but reported as failed, and the next run began in the same commit."""
    claim = await claimed()
    await update_submission(claim.record.id, _rerun, event_id="none")
    env.kv.script = ["applied"]
    await claim.failed("x")
    assert (await current(claim)).attempts.failed == 1

    again = await claim_submission(claim.record.id, 1)
    assert isinstance(again, NotClaimed)


async def _rerun(record: Submission) -> RecordChange:
    return RecordChange(request_rerun(record, Rerun(1, upload="f" * 64)))


async def test_a_change_whose_outcome_was_unknown_is_not_made_to_the_run_that_began_since(env):
    """Applied, but reported as failed, and somebody started the next run before the second look."""
    record = await created()
    hooked = HookedKV(env.kv)

    async def go_on_and_die(_operations):
        hooked.after_commit = None
        with active_env(env):
            await run_again(record.id, by="user:ann", reason="after all")
        raise StoreUnavailable("the connection died")

    hooked.after_commit = go_on_and_die
    with active_env(env, kv=hooked):
        await cancel(record.id, by="user:ann", reason="a mistake")
    now = await get_submission(record.id)
    assert (now.run, now.state) == (2, State.RECEIVED)
    assert (await get_run(record.id, 1)).state is State.DEQUEUED


async def test_a_change_that_was_overtaken_is_decided_anew_about_the_run_that_began_since(env):
    """What stands in the run that ended is somebody else's: ours was not written."""
    record = await created()
    hooked = HookedKV(env.kv)

    async def overtake(_operations):
        hooked.before_commit = None
        with active_env(env):
            await cancel(record.id, by="user:bob", reason="a mistake")
            await run_again(record.id, by="user:bob", reason="after all")

    hooked.before_commit = overtake
    with active_env(env, kv=hooked):
        await cancel(record.id, by="user:ann", reason="not wanted")
    now = await get_submission(record.id)
    assert (now.run, now.state, now.history[-1].actor) == (2, State.DEQUEUED, "user:ann")
    assert (await get_run(record.id, 1)).history[-1].actor == "user:bob"


async def test_ending_a_run_that_is_to_run_again_starts_the_next_and_keeps_the_ended_one(env):
    claim = await claimed()
    await update_submission(claim.record.id, _rerun, event_id="none")

    env.kv.script = ["applied"]
    await claim.end(State.REJECTED, "not good", nothing)
    assert claim.over
    record = await current(claim)
    assert (record.run, record.state, record.upload) == (2, State.RECEIVED, "f" * 64)
    ended = await get_run(record.id, 1)
    assert (ended.state, ended.history[-1].reason, ended.rerun_requested) == (
        State.REJECTED,
        "not good",
        None,
    )
    assert record.history[0].seq == ended.history[-1].seq + 1
    assert (await env.broker.depth()).ready == 2


async def test_a_run_that_ends_and_the_next_that_begins_are_both_counted(env):
    claim = await claimed()
    await update_submission(claim.record.id, _rerun, event_id="none")
    await claim.end(State.REJECTED, "not good", nothing)
    assert (claim.over, claim.record.run, claim.record.state) == (True, 1, State.REJECTED)
    counted = env.metrics.render()
    for state, times in ((b"RECEIVED", b"2.0"), (b"TIER1_SCANNING", b"1.0"), (b"REJECTED", b"1.0")):
        assert b'vskill_transitions_total{to="%s"} %s' % (state, times) in counted


async def test_foreign_fields_are_kept_when_a_conflict_is_met(env):
    claim = await claimed()
    await update_submission(claim.record.id, _rerun, event_id="none")
    await claim.move(State.AUTO_APPROVED, "passed")
    record = await current(claim)
    assert record.rerun_requested is not None and record.state is State.AUTO_APPROVED


async def test_D3_whoever_lost_the_claim_writes_nothing(env):
    claim = await claimed()
    env.clock.advance(CLAIM_MS)
    second = await claim_submission(claim.record.id, 1)
    assert isinstance(second, HeldClaim)
    before = await current(claim)
    for write in (claim.renew(), claim.move(State.AUTO_APPROVED, "late"), claim.failed("late")):
        with pytest.raises(ClaimLost):
            await write
    assert await current(claim) == before
    await second.renew()


async def test_a_claim_is_lost_when_somebody_ends_the_run(env):
    claim = await claimed()
    await cancel(claim.record.id, by="user:me", reason="a mistake")
    with pytest.raises(ClaimLost, match="DEQUEUED"):
        await claim.renew()


async def test_a_deleted_record_is_a_lost_claim(env):
    claim = await claimed()
    await env.kv.delete(claim.record.key)
    with pytest.raises(ClaimLost, match="deleted"):
        await claim.move(State.AUTO_APPROVED, "passed")


async def test_a_store_that_stays_away_loses_the_claim_at_its_end(env):
    claim = await claimed()
    tries = []

    async def away(operations, *, urgent=False):
        tries.append(operations)
        env.clock.advance(CLAIM_MS)
        raise StoreUnavailable("away")

    env.kv.commit = away
    with pytest.raises(ClaimLost, match="away"):
        await claim.move(State.AUTO_APPROVED, "passed")
    assert len(tries) == 1


async def test_after_the_end_nothing_more_is_written(env):
    claim = await claimed()
    await claim.hand_back("stopping")
    with pytest.raises(ClaimLost, match="already"):
        await claim.failed("late")
    await claim.renew()


async def test_renewals_and_moves_at_once_are_serialised(env):
    claim = await claimed()
    await asyncio.gather(
        claim.renew(), claim.move(State.AUTO_APPROVED, "passed"), claim.renew(), claim.renew()
    )
    record = await current(claim)
    assert record.state is State.AUTO_APPROVED and record.claim is not None


async def test_renewals_go_first_and_emit_no_change(env):
    claim = await claimed()
    cursor = await env.kv.change_cursor()
    await claim.renew()
    assert env.kv.urgent == [False, False, True]
    assert (await env.kv.changes("sub:", after=cursor)).items == ()


async def test_what_was_learnt_is_written_with_the_next_step_whoever_else_writes(env):
    claim = await claimed()
    claim.learn(digest="d" * 64)
    assert (await current(claim)).digest is None
    await update_submission(claim.record.id, _rerun, event_id="none")
    await claim.move(State.AUTO_APPROVED, "passed")
    assert (await current(claim)).digest == "d" * 64


async def test_what_cannot_be_claimed_says_why(env):
    assert "no such" in _refusal(await claim_submission("sub_none", 1)).reason
    record = await created()
    assert _refusal(await claim_submission(record.id, 0)).again_in_ms is None
    await env.kv.commit(
        [
            Put(
                record.key,
                msgspec.json.encode(msgspec.structs.replace(record, next_attempt_at=env.kv.now() + 700)),
            )
        ]
    )
    assert _refusal(await claim_submission(record.id, 1)).again_in_ms == 700
    await cancel(record.id, by="user:me", reason="no")
    assert "DEQUEUED" in _refusal(await claim_submission(record.id, 1)).reason


async def stored(env, **fields: object) -> Submission:
    """A submission that waits for a worker, but for these fields."""
    record = msgspec.structs.replace(submission(at=env.kv.now()), **fields)
    await env.kv.commit([Put(record.key, msgspec.json.encode(record))])
    return record


async def test_an_active_record_with_neither_claim_nor_next_attempt_is_looked_at_again_at_once(env):
    record = await stored(env, next_attempt_at=None)
    assert _refusal(await claim_submission(record.id, 1)).again_in_ms == 0


async def test_claims_and_refusals_are_counted_apart(env):
    claim = await claimed()
    for _ in range(2):
        _refusal(await claim_submission(claim.record.id, 1))
    counted = env.metrics.render()
    assert b'vskill_claims_total{outcome="claimed"} 1.0' in counted
    assert b'vskill_claims_total{outcome="refused"} 2.0' in counted


async def test_a_claim_on_a_record_that_was_just_seen_reads_nothing(env):
    record = await created()
    seen = await env.kv.get(record.key)
    counting = CountingKV(env.kv)
    with active_env(env, kv=counting):
        claim = await claim_submission(record.id, 1, (record, seen.version))
        assert isinstance(claim, HeldClaim)
        await claim.renew()
        await claim.move(State.TIER2_SCANNING, "the judge reads it")
        assert counting.calls == {"commit": 3}


@pytest.mark.parametrize("fault", ["none", "fails", "conflicts", "applied"])
async def test_a_record_that_was_seen_in_an_older_form_is_read_again(env, fault):
    record = await created()
    entry = await env.kv.get(record.key)
    held = msgspec.structs.replace(record, next_attempt_at=env.kv.now() + 1)
    seen = (held if fault == "none" else record, entry.version)
    env.kv.script = [fault]
    claim = await claim_submission(record.id, 1, seen)
    assert isinstance(claim, HeldClaim)
    assert (await current(claim)).attempts.started == 1


async def test_a_run_whose_worker_died_too_often_is_exhausted_and_says_so_each_time(env):
    record = await stored(env, attempts=Attempts(started=9, interrupted=MAX_INTERRUPTED - 1))
    claim = await claim_submission(record.id, 1)
    assert isinstance(claim, HeldClaim)
    env.clock.advance(CLAIM_MS)
    first = _refusal(await claim_submission(record.id, 1))
    ended = await get_submission(record.id)
    assert (ended.state, first.reason) == (State.NEEDS_REVIEW, ended.history[-1].reason)
    assert (first.exhausted, first.again_in_ms) == (True, None)
    assert _refusal(await claim_submission(record.id, 1)) == first


async def test_a_run_that_somebody_ended_is_not_exhausted(env):
    record = await created()
    await cancel(record.id, by="user:me", reason="no")
    assert not _refusal(await claim_submission(record.id, 1)).exhausted


async def test_a_run_has_its_own_message_and_an_older_one_is_refused(env):
    record = await stored(env, run=2)
    assert "run 2 has its own message" in _refusal(await claim_submission(record.id, 1)).reason
    assert isinstance(await claim_submission(record.id, 2), HeldClaim)


async def test_a_move_writes_the_changes_that_belong_to_it_and_stays_held_only_while_active(env):
    claim = await claimed()
    decision = RecordedDecision("a person looks at it")
    await claim.move(State.TIER2_SCANNING, "the judge reads it", commit="c" * 40)
    assert ((await current(claim)).commit, claim.over) == ("c" * 40, False)
    await claim.move(State.NEEDS_REVIEW, "unsure", decision=decision)
    record = await current(claim)
    assert (record.claim, record.decision, claim.over) == (None, decision, True)
    assert record.history[-1].actor == f"worker:{env.worker_id}"


async def test_an_end_is_one_commit_with_the_records_and_fields_that_belong_to_it(env):
    claim = await claimed()

    async def extra(_: Submission):
        return (Put("beside", b"1"),), {"published": "skill:one", "published_version": "1.0.0"}

    await claim.move(State.AUTO_APPROVED, "passed")
    await claim.end(State.PUBLISHED, "published", extra)
    record = await current(claim)
    assert (record.published, record.published_version) == ("skill:one", "1.0.0")
    assert (await env.kv.get("beside")).value == b"1"
    assert claim.record == record


async def test_what_was_learnt_is_there_at_once_and_stays_whatever_else_is_learnt_or_renewed(env):
    claim = await claimed()
    claim.learn(digest="d" * 64)
    claim.learn(commit="c" * 40)
    for moment in ("at once", "after a conflict", "after a renewal"):
        assert (claim.record.digest, claim.record.commit) == ("d" * 64, "c" * 40), moment
        if moment == "at once":
            await update_submission(claim.record.id, _rerun, event_id="none")
        await claim.renew()
    await claim.hand_back("stopping")
    record = await current(claim)
    assert (record.digest, record.commit) == ("d" * 64, "c" * 40)


async def test_a_lost_claim_names_its_submission(env):
    given_up, deleted = await claimed("one"), await claimed("two")
    await given_up.hand_back("stopping")
    await env.kv.delete(deleted.record.key)
    for claim in (given_up, deleted):
        with pytest.raises(ClaimLost) as caught:
            await claim.failed("late")
        assert caught.value.details == {"submission": claim.record.id}


def _refusal(outcome: HeldClaim | NotClaimed) -> NotClaimed:
    assert isinstance(outcome, NotClaimed)
    return outcome
