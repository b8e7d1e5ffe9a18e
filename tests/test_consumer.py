"""The consumer: isolation of concurrent batches, claims and attempts, settlement, and stopping without loss.

In test names `-` is written `_`. Here are AC-US3-03, AC-US3-05, TC-054 and TC-065.
"""

import asyncio
import contextvars
import errno
import functools
import os
import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest
import structlog

from tests.support.acting import cancel
from tests.support.compiled_rules import keep_compiled_rules
from tests.support.damage import lose
from tests.support.faults import DeafBroker, HookedKV, state_written
from tests.support.git_server import GitServer, git_server, skill_md
from tests.support.manual_clock import ManualClock
from tests.support.memory_env import memory_env
from tests.support.patience import PATIENCE_S
from tests.support.skills import skill_files
from tests.support.system_reads import get_submission
from vskill_core.content import SkillFile
from vskill_core.errors import SourceUnavailable, StoreUnavailable
from vskill_core.findings import StaticReport
from vskill_platform.bootstrap import env_for
from vskill_platform.domain.submissions.attempts import CLAIM_MS, MAX_INTERRUPTED, UNAVAILABLE_END_MS
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.intake.submit import submit_repository, submit_upload
from vskill_platform.queue import consumer
from vskill_platform.queue.consumer import handle_submission_queue, run_consumer
from vskill_platform.queue.control import pause_queue, resume_queue
from vskill_platform.queue.recovery import recover_stuck_submissions
from vskill_platform.settings import Settings
from vskill_platform.sources.contract import Fetched
from vskill_platform.store.claims import HeldClaim, claim_submission
from vskill_platform.submission_store import enumerate_published_skills
from vskill_platform.tiers.pool import PooledScanner
from vskill_platform.worker_context import Env, Pace, get_worker_env, run_with_worker_env
from vskill_scan.limits import Limits
from vskill_scan.reading.manifest import read_manifest

pytestmark = pytest.mark.anyio


class Scripted:
    """A scanner that does what a test says, and remembers whose environment it ran in."""

    ruleset = "scripted"

    def __init__(self, *steps: object) -> None:
        self.steps = list(steps)
        self.seen: list[Env | None] = []
        self.started = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.together = 0
        self.most_together = 0

    async def scan(self, files: tuple[SkillFile, ...]) -> StaticReport:
        self.together += 1
        self.most_together = max(self.most_together, self.together)
        self.started.set()
        try:
            for _ in range(5):
                self.seen.append(get_worker_env())
                await asyncio.sleep(0)
            await self.go_on.wait()
        finally:
            self.together -= 1
        step = self.steps.pop(0) if self.steps else None
        if isinstance(step, BaseException):
            raise step
        return step if isinstance(step, StaticReport) else StaticReport(self.ruleset)


async def submit(env: Env, slug: str, body: str = "") -> Submission:
    result = await run_with_worker_env(
        env, lambda: submit_upload(skill_files(slug, body), namespace="tests", slug=slug)
    )
    assert result.submission is not None
    return result.submission


async def work(env: Env, batches: int = 1) -> None:
    """Receive and handle what is visible now."""
    for batch in await env.broker.receive(3, 0, batches):
        await asyncio.create_task(handle_submission_queue(batch, env), context=contextvars.Context())


async def read(env: Env, submission: Submission) -> Submission:
    return await run_with_worker_env(env, lambda: get_submission(submission.id))


async def claimed_until(env: Env, submission: Submission) -> int:
    claim = (await read(env, submission)).claim
    assert claim is not None
    return claim.until


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


# Isolation.


class MeetingStages:
    """The git source and the scanner of one environment. Every fetch and every scan waits until all submissions of
    all environments have come as far, and no scan ends before the test lets this environment go on."""

    def __init__(self, env: Env, meetings: tuple[asyncio.Barrier, asyncio.Barrier, asyncio.Barrier]) -> None:
        self.inner = env
        self.before_fetch, self.before_scan, self.after_scan = meetings
        self.go_on = asyncio.Event()
        self.seen: list[Env | None] = []

    @property
    def ruleset(self) -> str:
        return self.inner.scanner.ruleset

    async def fetch(self, submission: Submission) -> Fetched:
        await self.before_fetch.wait()
        self.seen.append(get_worker_env())
        return await self.inner.sources.fetch(submission)

    async def scan(self, files: Sequence[SkillFile]) -> StaticReport:
        await self.before_scan.wait()
        report = await self.inner.scanner.scan(files)
        await self.after_scan.wait()
        await self.go_on.wait()
        self.seen.append(get_worker_env())
        return report


class Registry:
    """One of two registries in a process: its git host, its environment, what was submitted and what it logged."""

    def __init__(self, name: str, places: tuple[str, ...], server: GitServer) -> None:
        self.name = name
        self.places = places
        #: The place whose submission is cancelled while it is worked on.
        self.dropped = f"{name}/dropped"
        self.server = server
        self.logs = structlog.testing.LogCapture()
        self.submissions: dict[str, Submission] = {}
        for place in places:
            server.repo(place, {"SKILL.md": skill_md(place.partition("/")[2], f"From {name}.")})

    def settings(self, folder: Path) -> Settings:
        return Settings(
            data_dir=str(folder),
            store=f"sqlite:{folder / 'vskill.db'}",
            source_rewrites=(self.server.rewrite(),),
            scan_processes=1,
        )

    async def open(
        self, opened: Env, meetings: tuple[asyncio.Barrier, asyncio.Barrier, asyncio.Barrier]
    ) -> None:
        self.env = msgspec.structs.replace(
            opened,
            worker_id=self.name,
            log=structlog.wrap_logger(None, [structlog.contextvars.merge_contextvars, self.logs]),
        )
        for place in self.places:
            submitting = functools.partial(submit_repository, f"https://github.com/{place}")
            result = await run_with_worker_env(self.env, submitting)
            assert result.submission is not None
            self.submissions[place] = result.submission
        self.stages = MeetingStages(self.env, meetings)
        self.env = msgspec.structs.replace(self.env, sources=self.stages, scanner=self.stages)

    async def work(self) -> None:
        (batch,) = await self.env.broker.receive(3, 0, 1)
        assert len(batch.messages) == len(self.places)
        await asyncio.create_task(handle_submission_queue(batch, self.env), context=contextvars.Context())

    async def cancel_dropped(self) -> None:
        number = self.submissions[self.dropped].id
        await run_with_worker_env(
            self.env, lambda: cancel(number, by=f"user:{self.name}", reason="a mistake")
        )

    async def records(self) -> dict[str, Submission]:
        return {place: await read(self.env, record) for place, record in self.submissions.items()}

    def counted(self, metric: str) -> dict[str, float]:
        """The values of a counter by its label."""
        (family,) = [
            family for family in self.env.metrics.registry.collect() if family.name == f"vskill_{metric}"
        ]
        return {next(iter(sample.labels.values())): sample.value for sample in family.samples if sample.value}


async def check_only_own(registry: Registry, other: Registry, blobs: Path) -> None:
    """Store, blobs, metrics, logs and published skills of a registry hold what is its own, and nothing else."""
    env, published = registry.env, set(registry.places) - {registry.dropped}
    assert set(map(id, registry.stages.seen)) == {id(env)}
    records = await registry.records()
    keys = (await env.kv.list("sub:")).items
    assert set(keys) == {record.key for record in records.values()}
    for place, record in records.items():
        assert record.state is (State.PUBLISHED if place in published else State.DEQUEUED)
        own = (f"worker:{registry.name}", f"user:{registry.name}")
        assert {event.actor for event in record.history[1:]} <= set(own)
    skills = await run_with_worker_env(env, enumerate_published_skills)
    assert {skill.repo_url for skill in skills} == {f"https://github.com/{place}" for place in published}
    for prefix in ("sub:", "skill:"):
        for entry in (await env.kv.scan(prefix)).items:
            assert other.name.encode() not in entry.value, entry.key
    kept = {path.name: path.read_bytes() for path in blobs.rglob("*") if path.is_file()}
    assert len(kept) == len(registry.places)
    assert all(f"From {registry.name}.".encode() in data for data in kept.values())
    assert registry.counted("messages") == {"done": len(published), "claim lost": 1}
    assert registry.counted("scans") == {"scanned": len(registry.places)}
    assert registry.counted("transitions")["PUBLISHED"] == len(published)
    (line,) = registry.logs.entries
    assert line["event"].startswith("claim lost")
    assert line["message_key"] == f"{registry.submissions[registry.dropped].id}:1"
    asked = {"/".join(path.split("/")[1:3]).removesuffix(".git") for path in registry.server.requests}
    assert asked == set(registry.places)


async def test_TC_065_AC_US3_03_two_batches_with_different_environments_never_mix(tmp_path: Path):
    """The real pipeline in both: git, SQLite and a pool of scanning processes each. All five submissions are fetched
    at the same time and scanned at the same time, one of each registry is cancelled meanwhile, and the first batch
    has ended before the second goes on. One place has the same name in both registries, and other content."""
    async with AsyncExitStack() as stack:
        crimson, azure = (
            Registry(name, places, stack.enter_context(git_server(tmp_path / name / "served")))
            for name, places in (
                ("crimson", ("ann/own", "both/same", "crimson/dropped")),
                ("azure", ("both/same", "azure/dropped")),
            )
        )
        parties = len(crimson.places) + len(azure.places)
        fetching, scanning = asyncio.Barrier(parties), asyncio.Barrier(parties)
        # The test is the party that lets nobody pass before it has seen that all scans have ended.
        scanned = asyncio.Barrier(parties + 1)
        for registry in (crimson, azure):
            settings = registry.settings(tmp_path / registry.name)
            opened = await stack.enter_async_context(env_for(settings))
            await registry.open(opened, (fetching, scanning, scanned))
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            first, second = (group.create_task(registry.work()) for registry in (crimson, azure))
            await scanned.wait()
            for registry in (crimson, azure):
                await registry.cancel_dropped()
            crimson.stages.go_on.set()
            await first
            assert not second.done()
            azure.stages.go_on.set()
        assert get_worker_env() is None
        await check_only_own(crimson, azure, tmp_path / "crimson" / "blobs")
        await check_only_own(azure, crimson, tmp_path / "azure" / "blobs")


async def test_TC_054_a_batch_that_ends_does_not_disturb_another_in_flight():
    slow = memory_env(worker_id="slow", scanner=Scripted())
    quick = memory_env(worker_id="quick", scanner=Scripted())
    assert isinstance(slow.scanner, Scripted)
    slow.scanner.go_on.clear()
    held, done = await submit(slow, "held"), await submit(quick, "done")
    in_flight = asyncio.create_task(work(slow))
    await slow.scanner.started.wait()
    await work(quick)
    assert (await read(quick, done)).state is State.PUBLISHED
    slow.scanner.go_on.set()
    await in_flight
    assert (await read(slow, held)).state is State.PUBLISHED
    assert set(map(id, slow.scanner.seen)) == {id(slow)}


async def test_AC_US3_05_the_loop_gives_each_batch_a_fresh_context():
    own: contextvars.ContextVar[str | None] = contextvars.ContextVar("own", default=None)
    own.set("of the caller")
    env = memory_env()
    seen: list[str | None] = []
    stop = asyncio.Event()

    async def handler(batch, _env) -> None:
        seen.append(own.get())
        own.set("of a batch")
        if len(seen) == 20:
            stop.set()

    for number in range(60):
        await env.broker.send(b"{}", f"key{number}")
    await asyncio.wait_for(run_consumer(env, stop, handler), PATIENCE_S)
    assert seen == [None] * 20
    assert (await env.broker.depth()).ready == 0


# One message.


async def test_a_message_that_is_not_ours_is_a_dead_letter_and_disturbs_nobody(clock):
    env = memory_env(clock)
    await env.broker.send(b"\xff not json", "odd")
    submission = await submit(env, "fine")
    await work(env)
    assert (await read(env, submission)).state is State.PUBLISHED
    (letter,) = (await env.broker.dead_letters()).items
    assert "not a message of this platform" in letter.reason


async def test_a_message_for_nothing_is_acked(clock):
    env = memory_env(clock)
    await env.broker.send(b'{"kind":"submission","submission_id":"sub_none","run":1}', "sub_none:1")
    await work(env)
    depth = await env.broker.depth()
    assert (depth.ready, depth.delayed, depth.leased, depth.dead) == (0, 0, 0, 0)


async def test_B16_a_failed_attempt_comes_again_after_10_60_and_300_seconds_and_then_ends(clock):
    """The fourth failure is REJECTED with the reason, and its message a dead letter."""
    env = memory_env(clock, scanner=Scripted(*(RuntimeError(f"broken {number}") for number in range(4))))
    submission = await submit(env, "demo")
    for delay in (10_000, 60_000, 300_000):
        await work(env)
        record = await read(env, submission)
        assert record.state is State.RECEIVED and record.claim is None
        assert record.next_attempt_at == clock.now() + delay
        clock.advance(delay - 1)
        await work(env)
        assert (await read(env, submission)).attempts.failed == record.attempts.failed
        clock.advance(1)
    await work(env)
    record = await read(env, submission)
    assert record.state is State.REJECTED
    assert record.decision is not None and "broken 3" in record.decision.reason
    (letter,) = (await env.broker.dead_letters()).items
    assert letter.reason == record.decision.reason


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EMFILE, "Too many open files"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        MemoryError(),
    ],
)
async def test_what_this_machine_lacks_is_not_the_contents_fault(clock, error):
    env = memory_env(clock, scanner=Scripted(error, error, error, error, error))
    submission = await submit(env, "demo")
    for _ in range(5):
        await work(env)
        record = await read(env, submission)
        assert record.state.active
        assert (record.attempts.failed, record.attempts.waiting_for) == (0, "this machine")
        clock.advance(record.next_attempt_at - clock.now())
    await work(env)
    assert (await read(env, submission)).state is State.PUBLISHED


@pytest.mark.slow
async def test_a_scan_that_the_machine_starves_is_tried_again_and_not_sent_to_review(clock, tmp_path):
    """A process that is stopped gets nothing of the processor, as on a machine that is far too busy."""
    await asyncio.to_thread(keep_compiled_rules, tmp_path)
    scanner = await PooledScanner.open(
        read_manifest, processes=1, limits=Limits(wall_s=3.0), cache=tmp_path / "scanner"
    )
    env = memory_env(clock, scanner=scanner)
    try:
        await scanner.scan(skill_files("other"))
        submission = await submit(env, "demo")
        (child,) = scanner._children
        assert child.pid is not None
        stop_process(child.pid)
        await work(env)
        record = await read(env, submission)
        assert (record.state, record.claim) == (State.RECEIVED, None)
        assert (record.attempts.failed, record.attempts.waiting_for) == (0, "the scanner")
        assert "too little of the processor" in record.history[-1].reason
        async with asyncio.timeout(PATIENCE_S):
            while record.state.active:
                clock.advance(record.next_attempt_at - clock.now())
                await work(env)
                record = await read(env, submission)
    finally:
        await scanner.close()
    assert (record.state, record.attempts.failed) == (State.PUBLISHED, 0)


def stop_process(pid: int) -> None:
    """Until it is killed."""
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED)


async def test_an_unavailable_source_is_not_an_attempt_and_backs_off_to_15_minutes_until_a_day_is_over(clock):
    class Down:
        async def fetch(self, _: Submission) -> None:
            raise SourceUnavailable(host="github.com")

    env = memory_env(clock, sources=Down())
    submission = await submit(env, "demo")
    delays = []
    for _ in range(200):
        await work(env)
        record = await read(env, submission)
        if record.state is not State.RECEIVED:
            break
        assert record.next_attempt_at is not None
        delays.append(record.next_attempt_at - clock.now())
        assert record.attempts.failed == 0 and record.attempts.waiting_for == "github.com"
        clock.advance(delays[-1])
    assert delays[:8] == [10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 640_000, 900_000]
    assert max(delays) == 900_000
    assert record.state is State.NEEDS_REVIEW
    assert "github.com was unavailable for 24 hours" in record.history[-1].reason
    assert sum(delays) >= UNAVAILABLE_END_MS


async def test_over_budget_is_a_failed_attempt(clock):
    settings = msgspec.structs.replace(memory_env().settings, submission_budget_ms=30)
    scanner = Scripted()
    scanner.go_on.clear()
    env = memory_env(clock, scanner=scanner, settings=settings)
    submission = await submit(env, "demo")
    await work(env)
    record = await read(env, submission)
    assert (record.state, record.attempts.failed) == (State.RECEIVED, 1)
    assert "budget" in record.history[-1].reason


async def test_a_step_that_times_out_by_itself_says_so(clock):
    env = memory_env(clock, scanner=Scripted(TimeoutError("the pool timed out")))
    submission = await submit(env, "demo")
    await work(env)
    assert (await read(env, submission)).history[-1].reason == "the pool timed out"


async def test_files_that_we_lost_are_waited_for_and_not_the_authors_fault(clock):
    env = memory_env(clock)
    submission = await submit(env, "demo")
    assert submission.upload is not None
    await lose(env.blobs, submission.upload)
    await work(env)
    record = await read(env, submission)
    assert (record.state, record.attempts.failed) == (State.RECEIVED, 0)
    assert record.attempts.waiting_for == "the repair of its stored files"


async def test_a_record_that_a_live_worker_holds_is_looked_at_again_at_its_claims_end(clock):
    env = memory_env(clock)
    submission = await submit(env, "demo")
    held = await run_with_worker_env(env, lambda: claim_submission(submission.id, 1))
    assert isinstance(held, HeldClaim)
    await work(env)
    assert (await env.broker.depth()).delayed == 1
    assert (await read(env, submission)).state is State.TIER1_SCANNING
    clock.advance(CLAIM_MS)
    await work(env)
    record = await read(env, submission)
    assert record.state is State.PUBLISHED
    assert [event.reason for event in record.history][2] == "its worker's claim expired"
    assert record.attempts.interrupted == 1


async def test_D15_content_submitted_during_a_run_is_looked_at_next(clock):
    scanner = Scripted()
    scanner.go_on.clear()
    env = memory_env(clock, scanner=scanner)
    submission = await submit(env, "demo", "first")
    running = asyncio.create_task(work(env))
    await scanner.started.wait()
    again = await submit(env, "demo", "second")
    assert again.rerun_requested is not None and again.rerun_requested.upload is not None
    scanner.go_on.set()
    await running
    record = await read(env, submission)
    assert (record.run, record.state) == (2, State.RECEIVED)
    assert record.upload == again.rerun_requested.upload
    await work(env)
    record = await read(env, submission)
    assert (record.run, record.state, record.published_version) == (2, State.PUBLISHED, "1.0.1")


async def test_a_worker_whose_submission_is_cancelled_stops_and_writes_nothing(clock):
    scanner = Scripted()
    scanner.go_on.clear()
    env = memory_env(clock, scanner=scanner, pace=Pace(renew_every_ms=10))
    submission, other = await submit(env, "demo"), await submit(env, "other")
    running = asyncio.create_task(work(env))
    await scanner.started.wait()
    await run_with_worker_env(env, lambda: cancel(submission.id, by="user:me", reason="a mistake"))
    async with asyncio.timeout(PATIENCE_S):
        while scanner.together > 1:  # noqa: ASYNC110 - the renewal that stops it tells nobody
            await asyncio.sleep(0.01)
    scanner.go_on.set()
    await running
    record = await read(env, submission)
    assert record.state is State.DEQUEUED and record.history[-1].reason == "a mistake"
    assert (await read(env, other)).state is State.PUBLISHED
    await work(env)
    assert (await env.broker.depth()).leased == 0


async def test_claim_and_lease_are_renewed_while_the_work_goes_on(clock):
    scanner = Scripted()
    scanner.go_on.clear()
    env = memory_env(clock, scanner=scanner, pace=Pace(renew_every_ms=10))
    submission = await submit(env, "demo")
    running = asyncio.create_task(work(env))
    await scanner.started.wait()
    before = await read(env, submission)
    for _ in range(4):
        clock.advance(CLAIM_MS // 2)
        async with asyncio.timeout(PATIENCE_S):
            while await claimed_until(env, submission) < clock.now() + CLAIM_MS:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.01)
    during = await read(env, submission)
    assert (during.history, during.updated_at) == (before.history, before.updated_at)
    assert await env.broker.take(10, 0) == ()
    scanner.go_on.set()
    await running
    assert (await read(env, submission)).state is State.PUBLISHED


async def test_a_submission_that_workers_died_over_runs_alone_from_the_third_time_on(clock):
    scanner = Scripted()
    env = memory_env(clock, scanner=scanner)
    suspect = await submit(env, "suspect")
    for _ in range(3):
        await run_with_worker_env(env, lambda: claim_submission(suspect.id, 1))
        clock.advance(CLAIM_MS)
    for number in range(8):
        await submit(env, f"fine{number}")
    alone: list[int] = []
    scan = scanner.scan

    async def watched(files):
        record = await read(env, suspect)
        if record.claim is not None and files == skill_files("suspect"):
            alone.append(scanner.together)
        return await scan(files)

    scanner.scan = watched  # type: ignore[method-assign]
    await asyncio.gather(
        *(handle_submission_queue(batch, env) for batch in await env.broker.receive(3, 0, 3))
    )
    record = await read(env, suspect)
    assert (record.state, record.attempts.interrupted) == (State.PUBLISHED, 3)
    assert alone == [0]
    assert scanner.most_together > 1


async def test_ten_dead_workers_are_enough_a_person_looks_at_it(clock):
    env = memory_env(clock)
    submission = await submit(env, "poison")
    for _ in range(MAX_INTERRUPTED):
        assert isinstance(
            await run_with_worker_env(env, lambda: claim_submission(submission.id, 1)), HeldClaim
        )
        clock.advance(CLAIM_MS)
    await work(env)
    record = await read(env, submission)
    assert record.state is State.NEEDS_REVIEW and record.claim is None
    assert "10 times" in record.history[-1].reason
    assert (await env.broker.depth()).dead == 1


# The loop.


async def test_a_clean_return_acks_and_a_raise_retries_all_but_what_was_settled(clock):
    env = memory_env(clock)
    stop = asyncio.Event()

    async def handler(batch, _env) -> None:
        if batch.messages[0].body == b"bad":
            await batch.messages[0].ack()
            stop.set()
            raise RuntimeError("half way")

    await env.broker.send(b"bad", "1")
    await env.broker.send(b"x", "2")
    await asyncio.wait_for(run_consumer(env, stop, handler), PATIENCE_S)
    depth = await env.broker.depth()
    assert (depth.ready, depth.delayed, depth.leased) == (0, 1, 0)


async def test_at_most_ten_batches_of_three_at_once():
    env = memory_env()
    stop = asyncio.Event()
    sizes: list[int] = []
    running = most = done = 0

    async def handler(batch, _env) -> None:
        nonlocal running, most, done
        running += 1
        most = max(most, running)
        sizes.append(len(batch.messages))
        await asyncio.sleep(0.005)
        running -= 1
        done += len(batch.messages)
        if done == 100:
            stop.set()

    for number in range(100):
        await env.broker.send(b"x", str(number))
    await asyncio.wait_for(run_consumer(env, stop, handler), PATIENCE_S)
    assert most == 10 and max(sizes) == 3


@pytest.mark.machine
async def test_B3_a_pause_is_honoured_within_one_batch_and_ends_by_itself():
    env = memory_env(pace=Pace(pause_after_error_s=0.01))
    stop = asyncio.Event()
    await run_with_worker_env(env, lambda: pause_queue(2_500, reason="upgrade", by="admin:me"))
    submission = await submit(env, "demo")
    running = asyncio.create_task(run_consumer(env, stop))
    await asyncio.sleep(0.15)
    assert (await read(env, submission)).state is State.RECEIVED
    assert (await run_with_worker_env(env, recover_stuck_submissions)).paused
    async with asyncio.timeout(PATIENCE_S):
        while (await read(env, submission)).state is not State.PUBLISHED:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert not await run_with_worker_env(env, lambda: resume_queue(by="admin:me"))
    stop.set()
    await running


async def test_a_stop_lets_running_work_finish():
    scanner = Scripted()
    scanner.go_on.clear()
    env = memory_env(scanner=scanner)
    submission = await submit(env, "demo")
    stop = asyncio.Event()
    running = asyncio.create_task(run_consumer(env, stop))
    await scanner.started.wait()
    stop.set()
    await asyncio.sleep(0.05)
    scanner.go_on.set()
    await asyncio.wait_for(running, PATIENCE_S)
    assert (await read(env, submission)).state is State.PUBLISHED


async def test_a_stop_hands_back_what_cannot_finish_and_counts_it_nowhere():
    settings = msgspec.structs.replace(memory_env().settings, shutdown_grace_ms=30)
    scanner = Scripted()
    scanner.go_on.clear()
    env = memory_env(scanner=scanner, settings=settings)
    submission = await submit(env, "demo")
    stop = asyncio.Event()
    running = asyncio.create_task(run_consumer(env, stop))
    await scanner.started.wait()
    stop.set()
    await asyncio.wait_for(running, PATIENCE_S)
    record = await read(env, submission)
    assert record.state is State.RECEIVED and record.claim is None and record.next_attempt_at is not None
    assert (record.attempts.failed, record.attempts.interrupted) == (0, 0)
    assert (await env.broker.depth()).ready == 1
    scanner.go_on.set()
    await work(env)
    assert (await read(env, submission)).state is State.PUBLISHED


async def test_a_stop_just_after_the_run_ended_changes_nothing_about_how_it_ended(clock):
    """There is nothing to hand back: a claim that is over is over."""
    env = memory_env(clock)
    hooked = HookedKV(env.kv)
    env = msgspec.structs.replace(env, kv=hooked)
    submission = await submit(env, "demo")
    ended = asyncio.Event()

    async def hold(operations) -> None:
        if state_written(operations) is State.PUBLISHED:
            ended.set()
            await asyncio.sleep(60)

    hooked.after_commit = hold
    working = asyncio.create_task(work(env))
    await ended.wait()
    left = await read(env, submission)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert left.state is State.PUBLISHED
    assert await read(env, submission) == left


async def stop_at(env: Env, hooked: HookedKV, moment: str, number: int) -> None:
    """Work, and be stopped before or after the commit of that number, as a stopping process stops what is late."""
    reached, stopped, left = asyncio.Event(), asyncio.Event(), number

    async def hold(_operations: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            reached.set()
            # As a write that is under way: cancelled or not, it ends.
            await stopped.wait()

    setattr(hooked, f"{moment}_commit", hold)
    working = asyncio.create_task(work(env))
    await asyncio.wait_for(reached.wait(), PATIENCE_S)
    working.cancel()
    await asyncio.sleep(0)
    stopped.set()
    with pytest.raises(asyncio.CancelledError):
        await working
    hooked.before_commit = hooked.after_commit = None


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(
    ("number", "error"),
    [
        (1, None),
        (2, RuntimeError("the scanner broke")),
        (2, SourceUnavailable("down", host="github.com")),
        (2, TimeoutError("a step")),
        (2, OSError(errno.EMFILE, "too many open files")),
    ],
    ids=["the claim", "a failure", "an outage", "a time-out", "a shortage"],
)
async def test_a_stop_in_the_middle_of_a_write_leaves_no_claim(clock, moment, number, error):
    """Seed 9004929: stopped while it wrote how an attempt had ended, a worker kept its claim to the end."""
    env = memory_env(clock, scanner=Scripted(error))
    hooked = HookedKV(env.kv)
    env = msgspec.structs.replace(env, kv=hooked)
    submission = await submit(env, "demo")
    await stop_at(env, hooked, moment, number)
    left = await read(env, submission)
    assert (left.claim, left.state) == (None, State.RECEIVED)


async def test_a_store_that_is_away_stops_nothing_for_good(clock):
    """The message comes again, and the record says where to go on."""
    env = memory_env(clock)
    hooked = HookedKV(env.kv)
    env = msgspec.structs.replace(env, kv=hooked)
    submission = await submit(env, "demo")

    async def time_out(_operations) -> None:
        clock.advance(3_000)
        raise StoreUnavailable("the store is away")

    hooked.before_commit = time_out
    await work(env)
    hooked.before_commit = None
    clock.advance(consumer.RETRY_AFTER_ERROR_MS)
    await work(env)
    assert (await read(env, submission)).state is State.PUBLISHED


async def test_a_broker_that_is_away_is_asked_again():
    env = memory_env(pace=Pace(pause_after_error_s=0.01))
    submission = await submit(env, "demo")
    env = msgspec.structs.replace(env, broker=DeafBroker(env.broker, takes_refused=2))
    stop = asyncio.Event()
    running = asyncio.create_task(run_consumer(env, stop))
    for _ in range(200):
        await asyncio.sleep(0.01)
        if (await read(env, submission)).state is State.PUBLISHED:
            break
    stop.set()
    await running
    assert (await read(env, submission)).state is State.PUBLISHED
