"""A store that is slow keeps nobody from hearing of it, and costs no claim that is renewed in time."""

import asyncio
import threading
from typing import cast

import msgspec
import pytest

from tests.support.envs import open_test_env
from tests.support.faults import HookedKV
from tests.support.manual_clock import ManualClock
from tests.support.patience import PATIENCE_S
from vskill_platform.domain import keys
from vskill_platform.ledger.blobs.files import WRITERS, FilesBlobs
from vskill_platform.ledger.broker.contract import Message
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.queue.consumer import run_consumer
from vskill_platform.queue.health import queue_health
from vskill_platform.queue.keeper import kept_alive
from vskill_platform.store.operation.workers import look_at_workers
from vskill_platform.worker_context import Pace

pytestmark = pytest.mark.anyio


class Renewals:
    """A claim and a lease, each renewed only while the other is being renewed."""

    def __init__(self) -> None:
        self._both = asyncio.Barrier(2)
        self.done = asyncio.Event()

    async def renew(self) -> None:
        await self._both.wait()
        self.done.set()

    async def extend(self) -> None:
        await self._both.wait()


async def test_a_claim_and_its_lease_are_renewed_at_the_same_time(tmp_path):
    """One after the other would take twice as long, of a time that a slow disk uses up already."""
    renewals = Renewals()
    async with (
        open_test_env("memory", tmp_path, pace=Pace(renew_every_ms=1)),
        kept_alive(cast("Message", renewals)) as keeper,
        asyncio.timeout(PATIENCE_S),
    ):
        keeper.claim = renewals
        await renewals.done.wait()


async def test_a_workers_sign_tells_how_long_the_one_before_took(tmp_path):
    clock = ManualClock()
    async with open_test_env("memory", tmp_path, clock=clock) as opened:
        kv = HookedKV(opened.kv)
        stop = asyncio.Event()

        async def slow_signs(operations) -> None:
            if any(isinstance(one, Put) and one.key.startswith(keys.worker.prefix) for one in operations):
                clock.advance(1_600)

        kv.before_commit = slow_signs
        env = msgspec.structs.replace(opened, kv=kv, pace=Pace(sign_every_s=0.01))
        working = asyncio.create_task(run_consumer(env, stop))
        async with asyncio.timeout(PATIENCE_S):
            while (await look_at_workers()).write_ms < 1_600:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
        stop.set()
        await working


async def test_queue_health_answers_while_every_writer_of_content_waits_for_its_disk(tmp_path):
    """With 1.5 s a flush it took 20 s: reads of the store waited for threads that wrote content."""
    async with open_test_env("sqlite", tmp_path) as env:
        assert isinstance(env.blobs, FilesBlobs)
        disk = SlowDisk()
        blobs = await SlowFiles.open_on(tmp_path / "slow", disk)
        writing = [asyncio.create_task(blobs.put(f"{number:064x}", b"x")) for number in range(4 * WRITERS)]
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.to_thread(disk.full.wait)
            assert (await queue_health()).violations == ()
        assert not any(task.done() for task in writing)
        disk.goes_on.set()
        await asyncio.gather(*writing)


class SlowDisk:
    """Every flush waits until it goes on."""

    def __init__(self) -> None:
        self.full = threading.Event()
        self.goes_on = threading.Event()
        self._count = 0

    def flush(self) -> None:
        self._count += 1
        if self._count == WRITERS:
            self.full.set()
        assert self.goes_on.wait(PATIENCE_S)


class SlowFiles(FilesBlobs):
    """Content on a slow disk."""

    disk: SlowDisk

    @classmethod
    async def open_on(cls, root, disk: SlowDisk) -> "SlowFiles":
        blobs = cls(root)
        await asyncio.to_thread(blobs._prepare)
        blobs.disk = disk
        return blobs

    def _put(self, address: str, data: bytes, *, replace: bool) -> None:
        self.disk.flush()
        super()._put(address, data, replace=replace)
