"""Real processes on one SQLite file, killed with `kill -9` in the middle of their work."""

import os
import random
import sqlite3
import time
from pathlib import Path

import pytest

from tests.incidents.steps import check_history, record_of
from tests.processes.workers import REAL_WORKER, WorkerProcess, Workers, until, until_record, workers_on
from tests.support.envs import open_test_env, skill_files, submit_skill
from tests.support.patience import PATIENCE_S
from tests.support.system_reads import get_run, get_submission
from vskill_core.content import digest_of_files
from vskill_core.identity import submission_id, upload_identity
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions.attempts import CLAIM_MS, MAX_INTERRUPTED, SUSPECT_INTERRUPTED
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.queue.health import queue_health
from vskill_platform.store.skills.skills import get_skill, get_version
from vskill_platform.submission_store import count_submissions
from vskill_platform.worker_context import Env

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

#: How many kills; `make test-long` does fifty.
KILLS = int(os.environ.get("KILLS", "10"))

#: Claims of a twenty-fifth of their real length, for the tests of many deaths.
SHORT_CLAIM = {"TEST_CLAIM_MS": "600"}


async def test_B8_killed_in_the_middle_of_a_submission(tmp_path: Path) -> None:
    """With every real time limit: another process takes the work up when the claim of 15 s ends, and it ends once (b)."""
    async with (
        open_test_env("sqlite", tmp_path, clock=SystemClock()) as env,
        workers_on(env.settings, tmp_path, TEST_SCAN_S="600") as workers,
    ):
        victim = await workers.start()
        await victim.until_up()
        submission = record_of(await submit_skill("interrupted", "slow"))
        held = await until_record(submission.id, lambda one: one.claim is not None)
        assert held.claim is not None and held.claim.until - held.updated_at <= CLAIM_MS == 15_000
        assert f"-{victim.pid}-" in held.claim.worker
        other = await workers.start(REAL_WORKER)
        await other.until_up()
        await victim.kill()
        taken = await until_record(submission.id, lambda one: one.attempts.interrupted == 1)
        record = await until_record(submission.id, lambda one: one.state.ends_run)
        assert taken.claim is None or f"-{other.pid}-" in taken.claim.worker
        assert [(event.to, _who(event.actor, victim, other)) for event in record.history] == [
            (State.RECEIVED, "system"),
            (State.TIER1_SCANNING, "victim"),
            (State.RECEIVED, "other"),
            (State.TIER1_SCANNING, "other"),
            (State.AUTO_APPROVED, "other"),
            (State.PUBLISHED, "other"),
        ]
        assert record.history[2].reason == "its worker's claim expired"
        assert (record.attempts.interrupted, record.attempts.failed, record.attempts.started) == (1, 0, 2)
        check_history(record)
        await check_published_once(record)
        await check_nothing_owed(env)
        assert await other.terminate() == 0


def _who(actor: str, victim: WorkerProcess, other: WorkerProcess) -> str:
    names = {victim.pid: "victim", other.pid: "other"}
    return next((name for pid, name in names.items() if f"-{pid}-" in actor), actor)


async def test_B8_kills_in_a_row_lose_nothing(tmp_path: Path) -> None:
    """More submissions than kills, some submitted again with new content meanwhile, three workers, and every little while
    one of them is killed: every last content is published, once, with a history without a gap."""
    chance = random.Random(50)
    names = [f"skill-{number:02}" for number in range(KILLS + KILLS // 5)]
    waiting = list(names)
    latest = dict.fromkeys(names, "slow, first")
    async with (
        open_test_env("sqlite", tmp_path, clock=SystemClock()) as env,
        workers_on(
            env.settings,
            tmp_path,
            TEST_SCAN_S="0.2-0.9",
            VSKILL_MAX_CONCURRENCY="2",
            **SHORT_CLAIM,
        ) as workers,
    ):
        alive = [await workers.start() for _ in range(3)]
        for worker in alive:
            await worker.until_up()
        kills = killed_at_work = 0
        while kills < KILLS:
            for name in waiting[: 1 + kills % 2]:
                await submit_skill(name, latest[name])
                waiting.remove(name)
            if kills % 5 == 4:
                again = chance.choice([name for name in names if name not in waiting])
                latest[again] = f"slow, at kill {kills}"
                await submit_skill(again, latest[again])
            await _sleep(chance.uniform(0.05, 0.7))
            # Every other kill is of one that holds something, however slowly they start; the rest come as they come.
            victim = await _at_work(alive, names, waiting) if kills % 2 else chance.choice(alive)
            alive.remove(victim)
            await victim.kill()
            kills += 1
            killed_at_work += await _held_by(victim, names, waiting)
            alive.append(await workers.start())
        for name in waiting:
            await submit_skill(name, latest[name])
        for worker in alive[1:]:
            await worker.kill()
        ids = {name: submission_id(upload_identity("tests", name)) for name in names}
        await until(_all_ended(ids), PATIENCE_S, "some submissions have not ended")

        assert (await count_submissions(audiences=EVERYTHING)).total == len(names)
        assert killed_at_work >= KILLS // 5, "the kills did not hit anything"
        interrupted = 0
        for name, number in ids.items():
            record = await get_submission(number)
            assert record.state is State.PUBLISHED, (name, record.history[-1])
            assert record.digest == digest_of_files(skill_files(name, latest[name]))
            interrupted += await check_runs(record)
            await check_published_once(record)
        assert interrupted >= killed_at_work
        await check_nothing_owed(env)
    check_file(tmp_path / "vskill.db")


async def _sleep(seconds: float) -> None:
    began = time.monotonic()

    async def over() -> bool:
        return time.monotonic() - began >= seconds

    await until(over, seconds + PATIENCE_S, "time stands still")


async def _at_work(alive: list[WorkerProcess], names: list[str], waiting: list[str]) -> WorkerProcess:
    """Whoever holds something first; after a while anybody."""
    for _ in range(60):
        for worker in alive:
            if await _held_by(worker, names, waiting):
                return worker
        await _sleep(0.05)
    return alive[0]


async def _held_by(victim: WorkerProcess, names: list[str], waiting: list[str]) -> int:
    """How many submissions a process holds."""
    found = 0
    for name in names:
        if name not in waiting:
            claim = (await get_submission(submission_id(upload_identity("tests", name)))).claim
            found += claim is not None and f"-{victim.pid}-" in claim.worker
    return found


def _all_ended(ids: dict[str, str]):
    async def check() -> bool:
        counts = await count_submissions(audiences=EVERYTHING)
        return counts.active == 0 and counts.total == len(ids)

    return check


async def check_runs(record: Submission) -> int:
    """Every run has a gapless history and they follow on each other; how often a worker died over it."""
    runs = [await get_run(record.id, number) for number in range(1, record.run + 1)]
    for run in runs:
        check_history(run)
        assert run.attempts.interrupted < MAX_INTERRUPTED
        deaths = [event for event in run.history if event.reason.endswith(" expired")]
        assert len(deaths) <= run.attempts.interrupted, "a death in AUTO_APPROVED is counted without a step"
    sequence = [event.seq for run in runs for event in run.history]
    assert sequence == list(range(1, len(sequence) + 1))
    return sum(run.attempts.interrupted for run in runs)


async def check_published_once(record: Submission) -> None:
    """The skill's current version is the record's content, and no content became two versions in a row."""
    assert record.published is not None
    skill = await get_skill(record.published.removeprefix("skill:"))
    assert (skill.current_digest, skill.current_version) == (record.digest, record.published_version)
    digests = [ref.digest for ref in skill.versions]
    assert len(digests) == len(set(digests)) <= record.run
    for ref in skill.versions:
        assert (await get_version(skill.canonical, ref.number)).digest == ref.digest


async def check_nothing_owed(env: Env) -> None:
    """Queue health is empty, and so is the queue once the last message has been settled."""

    async def empty() -> bool:
        depth = await env.broker.depth()
        return (depth.ready, depth.delayed, depth.leased) == (0, 0, 0)

    await until(empty, PATIENCE_S, "messages are left on the queue")
    health = await queue_health()
    assert (health.violations, health.oldest_waiting_ms, health.counts.active) == ((), None, 0)
    assert (await env.broker.depth()).dead == 0


def check_file(path: Path) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


async def test_B8_a_poison_submission_takes_nothing_down_with_it(tmp_path: Path) -> None:
    """It kills its worker every time: after ten deaths a person must look at it, from the third on it ran alone,
    and everything that was beside it is published (d)."""
    scans = tmp_path / "scans"
    async with (
        open_test_env("sqlite", tmp_path, clock=SystemClock()) as env,
        workers_on(
            env.settings, tmp_path, TEST_SCAN_S="0.3", TEST_SCANS=str(scans), **SHORT_CLAIM
        ) as workers,
    ):
        poison = record_of(await submit_skill("deadly", "poison"))
        beside = [record_of(await submit_skill(f"beside-{number}", "slow")) for number in range(4)]
        deaths = await _restart_until_ended(workers, poison, beside)
        record = await get_submission(poison.id)
        assert (record.state, record.attempts.interrupted, deaths) == (State.NEEDS_REVIEW, 10, 10)
        assert "its worker died 10 times over this submission" in record.history[-1].reason
        check_history(record)
        for other in beside:
            ended = await until_record(other.id, lambda one: one.state.ends_run)
            assert ended.state is State.PUBLISHED
            assert ended.attempts.interrupted <= SUSPECT_INTERRUPTED
        company = [
            line.split()[2] for line in scans.read_text("utf-8").splitlines() if line.split()[1] == "deadly"
        ]
        assert len(company) == 10
        assert company[SUSPECT_INTERRUPTED:] == ["deadly"] * 7
        # Claims this short end now and then on a loaded machine, and a message whose lease has passed on is only
        # acked: the record is the truth about the end, the dead letter a hint.
        letters = (await env.broker.dead_letters()).items
        assert {letter.key for letter in letters} <= {f"{poison.id}:1"}
        assert (await queue_health()).violations == ()


async def _restart_until_ended(workers: Workers, poison: Submission, beside: list[Submission]) -> int:
    """Start a worker whenever it has died, each time with fresh work beside the poison; how many died."""
    deaths = 0
    worker = await workers.start()

    async def settled() -> bool:
        nonlocal deaths, worker
        if not worker.running:
            deaths += 1
            beside.append(record_of(await submit_skill(f"later-{deaths}", "slow")))
            worker = await workers.start()
        return (await get_submission(poison.id)).state.ends_run

    await until(settled, 2 * PATIENCE_S, "the poison submission has not ended")
    return deaths
