"""What a job costs with one and with several processes: the ratios are computed from what was measured, and one
backlog goes through real processes. Nothing here looks at how long anything took."""

import asyncio
import os
from pathlib import Path

import msgspec
import pytest

from bench.processes import cpu_seconds, family, memory_mb, table
from bench.scaling import ALONE, FOUR, ONE, Sample, Servers, Setup, goals, measure, report
from tests.support import nats, postgres

pytestmark = pytest.mark.slow

SAMPLE = Sample(
    jobs=100,
    rate=50.0,
    worker_cpu=1.0,
    web_cpu=0.1,
    postgres_cpu=0.8,
    nats_cpu=0.1,
    worker_mb=80.0,
    worker_family_mb=160.0,
    web_mb=60.0,
    database_bytes=9_000.0,
    content_bytes=4_096.0,
)


def test_goals_are_ratios_to_one_worker_beside_the_same_web_processes():
    slower = msgspec.structs.replace(SAMPLE, worker_cpu=1.3, rate=40.0)
    found = {
        goal.name: goal
        for goal in goals({ONE: [SAMPLE], FOUR: [slower], Setup(1, 4): [SAMPLE], ALONE: [SAMPLE]})
    }
    assert [round(goal.value, 2) for goal in found.values()] == [1.3, 1.15, 0.8]
    assert [goal.met for goal in found.values()] == [False, True, False]
    assert all("4 web, 4 workers ÷ 4 web, 1 worker" in name for name in found)


def test_every_setup_has_its_figures_and_sqlite_has_no_servers():
    found = report(1_000, {ONE: [SAMPLE], FOUR: [SAMPLE], ALONE: [SAMPLE]})
    medians = {figure.name: figure.median for figure in found.figures}
    assert medians["4 web, 1 worker: CPU of all"] == pytest.approx(20.0)
    assert medians["serve on SQLite: CPU of the workers"] == pytest.approx(10.0)
    assert not any("SQLite" in name and "PostgreSQL" in name for name in medians)


def test_a_process_is_counted_with_what_it_started():
    known = table()
    assert os.getpid() in family(os.getppid(), known)
    assert cpu_seconds([os.getpid()]) > 0
    assert memory_mb(os.getpid()) > 1


def test_a_backlog_goes_through_real_processes(tmp_path: Path):
    servers = Servers(postgres.Server(), nats.Server())
    try:
        sample = asyncio.run(measure(servers, Setup(2, 1), 10, tmp_path))
    finally:
        servers.postgres.remove()
        servers.nats.remove()
    assert sample.worker_cpu > 0 and sample.postgres_cpu > 0
    assert sample.database_bytes > 0 and sample.content_bytes > 0
    assert not list(tmp_path.iterdir()), "a run leaves nothing behind"
