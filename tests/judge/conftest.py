"""A judge over a server on this machine, with the clock and the counters that the test looks at."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.judge.server import JudgeServer, judge_server
from tests.support.manual_clock import ManualClock
from vskill_platform.observing.logs import logger
from vskill_platform.observing.metrics import Metrics
from vskill_platform.settings import Settings
from vskill_platform.tiers.judge import HttpJudge, JudgeAddress, make_client

SECRET = "sk-do-not-tell"


class Bench:
    """One judge and everything around it."""

    def __init__(self, server: JudgeServer) -> None:
        self.server = server
        self.clock = ManualClock()
        self.metrics = Metrics()
        self.settings = Settings(
            judge_url=server.url, judge_model="m", judge_api_key=SECRET, judge_budget_ms=3_000
        )

    def count(self, outcome: str) -> float:
        return float(self.metrics.judge_calls.labels("first", outcome)._value.get())


@pytest.fixture
async def server() -> AsyncIterator[JudgeServer]:
    async with judge_server() as running:
        yield running


@pytest.fixture
async def bench(server) -> Bench:
    return Bench(server)


@pytest.fixture
async def open_judge(bench) -> AsyncIterator[Callable[..., Awaitable[HttpJudge]]]:
    clients = []

    async def make(new_marker: Callable[[], str] | None = None, **settings: object) -> HttpJudge:
        values = {name: getattr(bench.settings, name) for name in Settings.__struct_fields__}
        chosen = Settings(**{**values, **settings})
        clients.append(await asyncio.to_thread(make_client, chosen.judge_url, chosen))
        address = JudgeAddress("first", chosen.judge_url, chosen.judge_model, chosen.judge_api_key)
        options = {} if new_marker is None else {"new_marker": new_marker}
        return HttpJudge(
            clients[-1],
            address,
            chosen,
            clock=bench.clock,
            log=logger(),
            metrics=bench.metrics,
            **options,
        )

    yield make
    for client in clients:
        await client.aclose()


@pytest.fixture
async def judge(open_judge):
    return await open_judge()
