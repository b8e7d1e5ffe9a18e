"""What work needs is tried before anybody's submission waits for it, and a worker says what it lacks."""

import asyncio

import msgspec
import pytest

from tests.support.envs import open_test_env, run_until_quiet, submit_skill
from tests.support.manual_clock import ManualClock
from tests.support.patience import PATIENCE_S
from vskill_core.errors import BlobUnavailable, Shortage
from vskill_core.findings import ScanStatus, StaticReport
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.ledger.blobs.memory import MemoryBlobs
from vskill_platform.queue.consumer import run_consumer
from vskill_platform.sources.router import UploadSource
from vskill_platform.store.operation.workers import WorkersSeen, look_at_workers
from vskill_platform.submission_store import count_submissions
from vskill_platform.tiers.pool import SCANNER
from vskill_platform.upkeep.work_needs import find_lack, find_scanner_lack
from vskill_platform.worker_context import Pace, run_with_worker_env

pytestmark = pytest.mark.anyio


class ShortScanner:
    """A scanner that cannot start until it can."""

    ruleset = "short"

    def __init__(self) -> None:
        self.is_short = True

    async def scan(self, _files: object) -> StaticReport:
        if self.is_short:
            raise Shortage("The scanner cannot be started at the moment: no memory.", host=SCANNER)
        return StaticReport(self.ruleset)


class BrokenScanner(ShortScanner):
    """A scanner whose child breaks."""

    async def scan(self, _files: object) -> StaticReport:
        return StaticReport(self.ruleset, ScanStatus.ERROR, problem="its rules cannot be read")


async def test_a_machine_with_everything_lacks_nothing(tmp_path):
    async with open_test_env("memory", tmp_path) as env:
        assert await find_lack() is None
        assert await find_scanner_lack(env) is None


async def test_a_scanner_that_breaks_is_a_lack(tmp_path):
    async with open_test_env("memory", tmp_path, scanner=BrokenScanner()) as env:
        lack = await find_scanner_lack(env)
        assert lack is not None
        assert "its rules cannot be read" in lack.message


async def seen_lacking(number: int) -> WorkersSeen:
    async with asyncio.timeout(PATIENCE_S):
        while len((seen := await look_at_workers()).lacks) != number or not seen.alive:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    return seen


async def test_a_worker_tells_of_its_scanner_before_there_is_work_and_when_it_is_well_again(tmp_path):
    scanner, stop = ShortScanner(), asyncio.Event()
    async with open_test_env("memory", tmp_path, scanner=scanner, pace=Pace(sign_every_s=0.01)) as env:
        working = asyncio.create_task(run_consumer(env, stop, tries_machine=True))
        assert (await seen_lacking(1)).lacks == ("The scanner cannot be started at the moment: no memory.",)
        scanner.is_short = False
        await seen_lacking(0)
        stop.set()
        await working


async def test_what_an_attempt_lacked_is_told_until_another_succeeds(tmp_path):
    scanner, clock = ShortScanner(), ManualClock()
    async with open_test_env("memory", tmp_path, scanner=scanner, clock=clock) as env:
        await submit_skill("honest")
        await run_until_quiet(env)
        assert isinstance(env.shortages.last, Shortage)
        scanner.is_short = False
        clock.advance(60_000)
        await run_until_quiet(env, recover=True)
        assert env.shortages.last is None


class AbsentBlobs(MemoryBlobs):
    """Content that is away until it is back."""

    is_away = False

    async def get(self, address: str) -> bytes | None:
        await self.check()
        return await super().get(address)

    async def check(self) -> None:
        if self.is_away:
            raise BlobUnavailable("the bucket is full")


async def test_a_worker_tells_that_content_is_back_before_the_next_attempt_comes(tmp_path):
    """After a long outage that is up to a quarter of an hour later, and until then nobody could work, as health says."""
    clock, stop = ManualClock(), asyncio.Event()
    blobs = AbsentBlobs(clock)
    async with open_test_env("memory", tmp_path, clock=clock, pace=Pace(sign_every_s=0.01)) as opened:
        env = msgspec.structs.replace(opened, blobs=blobs, sources=UploadSource(blobs))
        await run_with_worker_env(env, lambda: submit_skill("honest"))
        blobs.is_away = True
        async with asyncio.TaskGroup() as group:
            group.create_task(run_consumer(env, stop, tries_machine=True))
            await seen_lacking(1)
            blobs.is_away = False
            await seen_lacking(0)
            assert (await count_submissions(audiences=EVERYTHING)).active == 1
            stop.set()
