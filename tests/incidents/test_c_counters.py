"""Incidents of section C: numbers that were wrong, stale, or an error that looked like zero."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path

import httpx2
import msgspec
import pytest

from tests.incidents.steps import awaiting_review, pass_time, record_of
from tests.support.acting import approve, cancel, reject, run_again
from tests.support.envs import (
    active_env,
    make_submission,
    open_test_env,
    put_record,
    run_until_quiet,
    submit_skill,
)
from tests.support.faults import HookedKV
from tests.support.patience import PATIENCE_S
from vskill_core.errors import StoreUnavailable
from vskill_core.state_words import MEANING
from vskill_platform.actions.submissions.submission_views import stats_view
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions.states import (
    FLAGS,
    TRANSITIONS,
    Flag,
    State,
    StateCategory,
    category_of,
    states_in,
)
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.kv.collections import SUBMISSIONS
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.queue.health import queue_health
from vskill_platform.queue.job_health import job_health
from vskill_platform.queue.jobs import Job, JobState
from vskill_platform.queue.schedule import run_job, run_schedule
from vskill_platform.store.submissions.submission_lists import find_submissions
from vskill_platform.submission_store import (
    count_submissions,
    enumerate_published_skills,
    get_stuck_submissions,
    get_submissions_fresh,
)
from vskill_platform.web.app import create_app
from vskill_platform.worker_context import Env

pytestmark = pytest.mark.anyio


async def recount(env: Env) -> dict[State, int]:
    """The truth, the slow way: every record, one by one."""
    counts = dict.fromkeys(State, 0)
    async for page in iterate_pages(env.kv, SUBMISSIONS.prefix):
        for entry in page.items:
            counts[msgspec.json.decode(entry.value, type=Submission).state] += 1
    return counts


async def test_C2_counts_follow_every_write(env: Env) -> None:
    """After many mixed steps the counts are what a recount of the records gives."""
    chance = random.Random(2)
    reviewed = [await awaiting_review(env, f"reviewed-{number}") for number in range(4)]
    await approve(reviewed[0].id, by="admin:eve", reason="fine")
    await reject(reviewed[1].id, by="admin:eve", reason="no")
    await cancel(reviewed[2].id, by="user:ann", reason="never mind")
    names = [f"mixed-{number}" for number in range(12)]
    for step in range(80):
        submission = record_of(await submit_skill(chance.choice(names), f"step {chance.randrange(5)}"))
        if chance.random() < 0.3:
            await run_until_quiet(env)
        elif submission.state.ends_run and chance.random() < 0.5:
            await run_again(submission.id, by="admin:eve", reason="again")
        elif not submission.state.terminal and chance.random() < 0.3:
            await cancel(submission.id, by="user:ann", reason="never mind")
        if step % 25 == 0:
            assert (await count_submissions(audiences=EVERYTHING)).by_state == await recount(env)
    await env.kv.delete(reviewed[3].key)
    counts = await count_submissions(audiences=EVERYTHING)
    assert counts.by_state == await recount(env)
    assert counts.unreadable == 0
    assert counts.total == 15


async def test_C2_active_means_active(env: Env) -> None:
    """Hundreds that ended long ago are not active; five that are, are."""
    for number in range(40):
        await submit_skill(f"done-{number}")
    await run_until_quiet(env)
    for number in range(5):
        await submit_skill(f"open-{number}")
    assert (await count_submissions(audiences=EVERYTHING)).active == 5


@pytest.fixture
async def client(env: Env) -> AsyncIterator[httpx2.AsyncClient]:
    """The web side over a store whose reads a test can make fail."""
    kv = HookedKV(env.kv)
    transport = httpx2.ASGITransport(create_app(msgspec.structs.replace(env, kv=kv)))
    async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as opened:
        opened.kv = kv  # type: ignore[attr-defined]
        yield opened


@pytest.mark.parametrize("address", ["/api/v1/submissions/stats", "/api/v1/queue/health"])
async def test_C4_a_failed_count_is_a_503_and_never_zero(
    env: Env, client: httpx2.AsyncClient, address: str
) -> None:
    """Unknown is unknown, with the reason and when to ask again (m); the numbers are back with the store."""
    await submit_skill("counted")
    good = await client.get(address)
    assert good.status_code == 200
    client.kv.failing = {"count_by"}  # type: ignore[attr-defined]
    bad = await client.get(address)
    assert bad.status_code == 503
    assert int(bad.headers["retry-after"]) > 0
    assert bad.json()["code"] == "store_unavailable"
    assert not {"total", "counts", "violations", "byState"} & set(bad.json())
    client.kv.failing = set()  # type: ignore[attr-defined]
    assert (await client.get(address)).status_code == 200


async def test_C4_metrics_leave_out_what_they_do_not_know(env: Env, client: httpx2.AsyncClient) -> None:
    """A scrape during an outage has no count of submissions, and the rest of the metrics (m)."""
    await submit_skill("counted")
    assert 'vskill_submissions{state="RECEIVED"} 1.0' in (await client.get("/metrics")).text
    client.kv.failing = {"count_by"}  # type: ignore[attr-defined]
    during = await client.get("/metrics")
    assert during.status_code == 200
    assert "vskill_submissions{" not in during.text
    assert "vskill_transitions_total" in during.text


async def test_C5_a_job_that_fails_in_silence_is_seen(env: Env) -> None:
    """Its record says when it last succeeded and what went wrong since; after three intervals it is stale (n)."""
    fails = False

    async def collect(state: JobState) -> JobState:
        if fails:
            raise RuntimeError("the table is gone")
        return {"rounds": int(state.get("rounds") or 0) + 1}

    job = Job("statistics", "for this test", 1_000, 500, "", collect)
    assert await run_job(job)
    (fresh,) = await job_health((job,))
    assert (fresh.stale, fresh.last_success, fresh.last_error) == (False, env.kv.now(), None)
    succeeded, fails = env.kv.now(), True
    for _ in range(21):
        pass_time(env, 1_000)
        assert await run_job(job)
    (stale,) = await job_health((job,))
    assert (stale.stale, stale.last_success, stale.last_error) == (True, succeeded, "the table is gone")
    assert stale.last_start == env.kv.now(), "it was tried, and that is known too"
    fails = False
    pass_time(env, 1_000)
    assert await run_job(job)
    (again,) = await job_health((job,))
    assert not again.stale
    rounds = await env.kv.get("job:statistics")
    assert rounds is not None
    assert b'"rounds":2' in rounds.value, "it went on from where it had succeeded"


async def test_C5_every_job_shows_in_health(env: Env) -> None:
    """A job that never ran is stale, not absent (n)."""
    jobs = (await queue_health()).jobs
    assert {job.name for job in jobs} >= {"recovery", "blocklist", "sweep"}
    assert all(job.stale and job.last_success is None for job in jobs)


@pytest.mark.parametrize(
    "ask",
    [
        partial(find_submissions, audiences=EVERYTHING),
        partial(count_submissions, audiences=EVERYTHING),
        get_stuck_submissions,
        queue_health,
        enumerate_published_skills,
    ],
    ids=["find_submissions", "count_submissions", "get_stuck", "queue_health", "enumerate_published_skills"],
)
async def test_C7_a_failed_read_is_not_an_empty_list(env: Env, ask: Callable[[], Awaitable[object]]) -> None:
    """Lists and counts raise where the store does; none of them answers with nothing (j)."""
    await submit_skill("there")
    kv = HookedKV(env.kv)
    kv.failing = {"get", "get_many", "list", "scan", "select", "count_by"}
    with active_env(env, kv=kv), pytest.raises(StoreUnavailable):
        await ask()


async def test_C7_a_database_that_is_gone_is_an_error(tmp_path: Path) -> None:
    """On the file itself: once it is closed every question fails, and none says "no items"."""
    async with open_test_env("sqlite", tmp_path) as env:
        record = record_of(await submit_skill("there"))
        await env.kv.close()
        await env.broker.close()
        for ask in (find_submissions, count_submissions):
            with pytest.raises(StoreUnavailable):
                await ask(audiences=EVERYTHING)
        for ask_all in (enumerate_published_skills, queue_health):
            with pytest.raises(StoreUnavailable):
                await ask_all()
        settled = await env.kv.get_many([record.key])
        assert (settled.found, settled.missing, list(settled.failed)) == ({}, (), [record.key])


async def test_C7_a_malformed_record_hides_no_other(env: Env) -> None:
    """It is left out, counted, and named by queue health."""
    good = record_of(await submit_skill("good"))
    await env.kv.put("sub:sub_broken", b"{")
    assert [one.id for one in await get_submissions_fresh(["sub_broken", good.id])] == [good.id]
    counts = await count_submissions(audiences=EVERYTHING)
    assert (counts.total, counts.unreadable) == (2, 1)
    health = await queue_health()
    assert [one.key for one in health.violations] == ["sub:sub_broken"]


async def test_C11_one_job_keeps_no_other_from_running(env: Env) -> None:
    """Twelve jobs: the first hangs, the second fails, and the last ten run; each has its own record and budget."""
    ran: set[str] = set()

    async def hang(_: JobState) -> JobState:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async def fail(_: JobState) -> JobState:
        raise RuntimeError("broken")

    def noting(name: str) -> Job:
        async def run(_: JobState) -> JobState:
            ran.add(name)
            return {}

        return Job(name, "for this test", 1_000, 500, "", run)

    stop = asyncio.Event()
    jobs = [
        Job("hangs", "for this test", 1_000, 60_000, "", hang),
        Job("fails", "for this test", 1_000, 500, "", fail),
        *(noting(f"job-{number}") for number in range(10)),
    ]
    schedule = asyncio.create_task(run_schedule(env, stop, jobs))
    async with asyncio.timeout(PATIENCE_S):
        while True:
            by_name = {one.name: one for one in await job_health(jobs)}
            if len([one for one in by_name.values() if one.last_success or one.last_error]) == 11:
                break
            await asyncio.sleep(0.01)
    stop.set()
    await schedule
    assert len(ran) == 10
    assert (by_name["fails"].last_error, by_name["fails"].last_success) == ("broken", None)
    assert by_name["hangs"].last_success is None
    assert len([one for one in by_name.values() if one.last_success is not None]) == 10


async def test_C11_a_job_that_hangs_ends_at_its_budget(env: Env) -> None:
    """Its time is over, that is written down, and the next tick runs."""

    async def hang(_: JobState) -> JobState:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    job = Job("hangs", "for this test", 1_000, 30, "", hang)
    assert await run_job(job)
    (health,) = await job_health((job,))
    assert health.last_error
    pass_time(env, 1_000)
    assert await run_job(job)


async def test_C13_one_definition_of_every_count(env: Env, client: httpx2.AsyncClient) -> None:
    """Statistics, queue health, metrics and lists agree, in every state (l)."""
    for number, state in enumerate(State):
        for copy in range(number + 1):
            await put_record(env, make_submission(f"{state.lower()}-{copy}", state=state, at=env.kv.now()))
    expected = {state.value: number + 1 for number, state in enumerate(State)}
    counts = await count_submissions(audiences=EVERYTHING)
    assert {state.value: count for state, count in counts.by_state.items()} == expected
    assert (await queue_health()).counts == counts
    stats = (await client.get("/api/v1/submissions/stats")).json()
    assert list(stats.values()) == list(msgspec.to_builtins(stats_view(counts)).values())
    metrics = (await client.get("/metrics")).text
    for state in State:
        listed = await find_submissions(states=[state], limit=100, audiences=EVERYTHING)
        assert len(listed.items) == expected[state.value]
        assert f'vskill_submissions{{state="{state.value}"}} {expected[state.value]}.0' in metrics


def test_C14_category_is_total_over_the_states() -> None:
    """Every state is in exactly one category, has flags, a meaning and a row of transitions."""
    assert set(FLAGS) == set(MEANING) == set(TRANSITIONS) == set(State)
    members = [state for category in StateCategory for state in states_in(category)]
    assert sorted(members) == sorted(State)
    assert all(state in states_in(category_of(state)) for state in State)


def test_C14_every_state_is_active_or_at_rest() -> None:
    """No state is forgotten by what watches for stuck work: each is active, waits for a person, or is terminal."""
    kinds = (Flag.ACTIVE, Flag.WAITING, Flag.TERMINAL)
    assert all(sum(kind in FLAGS[state] for kind in kinds) == 1 for state in State)
    assert all((Flag.STUCKABLE in FLAGS[state]) == state.moving for state in State)
