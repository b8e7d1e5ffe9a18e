"""What `serve` does about a worker process that ends, hangs or babbles."""

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise
from typing import NoReturn

import msgspec
import pytest

from tests.support.patience import PATIENCE_S
from vskill_platform.cli.operation.role_process import Patience, RoleProcess
from vskill_platform.machine.child_processes import start_own
from vskill_platform.settings import Settings

pytestmark = pytest.mark.anyio


class Log(list):
    """What was logged."""

    def info(self, event: str, **fields: object) -> None:
        self.append({"event": event, **fields})

    error = info


@pytest.fixture
def said():
    return Log()


IMPATIENT = Patience(answer_s=0.05, ask_every_s=0.05, hung_s=0.05, first_pause_s=0.05, end_s=0.05)
#: One that ends by itself has all the time that it needs for that.
PATIENT = msgspec.structs.replace(IMPATIENT, ask_every_s=PATIENCE_S, hung_s=PATIENCE_S)


ODD = partial(start_own, "tests.cli.odd_worker")


@asynccontextmanager
async def supervised(said, start=ODD, patience=PATIENT):
    stop, worker = asyncio.Event(), RoleProcess(Settings(shutdown_grace_ms=1), said, start, patience)
    running = asyncio.create_task(worker.run(stop))
    try:
        yield worker
    finally:
        stop.set()
        await running


async def until_said(said, event: str, times: int) -> list[dict]:
    async with asyncio.timeout(PATIENCE_S):
        while len(found := [line for line in said if line["event"] == event]) < times:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    return found


async def test_one_that_fails_at_its_start_is_started_again_ever_more_seldom(said, monkeypatch):
    monkeypatch.setenv("ODD", "ends")
    async with supervised(said) as worker:
        ends = await until_said(said, "child process ended", 4)
        assert list(await worker.counts()) == []
    assert {line["ending"] for line in ends} == {"exit code 3"}
    pauses = [line["starts_again_in_s"] for line in ends]
    assert all(later == 2 * sooner for sooner, later in pairwise(pauses))


async def test_a_signal_without_a_name_is_told_by_its_number(said, monkeypatch):
    monkeypatch.setenv("ODD", "signal")
    async with supervised(said):
        (first, *_) = await until_said(said, "child process ended", 1)
    assert first["ending"] == "signal 35"


async def test_one_that_cannot_be_started_is_tried_again(said):
    async def refuse() -> NoReturn:
        raise OSError("no process is left")

    async with supervised(said, refuse):
        found = await until_said(said, "child process ended", 2)
    assert {line["ending"] for line in found} == {"not started: no process is left"}


@pytest.mark.parametrize("kind", ["hangs", "babbles", "deaf"])
async def test_one_that_does_not_answer_is_killed_and_started_again(said, monkeypatch, kind):
    """Meanwhile whoever asks for counts is answered."""
    monkeypatch.setenv("ODD", kind)
    async with supervised(said, patience=IMPATIENT) as worker:
        assert list(await worker.counts()) == []
        await until_said(said, "child process killed", 1)
        ends = await until_said(said, "child process ended", 1)
        await until_said(said, "child process started", 2)
    assert ends[0]["ending"] == "SIGKILL"
