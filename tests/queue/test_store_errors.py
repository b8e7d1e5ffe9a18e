"""What the record store refuses is the registry's own trouble: it is no death, and no failure, of what was worked on."""

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from tests.support.envs import open_test_env, run_batch, run_until_quiet, submit_skill
from tests.support.faults import HookedKV, state_written
from tests.support.manual_clock import ManualClock
from tests.support.system_reads import get_submission
from vskill_core.errors import StoreCorrupt, StoreUnavailable
from vskill_platform.domain.submissions.attempts import CLAIM_MS
from vskill_platform.domain.submissions.states import State
from vskill_platform.ledger.database.failures import translate
from vskill_platform.ledger.kv.entries import Operation
from vskill_platform.stages.rescan import RESCAN
from vskill_platform.store.tasks import ask_for, claim_task, read_task
from vskill_platform.worker_context import Env, Pace

pytestmark = pytest.mark.anyio


async def receive_and_work(env: Env) -> None:
    for batch in await env.broker.receive(1, 0, 1):
        await run_batch(env, batch)


async def test_a_write_that_the_store_refuses_again_and_again_waits_for_the_store(tmp_path):
    """As where SQLite finds no folder for a temporary file: smaller writes succeed."""
    clock = ManualClock()
    async with open_test_env("memory", tmp_path, clock=clock) as opened:
        kv = HookedKV(opened.kv)

        async def refuse(operations: Sequence[Operation]) -> None:
            if state_written(operations) is State.PUBLISHED:
                clock.advance(1_000)
                raise StoreUnavailable("disk I/O error")

        kv.before_commit = refuse
        env = msgspec.structs.replace(opened, kv=kv)
        submitted = await submit_skill("honest")
        assert submitted.submission is not None
        await receive_and_work(env)
        record = await get_submission(submitted.submission.id)
        assert record.state is State.RECEIVED
        assert record.attempts.waiting_for == "the record store"
        assert (record.attempts.unavailable, record.attempts.interrupted, record.attempts.failed) == (1, 0, 0)
        kv.before_commit = None
        clock.advance(60_000)
        await run_until_quiet(env, recover=True)
        assert (await get_submission(record.id)).state is State.PUBLISHED


async def test_damage_in_the_store_is_no_failure_of_the_content(tmp_path):
    async with open_test_env("memory", tmp_path) as opened:
        kv = HookedKV(opened.kv)

        async def refuse(operations: Sequence[Operation]) -> None:
            if state_written(operations) is State.PUBLISHED:
                raise StoreCorrupt

        kv.before_commit = refuse
        submitted = await submit_skill("honest")
        assert submitted.submission is not None
        await receive_and_work(msgspec.structs.replace(opened, kv=kv))
        attempts = (await get_submission(submitted.submission.id)).attempts
        assert (attempts.waiting_for, attempts.failed) == ("the record store", 0)


@pytest.mark.slow
async def test_a_store_that_is_away_for_longer_than_a_claim_is_no_death(tmp_path):
    clock = ManualClock()
    async with open_test_env("memory", tmp_path, clock=clock) as opened:
        kv = HookedKV(opened.kv)

        async def break_off(_operations: Sequence[Operation]) -> None:
            if state_written(_operations) is State.PUBLISHED or kv.failing:
                kv.failing = {"get"}
                clock.advance(CLAIM_MS // 3)
                raise StoreUnavailable("the server is away")

        kv.before_commit = break_off
        env = msgspec.structs.replace(opened, kv=kv, pace=Pace(pause_after_error_s=0.01))
        submitted = await submit_skill("honest")
        assert submitted.submission is not None
        await receive_and_work(env)
        held = await opened.kv.get(submitted.submission.key)
        assert held is not None
        assert b'"claim":{' in held.value
        kv.before_commit, kv.failing = None, set()
        clock.advance(2 * CLAIM_MS)
        await run_until_quiet(env, recover=True)
        record = await get_submission(submitted.submission.id)
        assert record.state is State.PUBLISHED
        assert record.attempts.interrupted == 0
        assert "the record store was unavailable until its worker's claim expired" in [
            event.reason for event in record.history
        ]


async def test_the_same_holds_for_a_task(tmp_path):
    clock = ManualClock()
    async with open_test_env("memory", tmp_path, clock=clock) as env:
        await ask_for(RESCAN, "one", {})
        await claim_task(RESCAN, "one", 1)
        clock.advance(CLAIM_MS)
        env.shortages.store_failed_at = clock.now()
        clock.advance(CLAIM_MS // 2)
        await claim_task(RESCAN, "one", 1)
        task, _ = await read_task(RESCAN, "one")
        assert task is not None
        assert task.attempts.interrupted == 0
        clock.advance(3 * CLAIM_MS)
        await claim_task(RESCAN, "one", 1)
        task, _ = await read_task(RESCAN, "one")
        assert task is not None
        assert task.attempts.interrupted == 1


async def test_sqlite_without_a_folder_for_temporary_files_says_what_to_do():
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_GETTEMPPATH
    found = await asyncio.to_thread(translate, error, Path("data/vskill.db"))
    assert isinstance(found, StoreUnavailable)
    assert "TMPDIR" in found.message
