"""Tasks: queued work other than submissions keeps the same promises."""

import asyncio
import errno

import msgspec
import pytest

from tests.support.acting import principal_for
from tests.support.dead_letters import list_dead_letters
from tests.support.envs import open_test_env
from tests.support.faults import HookedKV
from tests.support.patience import PATIENCE_S
from vskill_core.errors import ClaimLost, SourceUnavailable, TransitionError
from vskill_platform.actions.operation.dead_letters import REPLAY, LetterRequest
from vskill_platform.domain.messages import TaskMessage
from vskill_platform.domain.operation import task as domain
from vskill_platform.domain.operation.task import TaskState
from vskill_platform.domain.submissions.attempts import CLAIM_MS, MAX_INTERRUPTED, UNAVAILABLE_END_MS
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.queue.control import pause_queue
from vskill_platform.queue.health import EXPIRED_GRACE_MS, queue_health
from vskill_platform.queue.recovery import recover_tasks
from vskill_platform.queue.tasks import handle_task
from vskill_platform.store.claims import NotClaimed
from vskill_platform.store.tasks import HeldTask, TaskEnd, TaskKind, ask_for, claim_task, read_task
from vskill_platform.worker_context import require_env, run_with_worker_env

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as env:
        yield env


def kind(*steps: object, **changes) -> TaskKind:
    """A kind whose attempts end as the steps say, then well."""
    left = list(steps)

    async def run(task) -> TaskEnd:
        step = left.pop(0) if left else "did it"
        if isinstance(step, BaseException):
            raise step
        if callable(step):
            done: TaskEnd = await step(task)
            return done
        return TaskEnd(str(step), (Put(f"extscan:{task.id}:demo", b"{}"),))

    return TaskKind("demo", "for tests", run, **changes)


async def work(env, demo: TaskKind) -> list[str]:
    done = []
    for batch in await env.broker.receive(10, 0):
        for message in batch.messages:
            body = TaskMessage("demo", "one", (await task()).run)
            done.append(await handle_task(message, body, (demo,)))
    return done


async def task():
    found, _ = await read_task("demo", "one")
    assert found is not None
    return found


async def test_asking_twice_is_one_task_and_its_end_and_its_result_are_one_commit(env):
    await asyncio.gather(*(ask_for("demo", "one", {"digest": "d"}) for _ in range(5)))
    assert (await env.broker.depth()).ready == 1
    assert await work(env, kind()) == ["done"]
    done = await task()
    assert (done.state, done.outcome, done.claim, done.next_attempt_at) == (
        TaskState.DONE,
        "did it",
        None,
        None,
    )
    assert await env.kv.get("extscan:one:demo") is not None
    assert (await ask_for("demo", "one", {}, again=False)).state is TaskState.DONE
    again = await ask_for("demo", "one", {"digest": "e"})
    assert (again.run, again.state, again.subject) == (2, TaskState.ACTIVE, {"digest": "e"})


async def test_a_failed_attempt_waits_and_the_last_one_ends_it(env):
    await ask_for("demo", "one", {})
    demo = kind(ValueError("a"), ValueError("b"), delays_ms=(1_000,))
    assert await work(env, demo) == ["again"]
    await ask_for("demo", "one", {}, again=False)
    assert (await task()).next_attempt_at == env.kv.now() + 1_000
    env.clock.advance(1_000)
    assert await work(env, demo) == ["exhausted"]
    assert (await env.broker.depth()).dead == 1
    ended = await task()
    assert ended.state is TaskState.FAILED and "2 attempts failed" in ended.outcome and "b" in ended.outcome


async def test_what_is_unavailable_counts_for_nothing_but_not_for_ever(env):
    await ask_for("demo", "one", {})
    demo = kind(*[SourceUnavailable(host="example.org")] * 200)
    await work(env, demo)
    waiting = await task()
    assert (waiting.attempts.failed, waiting.attempts.waiting_for) == (0, "example.org")
    began = env.clock.now()
    async with asyncio.timeout(PATIENCE_S):
        while (waiting := await task()).next_attempt_at is not None:
            env.clock.advance(waiting.next_attempt_at - env.clock.now())
            await work(env, demo)
    assert waiting.state is TaskState.FAILED
    assert env.clock.now() - began >= UNAVAILABLE_END_MS


async def test_over_budget_is_a_failed_attempt(env):
    async def slow(_):
        await asyncio.sleep(60)

    await ask_for("demo", "one", {})
    assert await work(env, kind(slow, budget_ms=20)) == ["again"]
    assert "budget" in (await task()).outcome
    env.clock.advance(10_000)
    assert await work(env, kind(TimeoutError("a socket timed out"))) == ["again"]
    assert (await task()).outcome == "a socket timed out"


async def test_a_worker_that_died_is_followed_by_another_and_too_many_deaths_end_it(env):
    await ask_for("demo", "one", {})
    for _ in range(MAX_INTERRUPTED):
        held = await claim_task("demo", "one", 1)
        assert isinstance(held, HeldTask)
        refused = await claim_task("demo", "one", 1)
        assert isinstance(refused, NotClaimed) and refused.again_in_ms == CLAIM_MS
        env.clock.advance(CLAIM_MS)
    with pytest.raises(ClaimLost):
        await HeldTask(await task(), 1, "another token").renew()
    assert await work(env, kind()) == ["exhausted"]
    assert (await task()).state is TaskState.FAILED
    (letter,) = await list_dead_letters()
    assert (
        await REPLAY(require_env(), principal_for("admin:me"), LetterRequest(letter_id=letter.id))
    ).run == 2
    assert await list_dead_letters() == []


async def test_asking_again_while_it_runs_runs_it_once_more(env):
    await ask_for("demo", "one", {})
    held = await claim_task("demo", "one", 1)
    assert isinstance(held, HeldTask)
    await held.renew()
    assert (await ask_for("demo", "one", {"digest": "new"})).rerun_requested
    await held.write(lambda current: domain.finish(current, "first", env.kv.now()))
    after = await task()
    assert (after.run, after.state, after.subject) == (2, TaskState.ACTIVE, {"digest": "new"})
    await held.renew()


async def at_work(env) -> "asyncio.Task[list[str]]":
    """A worker in the middle of a long task."""
    started = asyncio.Event()

    async def slow(_):
        started.set()
        await asyncio.sleep(60)

    await ask_for("demo", "one", {})
    working = asyncio.create_task(work(env, kind(slow)))
    await started.wait()
    return working


async def test_a_stopping_worker_hands_it_back(env):
    working = await at_work(env)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    handed = await task()
    assert (handed.state, handed.claim, handed.attempts.failed) == (TaskState.ACTIVE, None, 0)
    assert handed.next_attempt_at == env.kv.now()


async def test_a_stopping_worker_that_has_lost_it_leaves_it_to_the_one_who_has_it(env):
    working = await at_work(env)
    env.clock.advance(CLAIM_MS)
    assert isinstance(await claim_task("demo", "one", 1), HeldTask)
    taken = await task()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert await task() == taken


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(
    ("number", "step"),
    [
        (1, "did it"),
        (2, RuntimeError("broke")),
        (2, SourceUnavailable("down", host="h")),
        (2, TimeoutError("a step")),
        (2, OSError(errno.EMFILE, "too many open files")),
    ],
    ids=["the claim", "a failure", "an outage", "a time-out", "a shortage"],
)
async def test_a_worker_that_is_stopped_in_the_middle_of_a_write_leaves_no_claim(env, moment, number, step):
    await ask_for("demo", "one", {})
    hooked, reached, stopped, left = HookedKV(env.kv), asyncio.Event(), asyncio.Event(), number

    async def hold(_operations):
        nonlocal left
        left -= 1
        if left == 0:
            reached.set()
            # As a write that is under way: cancelled or not, it ends.
            await stopped.wait()

    setattr(hooked, f"{moment}_commit", hold)
    stopping = msgspec.structs.replace(env, kv=hooked)
    working = asyncio.create_task(run_with_worker_env(stopping, lambda: work(stopping, kind(step))))
    await asyncio.wait_for(reached.wait(), PATIENCE_S)
    working.cancel()
    await asyncio.sleep(0)
    stopped.set()
    with pytest.raises(asyncio.CancelledError):
        await working
    handed = await task()
    assert (handed.state, handed.claim) == (TaskState.ACTIVE, None)


async def test_a_kind_that_this_version_does_not_know_is_a_dead_letter(env):
    await ask_for("demo", "one", {})
    (batch,) = await env.broker.receive(1, 0)
    assert await handle_task(batch.messages[0], TaskMessage("demo", "one", 1), ()) == "unknown task"
    assert (await env.broker.depth()).dead == 1


async def test_recovery_sends_for_tasks_too_and_nothing_while_paused(env):
    await ask_for("demo", "one", {})
    (batch,) = await env.broker.receive(1, 0)
    await batch.messages[0].ack()
    assert (await recover_tasks()).sent == 1
    assert (await recover_tasks()).sent == 0
    await pause_queue(1_000, reason="upgrade", by="admin:me")
    assert (await recover_tasks()).paused


async def test_a_message_for_a_run_that_is_over_is_acked(env):
    await ask_for("demo", "one", {})
    await work(env, kind())
    await env.broker.send(b"{}", "late")
    assert await work(env, kind()) == ["over"]


async def test_health_lists_tasks_that_break_the_invariant(env):
    await ask_for("demo", "one", {})
    assert isinstance(await claim_task("demo", "one", 1), HeldTask)
    assert (await queue_health()).violations == ()
    env.clock.advance(CLAIM_MS + EXPIRED_GRACE_MS + 1_000)
    await env.kv.put("task:demo:odd", b'{"state": "ACTIVE"}')
    problems = {violation.key: violation.problem for violation in (await queue_health()).violations}
    assert "nobody took it up" in problems["task:demo:one"]
    assert "cannot be read" in problems["task:demo:odd"]


def test_only_a_held_task_is_renewed():
    with pytest.raises(TransitionError):
        domain.renew(domain.create("demo", "one", {}, now=1), 2)
    assert domain.ask_again(domain.create("demo", "one", {}, now=1), {}, 9).next_attempt_at == 9
