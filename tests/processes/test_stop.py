"""Real processes that are asked to stop, and two that share one file."""

import asyncio
from pathlib import Path

import pytest

from tests.incidents.steps import check_history, record_of
from tests.processes.workers import REAL_WORKER, until_record, workers_on
from tests.support.envs import open_test_env, submit_skill
from tests.support.patience import NEVER_MS
from tests.support.system_reads import get_submission
from vskill_platform.domain.submissions.states import State
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.queue.health import queue_health

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

#: Nothing in these tests takes as long.
LONG_GRACE = {"VSKILL_SHUTDOWN_GRACE_MS": str(NEVER_MS)}


async def test_a_stopping_worker_finishes_within_its_grace(tmp_path: Path) -> None:
    """SIGTERM in the middle of a scan: the submission is published, and the exit code is 0."""
    async with (
        open_test_env("sqlite", tmp_path, clock=SystemClock()) as env,
        workers_on(env.settings, tmp_path, TEST_SCAN_S="1.5", **LONG_GRACE) as workers,
    ):
        worker = await workers.start()
        await worker.until_up()
        submission = record_of(await submit_skill("finishing", "slow"))
        await until_record(submission.id, lambda one: one.claim is not None)
        assert await worker.terminate() == 0
        record = await get_submission(submission.id)
        assert (record.state, record.attempts.started) == (State.PUBLISHED, 1)
        check_history(record)
        depth = await env.broker.depth()
        assert (depth.ready, depth.delayed, depth.leased) == (0, 0, 0)


async def test_a_stopping_worker_hands_back_what_takes_too_long(tmp_path: Path) -> None:
    """SIGTERM during a scan without end: it is RECEIVED again, counted nowhere, and the next worker takes it at
    once instead of after the end of a claim."""
    async with (
        open_test_env("sqlite", tmp_path, clock=SystemClock()) as env,
        workers_on(env.settings, tmp_path, TEST_SCAN_S="600", VSKILL_SHUTDOWN_GRACE_MS="300") as workers,
    ):
        worker = await workers.start()
        await worker.until_up()
        records = [record_of(await submit_skill(f"handed-back-{number}", "slow")) for number in range(3)]
        for record in records:
            await until_record(record.id, lambda one: one.claim is not None)
        assert await worker.terminate() == 0, worker.log.read_text("utf-8")
        for record in records:
            back = await get_submission(record.id)
            assert (back.state, back.claim, back.history[-1].reason) == (
                State.RECEIVED,
                None,
                "its worker is stopping",
            )
            assert (back.attempts.failed, back.attempts.interrupted, back.attempts.unavailable) == (0, 0, 0)
        assert (await queue_health()).violations == ()

        await (await workers.start(REAL_WORKER)).until_up()
        for record in records:
            ended = await until_record(record.id, lambda one: one.state.ends_run)
            assert (ended.state, ended.attempts.interrupted) == (State.PUBLISHED, 0)
            check_history(ended)


async def test_an_idle_worker_stops_at_once(tmp_path: Path) -> None:
    """Nothing to hand back: SIGTERM ends it long before its grace is over."""
    async with (
        open_test_env("sqlite", tmp_path, clock=SystemClock()) as env,
        workers_on(env.settings, tmp_path, **LONG_GRACE) as workers,
    ):
        worker = await workers.start(REAL_WORKER)
        await worker.until_up()
        assert await worker.terminate() == 0


async def test_what_one_process_submits_another_takes_up_by_itself(tmp_path: Path) -> None:
    """A worker that has been idle notices the message of another process; no schedule runs that could remind it."""
    async with (
        open_test_env("sqlite", tmp_path, clock=SystemClock()) as env,
        workers_on(env.settings, tmp_path) as workers,
    ):
        worker = await workers.start(REAL_WORKER)
        await worker.until_up()
        for number in range(3):
            await asyncio.sleep(0.7)
            submission = record_of(await submit_skill(f"noticed-{number}"))
            record = await until_record(submission.id, lambda one: one.state.ends_run)
            claimed = record.history[1]
            assert (record.state, claimed.to) == (State.PUBLISHED, State.TIER1_SCANNING)
            assert f"-{worker.pid}-" in claimed.actor
