"""Incidents of section D: two at once, the same twice, and answers that never came."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import pytest

from tests.incidents.conftest import Opener
from tests.incidents.steps import (
    all_keys,
    awaiting_review,
    check_history,
    pass_time,
    published,
    record_of,
    submit_place,
    until_state,
)
from tests.support.acting import approve, cancel, reject
from tests.support.envs import (
    active_env,
    make_submission,
    put_record,
    run_until_quiet,
    skill_files,
    submit_skill,
)
from tests.support.faults import HeldScanner, HookedKV, ListedSources, TroubledScanner, state_written
from tests.support.patience import PATIENCE_S
from tests.support.system_reads import get_run, get_submission
from vskill_core.content import digest_of_files
from vskill_core.errors import InvalidSettings, StoreUnavailable, TransitionError
from vskill_core.findings import Severity
from vskill_core.identity import normalise, submission_id, upload_identity
from vskill_platform.domain import keys
from vskill_platform.domain.blocklist import (
    BlockEntry,
    BlockTarget,
    digest_target,
    name_target,
    place_target,
    repository_target,
)
from vskill_platform.domain.messages import submission_send
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions.attempts import CLAIM_MS
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.intake.submit import IntakeOutcome, submit_repository, submit_upload
from vskill_platform.ledger.kv.entries import Operation
from vskill_platform.queue.jobs import JOBS
from vskill_platform.queue.schedule import run_job
from vskill_platform.settings import load_settings
from vskill_platform.store.recall.blocklist import add_block, blocklist_version, remove_block
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.submission_store import (
    count_submissions,
    enumerate_published_skills,
    get_submissions_fresh,
)
from vskill_platform.worker_context import Env, Pace, get_worker_env, run_with_worker_env

pytestmark = pytest.mark.anyio


def entry_for(target: BlockTarget, at: int) -> BlockEntry:
    return BlockEntry(target, Severity.CRITICAL, "malicious", "admin:eve", at)


async def test_D1_a_batch_that_ends_leaves_the_others_their_environment(open_here: Opener) -> None:
    """Batches of two environments, interleaved: whichever ends first, the other still has its own (US-003)."""
    async with open_here(active=False) as env:
        one = msgspec.structs.replace(env, worker_id="one")
        two = msgspec.structs.replace(env, worker_id="two")
        first_ended = asyncio.Event()

        async def short() -> str:
            await asyncio.sleep(0)
            found = get_worker_env()
            assert found is not None
            return found.worker_id

        async def long() -> list[str]:
            seen = [await short()]
            await first_ended.wait()
            return [*seen, await short()]

        slow = asyncio.create_task(run_with_worker_env(two, long))
        assert await run_with_worker_env(one, short) == "one"
        first_ended.set()
        assert await slow == ["two", "two"]
        assert get_worker_env() is None


async def test_D2_work_and_schedule_need_no_process_environment(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings are read once, at the start: with the process environment gone, queue and jobs run as before."""
    for name in list(os.environ):
        monkeypatch.delenv(name)
    submission = record_of(await submit_skill("configured"))
    await run_until_quiet(env)
    await published(submission)
    for job in JOBS:
        assert await run_job(job, forced=True)


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("VSKILL_MAX_CONCURENCY", "4", "nearest is VSKILL_MAX_CONCURRENCY"),
        ("VSKILL_MAX_CONCURRENCY", "", "not valid"),
        ("VSKILL_STORE", "", "not valid"),
        ("VSKILL_LOG_LEVEL", "loud", "debug or info or warning or error"),
    ],
)
def test_D2_silently_empty_settings_are_refused(name: str, value: str, complaint: str) -> None:
    """A misspelt, empty or impossible setting stops the start and names the variable."""
    with pytest.raises(InvalidSettings, match=complaint):
        load_settings({name: value})


async def test_D3_a_late_worker_overwrites_no_success(env: Env) -> None:
    """A worker that stood still past its claim comes back with a failure: the other's PUBLISHED stays (c)."""
    scanner = HeldScanner(TroubledScanner(env.scanner, b"A small skill", RuntimeError("too late")))
    with active_env(env, scanner=scanner, worker_id="late") as late:
        submission = record_of(await submit_skill("contested"))
        work = asyncio.create_task(run_until_quiet(late))
        await scanner.until_inside(1)
        pass_time(env, CLAIM_MS)
        with active_env(env, worker_id="quick") as quick:
            await run_until_quiet(quick)
        before = await get_submission(submission.id)
        assert before.state is State.PUBLISHED
        scanner.open.set()
        await work
    after = await get_submission(submission.id)
    assert after == before
    assert (after.attempts.interrupted, after.attempts.failed) == (1, 0)
    check_history(after)
    assert len((await published(submission)).versions) == 1


async def test_D3_two_workers_past_the_same_claim_publish_once(env: Env) -> None:
    """The late worker's result would have been a success too: it is still written by one of them only (c)."""
    scanner = HeldScanner(env.scanner)
    with active_env(env, scanner=scanner, worker_id="late") as late:
        submission = record_of(await submit_skill("contested"))
        work = asyncio.create_task(run_until_quiet(late))
        await scanner.until_inside(1)
        pass_time(env, CLAIM_MS)
        with active_env(env, worker_id="quick") as quick:
            await run_until_quiet(quick)
        scanner.open.set()
        await work
    record = await get_submission(submission.id)
    assert [event.to for event in record.history].count(State.PUBLISHED) == 1
    assert record.history[-1].actor == "worker:quick"
    assert len((await published(submission)).versions) == 1


async def test_D3_duplicate_deliveries_change_nothing(env: Env) -> None:
    """Every message of 185 published submissions comes again, three times: not one record moves."""
    names = [f"skill-{number}" for number in range(185)]
    for name in names:
        await submit_skill(name)
    await run_until_quiet(env)
    ids = [submission_id(upload_identity("tests", name)) for name in names]
    before = await get_submissions_fresh(ids)
    assert {record.state for record in before} == {State.PUBLISHED}
    for _ in range(3):
        await env.broker.send_batch([submission_send(number, 1) for number in ids])
        assert await run_until_quiet(env) == 185
    assert await get_submissions_fresh(ids) == before
    assert (await env.broker.depth()).dead == 0


async def test_D4_the_same_place_is_one_record(env: Env) -> None:
    """Fifty submissions of one place at once, then fifty more: one record, one message, one version."""
    for _ in range(2):
        outcomes = [
            one.outcome for one in await asyncio.gather(*(submit_skill("popular") for _ in range(50)))
        ]
        assert set(outcomes) <= {IntakeOutcome.CREATED, IntakeOutcome.DUPLICATE}
        assert outcomes.count(IntakeOutcome.CREATED) <= 1
    assert (await count_submissions(audiences=EVERYTHING)).total == 1
    assert (await env.broker.depth()).ready == 1
    await run_until_quiet(env)
    assert len(await all_keys(env, keys.version.prefix)) == 1


async def test_D5_D6_history_is_gapless_and_in_order(env: Env) -> None:
    """A clock that goes back, deaths, failures, runs: every step follows the one before, with a number and a time
    that do not go back."""
    scanner = TroubledScanner(env.scanner, b"fails at first", RuntimeError("broken"))
    with active_env(env, scanner=scanner) as troubled:
        submission = record_of(await submit_skill("long-lived", "fails at first"))
        await run_until_quiet(troubled)
        pass_time(env, -60_000)
        await run_until_quiet(troubled, recover=True)
        await cancel(submission.id, by="user:ann", reason="never mind")
        for body in ("one", "two", "three"):
            pass_time(env, -5_000)
            await submit_skill("long-lived", body)
            await run_until_quiet(troubled, recover=True)
            pass_time(env, 100_000)
            await run_until_quiet(troubled, recover=True)
    record = await get_submission(submission.id)
    assert (record.state, record.run) == (State.PUBLISHED, 4)
    runs = [await get_run(submission.id, number) for number in range(1, 5)]
    for run in runs:
        check_history(run)
    events = [event for run in runs for event in run.history]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [event.at for event in events] == sorted(event.at for event in events)
    assert all(event.source is not None for event in events[1:])


async def test_D7_a_double_approval_is_one_approval(env: Env) -> None:
    """Two reviewers at once: one event, one version; the other hears that it is decided."""
    submission = await awaiting_review(env, "approved-twice")
    answers = await asyncio.gather(
        *(approve(submission.id, by=f"admin:{name}", reason="fine") for name in ("ann", "bob", "cy")),
        return_exceptions=True,
    )
    assert sum(isinstance(answer, TransitionError) for answer in answers) == 2
    await run_until_quiet(env)
    record = await get_submission(submission.id)
    assert [event.to for event in record.history].count(State.AUTO_APPROVED) == 1
    assert len((await published(submission)).versions) == 1


async def test_D7_approval_against_rejection_has_one_winner(env: Env) -> None:
    """Whoever writes first decides; a rejection of what is being published ends it, and both are in the history."""
    submission = await awaiting_review(env, "disputed")
    await asyncio.gather(
        approve(submission.id, by="admin:ann", reason="fine"),
        reject(submission.id, by="admin:bob", reason="not fine"),
        return_exceptions=True,
    )
    await run_until_quiet(env)
    record = await get_submission(submission.id)
    check_history(record)
    live = await enumerate_published_skills()
    assert (record.state, len(live)) in {(State.REJECTED, 0), (State.PUBLISHED, 1)}


def place(submission: Submission) -> BlockTarget:
    return place_target(submission.identity)


def repository(submission: Submission) -> BlockTarget:
    return repository_target(submission.identity)


def name_everywhere(submission: Submission) -> BlockTarget:
    return name_target(submission.skill_name)


def content(submission: Submission) -> BlockTarget:
    assert submission.upload is not None
    return digest_target(submission.upload)


@pytest.mark.parametrize("target", [place, repository, name_everywhere, content], ids=lambda t: t.__name__)
async def test_D14_blocked_while_being_published(
    env: Env, target: Callable[[Submission], BlockTarget]
) -> None:
    """The block is written between publishing's check and its commit: nothing goes live, and both records agree."""
    kv = HookedKV(env.kv)
    submission = record_of(await submit_skill("sneaky"))
    blocked = 0

    async def block_first(operations: Sequence[Operation]) -> None:
        nonlocal blocked
        if state_written(operations) is State.PUBLISHED and not blocked:
            blocked += 1
            with active_env(env):
                await add_block(entry_for(target(submission), env.kv.now()))

    kv.before_commit = block_first
    with active_env(env, kv=kv) as raced:
        await run_until_quiet(raced)
    record = await get_submission(submission.id)
    assert (blocked, record.state, record.published) == (1, State.BLOCKED, None)
    assert "malicious" in record.history[-1].reason
    assert await enumerate_published_skills() == []
    assert await all_keys(env, keys.skill.prefix) == []

    assert await remove_block(target(submission))
    await reapply_blocklist()
    await run_until_quiet(env)
    await published(submission)


async def test_D14_a_block_ends_what_runs_and_takes_down_what_is_live(env: Env) -> None:
    """A worker that holds it meanwhile loses its claim, and the version that was live is not any more."""
    submission = record_of(await submit_skill("turned-bad", "one"))
    await run_until_quiet(env)
    scanner = HeldScanner(env.scanner)
    with active_env(env, scanner=scanner) as held:
        await submit_skill("turned-bad", "two")
        work = asyncio.create_task(run_until_quiet(held))
        await scanner.until_inside(1)
        await add_block(entry_for(place(submission), env.kv.now()))
        await reapply_blocklist()
        scanner.open.set()
        await work
    record = await get_submission(submission.id)
    assert (record.state, record.run) == (State.BLOCKED, 2)
    assert await enumerate_published_skills() == []
    assert (await submit_skill("turned-bad", "three")).outcome is IntakeOutcome.BLOCKED
    check_history(record)


async def test_D15_content_submitted_during_a_run_is_looked_at(env: Env) -> None:
    """Pushed and submitted again while a worker is at it: the run ends, and the next one judges the latest."""
    scanner = HeldScanner(env.scanner)
    with active_env(env, scanner=scanner) as held:
        submission = record_of(await submit_skill("hasty", "one"))
        work = asyncio.create_task(run_until_quiet(held))
        await scanner.until_inside(1)
        for body in ("two", "three"):
            assert (await submit_skill("hasty", body)).outcome is IntakeOutcome.DUPLICATE
        scanner.open.set()
        await work
    record = await get_submission(submission.id)
    assert (record.state, record.run, record.rerun_requested) == (State.PUBLISHED, 2, None)
    assert record.digest == digest_of_files(skill_files("hasty", "three"))
    assert (await get_run(submission.id, 1)).state is State.PUBLISHED
    assert [ref.number for ref in (await published(submission)).versions] == ["1.0.0", "1.0.1"]
    check_history(record)


async def test_D15_content_submitted_as_the_run_ends_is_looked_at(env: Env) -> None:
    """It arrives between the worker's last read and its last write: neither is lost."""
    kv = HookedKV(env.kv)
    late = 0

    async def submit_first(operations: Sequence[Operation]) -> None:
        nonlocal late
        if state_written(operations) is State.PUBLISHED and not late:
            late += 1
            with active_env(env):
                await submit_skill("hasty", "late")

    kv.before_commit = submit_first
    with active_env(env, kv=kv) as raced:
        submission = record_of(await submit_skill("hasty", "early"))
        await run_until_quiet(raced)
    assert late == 1
    live = await published(submission)
    assert live.current_digest == digest_of_files(skill_files("hasty", "late"))
    assert (await get_submission(submission.id)).run == 2


async def test_D15_cancelling_forgets_the_rerun(env: Env) -> None:
    """Whoever cancels means all of it."""
    scanner = HeldScanner(env.scanner)
    with active_env(env, scanner=scanner) as held:
        submission = record_of(await submit_skill("dropped", "one"))
        work = asyncio.create_task(run_until_quiet(held))
        await scanner.until_inside(1)
        await submit_skill("dropped", "two")
        await cancel(submission.id, by="user:ann", reason="never mind")
        scanner.open.set()
        await work
    record = await get_submission(submission.id)
    assert (record.state, record.run, record.rerun_requested) == (State.DEQUEUED, 1, None)
    assert await enumerate_published_skills() == []


async def test_D16_duplicate_messages_reject_nothing(env: Env) -> None:
    """Twenty copies of a message come again and again while a worker is at it: only the record's attempts count,
    so the run is healthy and no message becomes a dead letter."""
    scanner = HeldScanner(env.scanner)
    with active_env(env, scanner=scanner, worker_id="holder", pace=Pace(renew_every_ms=5)) as holder:
        submission = record_of(await submit_skill("doubled"))
        work = asyncio.create_task(run_until_quiet(holder))
        await scanner.until_inside(1)
        send = submission_send(submission.id, 1)
        for _ in range(20):
            await env.broker.send(send.body, None)
        with active_env(env, worker_id="beside") as beside:
            for _ in range(12):
                await run_until_quiet(beside)
                pass_time(env, CLAIM_MS // 2)
                await _renewed(submission.id, env.kv.now() + CLAIM_MS)
        scanner.open.set()
        await work
    pass_time(env, CLAIM_MS)
    await run_until_quiet(env)
    record = await get_submission(submission.id)
    assert record.state is State.PUBLISHED
    assert (record.attempts.started, record.attempts.failed, record.attempts.interrupted) == (1, 0, 0)
    depth = await env.broker.depth()
    assert (depth.dead, depth.ready, depth.delayed, depth.leased) == (0, 0, 0, 0)


async def _renewed(submission_id: str, until: int) -> None:
    """Wait until the holder has renewed its claim to this time."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            claim = (await get_submission(submission_id)).claim
            if claim is not None and claim.until >= until:
                return
            await asyncio.sleep(0.005)


async def test_D8_a_crawler_that_submits_twice_makes_nothing_twice(env: Env) -> None:
    """The commit was applied and its answer was lost: trying again finds its own record."""
    kv = HookedKV(env.kv)
    answers = 0

    async def lose(operations: Sequence[Operation]) -> None:
        nonlocal answers
        answers += 1
        if answers % 2:
            raise StoreUnavailable("applied, but the connection died")

    kv.after_commit = lose
    with active_env(env, kv=kv):
        outcomes = [(await submit_skill(f"found-{number}")).outcome for number in range(10)]
    assert outcomes == [IntakeOutcome.CREATED] * 10
    assert (await count_submissions(audiences=EVERYTHING)).total == 10
    await run_until_quiet(env)
    assert len(await enumerate_published_skills()) == 10


async def test_D9_a_batch_that_broke_off_is_sent_again_whole(env: Env) -> None:
    """At least once is safe: after a crash in the middle the crawler sends everything again, and nothing is lost
    or doubled, whatever had become of the first part meanwhile."""
    names = [f"found-{number}" for number in range(30)]
    for name in names[:13]:
        await submit_skill(name)
    await run_until_quiet(env)
    outcomes = [(await submit_skill(name)).outcome for name in names]
    assert outcomes == [IntakeOutcome.ALREADY_VERIFIED] * 13 + [IntakeOutcome.CREATED] * 17
    await run_until_quiet(env)
    assert len(await enumerate_published_skills()) == 30
    assert len(await all_keys(env, keys.version.prefix)) == 30


async def test_D10_a_block_reaches_what_it_names_and_nothing_else(env: Env) -> None:
    """Blocking "google" in one repository leaves every other skill of that name; blocking the name takes all."""
    sources = ListedSources(env.blobs)
    with active_env(env, sources=sources) as listed:
        owners = ("ann", "bob", "cy")
        ann, bob, cy = [
            await submit_place(sources, f"https://github.com/{owner}/tools", "google", "google", owner)
            for owner in owners
        ]
        await run_until_quiet(listed)
        await add_block(entry_for(place(ann), env.kv.now()))
        version = await reapply_blocklist()
        assert [one.slug for one in await enumerate_published_skills()] == [
            "bob/tools/google",
            "cy/tools/google",
        ]
        assert [(await get_submission(one.id)).state for one in (ann, bob, cy)] == [
            State.BLOCKED,
            State.PUBLISHED,
            State.PUBLISHED,
        ]
        # The pass completed the entry with what it hit, which raises the version: the next one writes nothing.
        settled = await reapply_blocklist(version)
        assert settled == await blocklist_version() > version
        assert await reapply_blocklist(settled) == settled
        await add_block(entry_for(name_target("Google"), env.kv.now()))
        await reapply_blocklist(settled)
        assert await enumerate_published_skills() == []


SPELLINGS = (
    "https://github.com/Ann/Tools",
    "https://github.com/ann/tools.git",
    "http://www.github.com/ANN/TOOLS/",
    "git@github.com:ann/tools.git",
    "ssh://git@github.com/ann/tools",
    "ann/tools",
    "https://user:secret@github.com/ann/tools?tab=readme#top",
)


async def test_D13_every_spelling_is_one_submission(env: Env) -> None:
    """Case, `.git`, schemes, user info, `www.` and trailing slashes make no second record."""
    sources = ListedSources(env.blobs)
    identity = normalise("https://github.com/ann/tools", "skills/fmt")
    sources.places[identity.key] = skill_files("fmt")
    with active_env(env, sources=sources):
        ids = {record_of(await submit_repository(spelling, "skills/fmt")).id for spelling in SPELLINGS}
        for view in ("tree/main/skills/fmt", "blob/main/skills/fmt/SKILL.md"):
            ids.add(record_of(await submit_repository(f"https://github.com/ann/tools/{view}")).id)
    assert ids == {submission_id(identity)}
    assert (await count_submissions(audiences=EVERYTHING)).total == 1
    record = await get_submission(ids.pop())
    assert record.repo_url == "https://github.com/Ann/Tools", "it is shown as it was first written"


async def test_D13_uploads_too_are_compared_without_case(env: Env) -> None:
    await submit_upload(skill_files("fmt"), namespace="Ann", slug="Fmt")
    await submit_upload(skill_files("fmt"), namespace="ann", slug="fmt")
    assert (await count_submissions(audiences=EVERYTHING)).total == 1


async def test_D16_a_message_of_an_old_run_touches_no_new_one(env: Env) -> None:
    """A message that was delayed for so long that its run is over is settled without a look at the content."""
    submission = record_of(await submit_skill("moved-on", "one"))
    await run_until_quiet(env)
    await submit_skill("moved-on", "two")
    await run_until_quiet(env)
    before = await get_submission(submission.id)
    await env.broker.send(submission_send(submission.id, 1).body, None)
    assert await run_until_quiet(env) == 1
    assert await get_submission(submission.id) == before


async def test_D5_a_record_without_a_reason_cannot_be_written(env: Env) -> None:
    """Actors that give no reason are refused before anything is written."""
    record = make_submission("unexplained", at=env.kv.now())
    await put_record(env, record)
    actions: list[Callable[[], Awaitable[Submission]]] = [
        lambda: cancel(record.id, by="user:ann", reason=" "),
        lambda: reject(record.id, by="admin:ann", reason=""),
    ]
    for act in actions:
        with pytest.raises(Exception, match="reason"):
            await act()
    assert await until_state(record.id, State.RECEIVED) == record
