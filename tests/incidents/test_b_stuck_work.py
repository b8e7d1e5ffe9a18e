"""Incidents of section B: work that stopped and that nobody took up. Each test provokes the failure."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from tests.incidents.conftest import Opener
from tests.incidents.steps import check_history, pass_time, published, record_of, submit_place, until_state
from tests.support.envs import (
    active_env,
    make_submission,
    open_test_env,
    put_record,
    run_until_quiet,
    submit_skill,
)
from tests.support.faults import DeafBroker, HeldScanner, ListedSources, TroubledScanner
from tests.support.patience import PATIENCE_S
from tests.support.system_reads import get_submission
from vskill_core.content import SkillFile
from vskill_core.errors import InvalidInput, InvalidSettings, SourceUnavailable
from vskill_core.findings import JudgeReport, StaticReport
from vskill_platform.bootstrap import env_for, report_start
from vskill_platform.cli import cli
from vskill_platform.domain.messages import submission_send
from vskill_platform.domain.skills.skill import Certification
from vskill_platform.domain.submissions.attempts import (
    CLAIM_MS,
    FAILED_DELAYS_MS,
    MAX_INTERRUPTED,
    RENEW_EVERY_MS,
    UNAVAILABLE_MOST_MS,
)
from vskill_platform.domain.submissions.states import STUCK_STATES, State
from vskill_platform.domain.submissions.submission import Claim, Submission
from vskill_platform.intake.submit import IntakeOutcome, submit_repository
from vskill_platform.ledger.broker.contract import LEASE_MS
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.ledger.kv.memory import MemoryKV
from vskill_platform.ledger.kv.postgres import PostgresKV
from vskill_platform.ledger.kv.sqlite import SqliteKV
from vskill_platform.queue.consumer import run_consumer
from vskill_platform.queue.control import current_pause, pause_queue
from vskill_platform.queue.health import WORKERS, queue_health
from vskill_platform.queue.jobs import JOBS
from vskill_platform.queue.recovery import recover_stuck_submissions
from vskill_platform.queue.schedule import run_job
from vskill_platform.settings import Settings, check_settings, load_settings
from vskill_platform.sources.router import UploadSource
from vskill_platform.store.claims import HeldClaim, claim_submission
from vskill_platform.submission_store import enumerate_published_skills, get_stuck_submissions
from vskill_platform.tiers.contract import Scanner
from vskill_platform.worker_context import Env, Pace
from vskill_scan.reading.manifest import read_manifest

pytestmark = pytest.mark.anyio

HOUR_MS = 3_600_000
SIX_WEEKS_MS = 6 * 7 * 24 * HOUR_MS


async def lose_messages(env: Env) -> int:
    """Every message is gone, as if it had never been sent; how many there were."""
    lost = 0
    while batches := await env.broker.receive(100, 0, 10):
        for batch in batches:
            lost += len(batch.messages)
            await batch.ack_all()
    return lost


async def die_with(env: Env, submission: Submission) -> HeldClaim:
    """A worker takes the message, claims the record, and is never heard of again."""
    (batch,) = await env.broker.receive(1, 0)
    assert batch.messages
    with active_env(env, worker_id="mortal"):
        claim = await claim_submission(submission.id, submission.run)
    assert isinstance(claim, HeldClaim)
    return claim


async def violations_of_records() -> list[str]:
    """Which records break the invariant. That no worker gives signs here is another violation."""
    return [one.key for one in (await queue_health()).violations if one.key != WORKERS]


async def check_healthy() -> None:
    assert await violations_of_records() == []


async def test_B1_nothing_stays_in_any_of_the_four_states(env: Env) -> None:
    """Twelve items left behind in each stuckable state, with no message at all: all of them end by themselves."""
    for state in sorted(STUCK_STATES):
        for number in range(12):
            submitted = record_of(await submit_skill(f"{state.lower().replace('_', '-')}-{number}"))
            if state is State.RECEIVED:
                continue
            until = env.kv.now() + CLAIM_MS
            stored = make_submission(
                submitted.identity.path,
                state=state,
                at=env.kv.now(),
                upload=submitted.upload,
                digest=submitted.upload,
                claim=Claim(f"gone-{number}", "gone", until),
                next_attempt_at=None,
            )
            await put_record(env, stored)
    assert await lose_messages(env) == 48

    pass_time(env, 300_000)
    assert len(await get_stuck_submissions()) == 48
    assert len(await violations_of_records()) == 36, "a claim that nobody takes up is a violation"
    await run_until_quiet(env, recover=True)
    assert len(await enumerate_published_skills()) == 48
    assert await get_stuck_submissions() == []
    await check_healthy()


async def test_B1_a_scan_that_hangs_ends_by_its_budget(open_here: Opener) -> None:
    """Every attempt has a time limit; the work is cancelled for real (e), and the last one says why (j)."""
    async with open_here() as env:
        scanner = HeldScanner(env.scanner)
        hurried = msgspec.structs.replace(env.settings, submission_budget_ms=250)
        with active_env(env, scanner=scanner, settings=hurried) as hanging:
            submission = record_of(await submit_skill("endless"))
            for delay in (*FAILED_DELAYS_MS, 0):
                await run_until_quiet(hanging)
                pass_time(env, delay)
            record = await get_submission(submission.id)
        assert (record.state, record.attempts.failed) == (State.REJECTED, 4)
        assert record.decision is not None
        assert "longer than its budget" in record.decision.reason
        assert (scanner.inside, scanner.cancelled, scanner.most_inside) == (0, 4, 1)
        letters = await env.broker.dead_letters()
        assert [letter.reason for letter in letters.items] == [record.decision.reason]
        check_history(record)


@pytest.mark.parametrize(
    "settings",
    [
        Settings(judge_budget_ms=55_000, submission_budget_ms=55_000),
        Settings(submission_budget_ms=300_000, stuck_threshold_ms=300_000),
        Settings(submission_budget_ms=1_000),
        Settings(stuck_threshold_ms=20_000),
    ],
)
def test_B2_budgets_that_do_not_nest_are_refused(settings: Settings) -> None:
    """Start-up refuses a configuration in which an outer limit would strike before the inner one."""
    with pytest.raises(InvalidSettings, match="must be less than"):
        check_settings(settings)


@pytest.mark.parametrize("judge_ms", [1, 30_000, 55_000, 86_400_000])
def test_B2_the_outer_budgets_follow_that_of_the_judge(judge_ms: int) -> None:
    settings = load_settings({"VSKILL_JUDGE_BUDGET_MS": str(judge_ms)})
    assert judge_ms < settings.submission_budget_ms < settings.stuck_threshold_ms
    assert settings.fetch_budget_ms < settings.submission_budget_ms


async def test_B2_every_way_in_checks_the_budgets() -> None:
    """Settings that were built by hand are checked when the environment opens."""
    with pytest.raises(InvalidSettings):
        async with env_for(Settings(store="memory:", submission_budget_ms=1_000)):
            pass


def test_B2_claims_are_short_and_renewed() -> None:
    """A claim outlasts two lost renewals, a lease is no shorter than a claim, and both are shorter than any budget."""
    assert 2 * RENEW_EVERY_MS < CLAIM_MS <= LEASE_MS < Settings().submission_budget_ms


async def test_B2_the_error_of_a_stage_is_a_failed_attempt_and_never_content(env: Env) -> None:
    """A judge that breaks off leaves its error in the attempt's account; it decides nothing and publishes nothing."""

    class Broken:
        async def review(self, files: Sequence[SkillFile], report: StaticReport) -> JudgeReport:
            raise TimeoutError("no answer after 8 s")

    with active_env(env, judge=Broken()) as judged:
        submission = record_of(await submit_skill("unjudged"))
        await run_until_quiet(judged)
    record = await get_submission(submission.id)
    assert (record.state, record.attempts.last_error) == (State.RECEIVED, "no answer after 8 s")
    assert record.decision is None
    assert await enumerate_published_skills() == []


@pytest.mark.machine
async def test_B3_a_forgotten_pause_ends_by_itself(open_here: Opener) -> None:
    """Nobody resumes: after its end the consumer takes work again."""
    async with open_here(clock=SystemClock()) as env:
        await pause_queue(2_500, reason="maintenance", by="admin:eve")
        submission = record_of(await submit_skill("patient"))
        assert (await recover_stuck_submissions()).paused
        stop = asyncio.Event()
        worker = asyncio.create_task(run_consumer(env, stop))
        await asyncio.sleep(0.3)
        assert (await get_submission(submission.id)).state is State.RECEIVED
        await until_state(submission.id, State.PUBLISHED)
        assert await current_pause() is None
        stop.set()
        await worker
        await published(submission)


@pytest.mark.parametrize("duration_ms", [0, -1, 8 * 24 * HOUR_MS])
async def test_B3_a_pause_without_an_end_is_refused(env: Env, duration_ms: int) -> None:
    with pytest.raises(InvalidInput, match="at most 7 days"):
        await pause_queue(duration_ms, reason="for ever", by="admin:eve")
    assert await current_pause() is None


async def test_B5_a_record_whose_message_was_lost(env: Env) -> None:
    """The record is the truth: recovery finds the RECEIVED that no message serves, and sends one (a)."""
    submission = record_of(await submit_skill("silent"))
    assert await lose_messages(env) == 1
    await run_until_quiet(env)
    assert (await get_submission(submission.id)).state is State.RECEIVED
    recovered = await recover_stuck_submissions()
    assert (recovered.found, recovered.sent) == (1, 1)
    assert (await recover_stuck_submissions()).sent == 0, "a message that is there is not doubled"
    await run_until_quiet(env)
    await published(submission)


async def test_B5_the_enqueue_fails_after_the_record_was_written(env: Env) -> None:
    """With a queue of its own the send follows the commit; when it fails the submission stands, and recovery
    sends (a)."""
    deaf = DeafBroker(env.broker)
    kv = _with_outbox(env, deaf)
    with active_env(env, kv=kv):
        submitted = await submit_skill("unheard")
    assert (submitted.outcome, deaf.refused) == (IntakeOutcome.CREATED, 1)
    assert (await env.broker.depth()).ready == 0
    await run_until_quiet(env, recover=True)
    await published(record_of(submitted))


def _with_outbox(env: Env, outbox: DeafBroker) -> MemoryKV | SqliteKV | PostgresKV:
    """The same records, with the messages of a commit going to a queue elsewhere."""
    if isinstance(env.kv, PostgresKV):
        return PostgresKV(env.kv._db, outbox)
    if isinstance(env.kv, SqliteKV):
        return SqliteKV(env.kv._db, outbox)
    assert isinstance(env.kv, MemoryKV)
    other = MemoryKV(env.clock, outbox)
    other.__dict__.update({k: v for k, v in env.kv.__dict__.items() if k not in ("_outbox", "capabilities")})
    return other


async def test_B6_an_idle_record_does_not_block_resubmission(env: Env) -> None:
    """Submitting again re-enqueues the same record at once, without waiting for recovery (p)."""
    first = record_of(await submit_skill("again"))
    await lose_messages(env)
    second = await submit_skill("again")
    assert (second.outcome, record_of(second).id) == (IntakeOutcome.DUPLICATE, first.id)
    await run_until_quiet(env)
    assert (await published(first)).current_version == "1.0.0"
    assert (await get_submission(first.id)).run == 1


async def test_B6_a_failed_run_does_not_block_resubmission(env: Env) -> None:
    """After a rejection the same bytes get a new run (p)."""
    scanner = TroubledScanner(env.scanner, b"A small skill", RuntimeError("the scanner is broken"))
    with active_env(env, scanner=scanner) as broken:
        submission = record_of(await submit_skill("retried"))
        for delay in (*FAILED_DELAYS_MS, 0):
            await run_until_quiet(broken)
            pass_time(env, delay)
    assert (await get_submission(submission.id)).state is State.REJECTED
    assert (await submit_skill("retried")).outcome is IntakeOutcome.REQUEUED
    await run_until_quiet(env)
    await published(submission)


async def test_B7_dead_workers_show_without_any_worker(env: Env) -> None:
    """162 items, six weeks, no worker and no schedule: what the web side computes says so."""
    done = record_of(await submit_skill("finished"))
    await run_until_quiet(env)
    ended_at = (await get_submission(done.id)).updated_at
    assert (await queue_health()).healthy
    for number in range(162):
        await submit_skill(f"waiting-{number}")
    pass_time(env, SIX_WEEKS_MS)
    health = await queue_health()
    assert health.oldest_waiting_ms == SIX_WEEKS_MS
    assert health.last_ended_at == ended_at
    assert health.counts.by_state[State.RECEIVED] == 162
    assert all(job.stale for job in health.jobs)
    assert not health.healthy, "the oldest has waited for weeks and nothing ended since"


async def test_B7_a_busy_queue_is_not_an_alarm(env: Env) -> None:
    """Work that waits its turn while others end is healthy, and so is a queue that somebody paused."""
    await submit_skill("slow-lane")
    await lose_messages(env)
    pass_time(env, HOUR_MS)
    await submit_skill("fast-lane")
    await run_until_quiet(env)
    assert (await queue_health()).healthy
    pass_time(env, HOUR_MS)
    assert not (await queue_health()).healthy
    await pause_queue(HOUR_MS, reason="maintenance", by="admin:eve")
    assert (await queue_health()).healthy


async def test_B8_a_worker_dies_between_claim_and_finish(env: Env) -> None:
    """The lease ends, the next worker says so, counts it, and goes on (b)."""
    submission = record_of(await submit_skill("orphan"))
    await die_with(env, submission)
    await run_until_quiet(env, recover=True)
    assert (await get_submission(submission.id)).state is State.TIER1_SCANNING, (
        "it is held until the deadline"
    )

    pass_time(env, CLAIM_MS)
    await run_until_quiet(env, recover=True)
    record = await get_submission(submission.id)
    assert [(event.to, event.reason) for event in record.history[1:4]] == [
        (State.TIER1_SCANNING, "attempt 1 begins"),
        (State.RECEIVED, "its worker's claim expired"),
        (State.TIER1_SCANNING, "attempt 2 begins"),
    ]
    assert (record.attempts.interrupted, record.attempts.failed) == (1, 0)
    assert len((await published(submission)).versions) == 1
    check_history(record)
    await check_healthy()


async def test_B8_too_many_deaths_end_with_a_person_and_the_reason(env: Env) -> None:
    """Ten workers die over it: NEEDS_REVIEW with the reason, the message a dead letter, and nothing is owed (d)."""
    submission = record_of(await submit_skill("deadly"))
    for _ in range(MAX_INTERRUPTED):
        await die_with(env, submission)
        pass_time(env, CLAIM_MS)
    await run_until_quiet(env, recover=True)
    record = await get_submission(submission.id)
    assert (record.state, record.attempts.interrupted) == (State.NEEDS_REVIEW, MAX_INTERRUPTED)
    assert "its worker died 10 times over this submission" in record.history[-1].reason
    letters = await env.broker.dead_letters()
    assert [letter.reason for letter in letters.items] == [record.history[-1].reason]
    check_history(record)
    pass_time(env, HOUR_MS)
    assert (await recover_stuck_submissions()).found == 0
    await check_healthy()


async def test_B8_a_suspect_runs_alone_in_its_process(env: Env) -> None:
    """From the third death on nothing else runs beside it, so it can take nothing else down."""
    suspect = record_of(await submit_skill("suspect"))
    for _ in range(3):
        await die_with(env, suspect)
        pass_time(env, CLAIM_MS)
    scanner = CompanyProbe(env.scanner)
    with active_env(env, scanner=scanner) as probed:
        for number in range(5):
            await submit_skill(f"beside-{number}")
        await run_until_quiet(probed, recover=True)
    assert len(await enumerate_published_skills()) == 6
    assert [together for together in scanner.together if "suspect" in together] == [{"suspect"}]
    assert max(map(len, scanner.together)) > 1, "the others run side by side"


class CompanyProbe:
    """Notes which skills are being scanned in the same moment. A neighbour of the suspect waits for another one, so a
    slow machine does not look like one that takes them one by one; it goes on alone where the others stand behind the
    suspect, which waits for it."""

    #: Well within the budget of a submission.
    ALONE_S = 10

    def __init__(self, inner: Scanner) -> None:
        self.inner = inner
        self.ruleset = inner.ruleset
        self.inside: set[str] = set()
        self.together: list[set[str]] = []
        self._in_company = asyncio.Event()

    async def scan(self, files: Sequence[SkillFile]) -> StaticReport:
        name = read_manifest(files[0].data).name
        self.inside.add(name)
        self.together.append(set(self.inside))
        if len(self.inside) > 1:
            self._in_company.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._in_company.wait(), 0.05 if name == "suspect" else self.ALONE_S)
        self.inside.remove(name)
        return await self.inner.scan(files)


async def test_B11_changed_content_is_a_new_run_of_the_same_submission(env: Env) -> None:
    """Unchanged bytes are "already verified"; changed ones are verified and published again (p)."""
    first = record_of(await submit_skill("evolving", "one"))
    await run_until_quiet(env)
    assert (await submit_skill("evolving", "one")).outcome is IntakeOutcome.ALREADY_VERIFIED
    changed = await submit_skill("evolving", "two")
    assert (changed.outcome, record_of(changed).id, record_of(changed).run) == (
        IntakeOutcome.REQUEUED,
        first.id,
        2,
    )
    await run_until_quiet(env)
    live = await published(first)
    assert [ref.number for ref in live.versions] == ["1.0.0", "1.0.1"]
    check_history(await get_submission(first.id))


async def test_B12_schedule_and_direct_call_recover_alike(env: Env) -> None:
    """The scheduled job is the tested function: what one finds, the other finds."""
    (job,) = [job for job in JOBS if job.name == "recovery"]
    ways: list[Callable[[], Awaitable[object]]] = [
        recover_stuck_submissions,
        lambda: run_job(job, forced=True),
    ]
    for number, recover in enumerate(ways):
        submission = record_of(await submit_skill(f"lost-{number}"))
        await lose_messages(env)
        await recover()
        await run_until_quiet(env)
        await published(submission)


async def test_B12_the_command_line_recovers_the_same_way(tmp_path: Path) -> None:
    """`queue recover`, which opens the file by itself, revives what the schedule would have revived."""
    async with open_test_env("sqlite", tmp_path, clock=SystemClock()) as env:
        submission = record_of(await submit_skill("by-hand"))
        died = record_of(await submit_skill("left-behind"))
        await lose_messages(env)
        left = make_submission(
            "left-behind", state=State.TIER1_SCANNING, at=1, upload=died.upload, claimed_until=2
        )
        await put_record(env, left)
        variables = {"VSKILL_DATA_DIR": str(tmp_path), "VSKILL_STORE": env.settings.store}
        result = await asyncio.to_thread(CliRunner().invoke, cli, ["queue", "recover"], env=variables)
        assert result.exit_code == 0, result.output
        assert "Missing messages sent: 2" in result.output
        await run_until_quiet(env)
        await published(submission)
        await published(died)


async def test_B15_what_fails_does_not_block_the_head_of_the_line(open_here: Opener) -> None:
    """Forty items that cannot succeed, one worker slot: fresh work is done in the first pass (d, k)."""
    async with open_here(max_batch_size=1, max_concurrency=1) as env:
        scanner = TroubledScanner(env.scanner, b"never works", RuntimeError("cannot be enriched"))
        with active_env(env, scanner=scanner) as troubled:
            for number in range(40):
                await submit_skill(f"poison-{number}", "never works")
            await run_until_quiet(troubled)
            fresh = record_of(await submit_skill("fresh"))
            pass_time(env, FAILED_DELAYS_MS[0])
            later = record_of(await submit_skill("later"))
            await recover_stuck_submissions()
            handled = await run_until_quiet(troubled, rounds=100)
        assert handled == 42
        due = [(await get_submission(record.id)) for record in (fresh, later)]
        assert [record.state for record in due] == [State.PUBLISHED, State.PUBLISHED]
        moved = {(await get_submission(make_submission(f"poison-{n}").id)).next_attempt_at for n in range(40)}
        assert min(at or 0 for at in moved) > env.kv.now(), "every attempt moved its next one"


async def test_B15_fresh_work_goes_before_retries_that_became_due_later(open_here: Opener) -> None:
    """The line is ordered by the time at which each is due, whoever came first."""
    async with open_here(max_batch_size=1, max_concurrency=1) as env:
        scanner = TroubledScanner(env.scanner, b"never works", RuntimeError("cannot be enriched"))
        with active_env(env, scanner=scanner) as troubled:
            await submit_skill("retried", "never works")
            await run_until_quiet(troubled)
            pass_time(env, FAILED_DELAYS_MS[0] - 1)
            fresh = record_of(await submit_skill("fresh"))
            pass_time(env, 1)
            await run_until_quiet(troubled, rounds=3)
        assert (await get_submission(fresh.id)).state is State.PUBLISHED
        assert scanner.scans == 3


async def test_B16_a_host_that_is_down_rejects_nothing(env: Env) -> None:
    """Hours of outage are waited out: not one failed attempt, each says what it waits for, then all is published."""
    sources = ListedSources(env.blobs)
    with active_env(env, sources=sources) as listed:
        places = [
            await submit_place(sources, f"https://github.com/owner{n}/tools", "fmt", "fmt", str(n))
            for n in range(20)
        ]
        there = dict(sources.places)
        down = SourceUnavailable("github.com does not answer", host="github.com")
        sources.places = dict.fromkeys(there, down)
        for _ in range(40):
            await run_until_quiet(listed, recover=True)
            pass_time(env, 9 * 60_000)
        for place in places:
            record = await get_submission(place.id)
            assert (record.state, record.attempts.failed) == (State.RECEIVED, 0)
            assert record.attempts.waiting_for == "github.com"
            assert record.next_attempt_at is not None
            assert record.next_attempt_at - env.kv.now() <= UNAVAILABLE_MOST_MS
        await check_healthy()

        sources.places = dict(there)
        pass_time(env, UNAVAILABLE_MOST_MS)
        await run_until_quiet(listed, recover=True)
        for place in places:
            await published(place)
            assert (await get_submission(place.id)).attempts.failed == 0


async def test_B16_after_a_day_a_person_looks(env: Env) -> None:
    """An outage that lasts a day ends as a question to a person, never as a rejection."""
    sources = ListedSources(env.blobs)
    with active_env(env, sources=sources) as listed:
        place = await submit_place(sources, "https://github.com/ann/tools", "fmt", "fmt")
        sources.places[place.identity.key] = SourceUnavailable("no answer", host="github.com")
        for _ in range(26 * 4):
            await run_until_quiet(listed, recover=True)
            pass_time(env, UNAVAILABLE_MOST_MS)
    record = await get_submission(place.id)
    assert record.state is State.NEEDS_REVIEW
    assert "github.com was unavailable for 24 hours" in record.history[-1].reason
    check_history(record)


async def test_B17_a_missing_tier_is_a_named_mode(env: Env) -> None:
    """Without a judge start-up says so, and work ends with the certification that it can have."""
    lines: list[tuple[str, str]] = []

    class Log:
        def info(self, event: str, **fields: object) -> None:
            lines.append(("info", event))

        def warning(self, event: str, **fields: object) -> None:
            lines.append(("warning", event))

    report_start(msgspec.structs.replace(env, log=Log()))
    assert ("warning", "degraded mode: no judge configured") in lines
    submission = record_of(await submit_skill("plain"))
    await run_until_quiet(env)
    assert (await published(submission)).certification is Certification.SCANNED
    record = await get_submission(submission.id)
    assert record.decision is not None
    assert "no judge is configured" in record.decision.reason


async def test_B17_a_missing_source_is_an_end_and_not_a_retry(env: Env) -> None:
    """Where nothing fetches repositories, one ends at once with that reason instead of coming again for ever."""
    with active_env(env, sources=UploadSource(env.blobs)) as uploads_only:
        submitted = record_of(await submit_repository("https://github.com/ann/tools"))
        assert await run_until_quiet(uploads_only) == 1
    record = await get_submission(submitted.id)
    assert (record.state, record.attempts.started) == (State.REJECTED, 1)
    assert "no other source is configured" in record.history[-1].reason


@pytest.mark.parametrize("store", ["sqlite", "redis://localhost", "sqlite:", "memory"])
async def test_B17_an_engine_that_is_not_there_stops_the_start(store: str) -> None:
    """A dependency that cannot be had is found at start-up, not by the first message."""
    with pytest.raises(InvalidSettings, match="VSKILL_STORE"):
        async with env_for(Settings(store=store)):
            pass


async def test_queue_failure_f_a_record_that_was_deleted_while_queued(env: Env) -> None:
    """Its message is settled and comes no more (f)."""
    submission = record_of(await submit_skill("vanished"))
    await env.kv.delete(submission.key)
    assert await run_until_quiet(env) == 1
    pass_time(env, HOUR_MS)
    assert await run_until_quiet(env, recover=True) == 0
    assert (await env.broker.depth()).dead == 0


async def test_queue_failure_e_a_lost_claim_stops_the_work(env: Env) -> None:
    """A worker whose claim has passed to another is cancelled at its next renewal, so old scans do not pile up
    (c, e)."""
    scanner = HeldScanner(env.scanner)
    with active_env(env, scanner=scanner, worker_id="slow", pace=Pace(renew_every_ms=20)) as slow:
        submission = record_of(await submit_skill("stolen"))
        work = asyncio.create_task(run_until_quiet(slow))
        await scanner.until_inside(1)
        record = await get_submission(submission.id)
        assert record.claim is not None
        stolen = msgspec.structs.replace(record, claim=Claim("other", "other", env.kv.now() + CLAIM_MS))
        await put_record(env, stolen)
        async with asyncio.timeout(PATIENCE_S):
            await work
        assert scanner.cancelled == 1
    kept = await get_submission(submission.id)
    assert kept.claim is not None
    assert kept.claim.token == "other"
    assert scanner.inside == 0


async def test_queue_failure_d_a_message_that_is_none_of_ours(env: Env) -> None:
    """It is set aside with the reason after one look, and never comes again (d)."""
    await env.broker.send(b"not json")
    await env.broker.send_batch([submission_send("sub_that_never_was", 1)])
    assert await run_until_quiet(env) == 2
    letters = (await env.broker.dead_letters()).items
    assert [letter.body for letter in letters] == [b"not json"]
    assert "not a message of this platform" in letters[0].reason
