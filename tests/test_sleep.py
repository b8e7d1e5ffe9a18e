"""A machine that sleeps: time in which we did not run is our shortage, and no verdict about anybody's content.

`SleepyLoop` owns the clock of the event loop: `sleep_through` is what a stopped process sees when it goes on, every
timer long due at once. That a stopped process sees exactly this is shown with a real one.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.external_scan.conftest import GOOD_PYTHON, NONE, published, script
from tests.judge.server import Asked, Reply, judge_server, passes
from tests.judge.test_judge import CLEAN, FILES
from tests.scan.hanging import wait_for_file
from tests.support.compiled_rules import keep_compiled_rules
from tests.support.envs import make_submission, open_test_env, run_until_quiet
from tests.support.git_server import git_server, skill_md
from tests.support.lifetimes import running
from tests.support.manual_clock import ManualClock
from tests.support.memory_env import memory_env
from tests.support.patience import PATIENCE_S, wait_until
from tests.test_consumer import Scripted, read, submit, work
from vskill_core.content import SkillFile
from vskill_core.errors import ClaimLost, Shortage, SourceUnavailable
from vskill_core.findings import JudgeStatus, ScanStatus, StaticReport
from vskill_core.identity import normalise
from vskill_platform.domain.messages import TaskMessage
from vskill_platform.domain.operation.task import Task, TaskState
from vskill_platform.domain.submissions.attempts import CLAIM_MS, UNAVAILABLE_FIRST_MS
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.external_scan.dispatch import request_scans
from vskill_platform.ledger.clock import TICK_S, TimeLimit
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.observing.logs import logger
from vskill_platform.observing.metrics import Metrics
from vskill_platform.queue.tasks import handle_task
from vskill_platform.settings import Settings
from vskill_platform.sources.addresses import Hosts
from vskill_platform.sources.command import find_git
from vskill_platform.sources.git import FetchSettings, GitSource
from vskill_platform.store.external_scans import ExternalStatus, get_external_scan
from vskill_platform.store.tasks import TaskEnd, TaskKind, ask_for, read_task
from vskill_platform.tiers.judge import HttpJudge, JudgeAddress, make_client
from vskill_platform.tiers.pool import PooledScanner

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

GIT = find_git()
TOOLS = normalise("https://github.com/ann/tools")
#: Longer than every limit of the product.
NIGHT_S = 10 * 3600.0


class SleepyLoop(asyncio.SelectorEventLoop):
    """Its clock can be put on, as if the process had been stopped."""

    slept = 0.0

    def time(self) -> float:
        return super().time() + self.slept


@pytest.fixture(scope="module")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "asyncio", {"loop_factory": SleepyLoop}


async def sleep_through() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SleepyLoop)
    loop.slept += NIGHT_S
    for _ in range(20):  # whatever is due by now comes to its end
        await asyncio.sleep(0)


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - only another process knows
            await asyncio.sleep(0.01)


# The limit itself.


async def test_a_limit_counts_the_time_in_which_the_process_ran():
    with pytest.raises(TimeoutError):
        async with TimeLimit(0.1) as limit:
            await asyncio.Event().wait()
    assert limit.expired() and not limit.slept
    async with TimeLimit(0.1) as limit:
        await sleep_through()
    assert limit.slept and not limit.expired()
    limit = TimeLimit(0.1)
    with pytest.raises(TimeoutError):
        await sleep_and_wait(limit)
    assert limit.slept and limit.expired()


async def test_a_limit_ends_also_where_the_process_hardly_ever_runs():
    async def sleep_on(limit: TimeLimit) -> None:
        async with limit:
            while not limit.expired():
                await sleep_through()

    with pytest.raises(TimeoutError):
        await sleep_on(TimeLimit(0.1))


async def sleep_and_wait(limit: TimeLimit) -> None:
    async with limit:
        await sleep_through()
        await asyncio.Event().wait()


_WAITING = """
import asyncio, sys
{loop}
from vskill_platform.ledger.clock import TimeLimit

async def main():
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with TimeLimit(0.5):
        print("waiting", flush=True)
        print((await reader.readline()).decode().strip(), flush=True)

run(main())
"""


@pytest.mark.parametrize("loop", ["from asyncio import run", "from uvloop import run"])
def test_a_process_that_was_stopped_still_takes_the_answer_that_came_meanwhile(loop):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with running([sys.executable, "-c", _WAITING.format(loop=loop)], **pipes) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        os.kill(process.pid, signal.SIGSTOP)
        stopped = os.times().elapsed
        wait_until(lambda: os.times().elapsed - stopped > 0.5 + 2 * TICK_S, "time stands still")
        process.stdin.write("answered\n")
        process.stdin.flush()
        os.kill(process.pid, signal.SIGCONT)
        assert process.stdout.readline() == "answered\n"


# Each limit by the clock.


class Held:
    """A program that waits at a certain call until it may go on."""

    def __init__(self, folder: Path) -> None:
        self.asked, self.go = folder / "asked", folder / "go"

    def git(self, command: str) -> str:
        program = self.asked.with_name("git")
        hold = f': > "{self.asked}"; while [ ! -e "{self.go}" ]; do sleep 0.02; done'
        program.write_text(f'#!/bin/sh\nif [ "$1" = {command} ]; then {hold}; fi\nexec {GIT} "$@"\n')
        program.chmod(0o755)
        return str(program)

    async def sleep_through(self) -> None:
        """Sleep while the program waits; then let it go on."""
        await until(self.asked.exists)
        await sleep_through()
        self.go.touch()


@pytest.fixture
def held(tmp_path) -> Held:
    return Held(tmp_path)


@pytest.mark.parametrize("command", ["fetch", "ls-tree", "cat-file"])
async def test_a_fetch_that_was_slept_through_gets_its_files(held, tmp_path, command):
    with git_server(tmp_path / "served") as server:
        server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
        hosts = Hosts((), rewrites=(server.rewrite(),))
        source = GitSource(held.git(command), hosts, FetchSettings(folder=tmp_path / "fetch"))
        fetching = asyncio.create_task(source.fetch(make_submission("demo", identity=TOOLS)))
        await held.sleep_through()
        assert (await fetching).files
        await source.close()


@pytest.mark.parametrize("command", ["fetch", "ls-tree", "cat-file"])
async def test_a_repository_whose_skills_are_looked_for_is_slept_through(held, tmp_path, command):
    with git_server(tmp_path / "served") as server:
        server.repo("ann/tools", {"a/SKILL.md": skill_md("a"), "b/SKILL.md": skill_md("b")})
        hosts = Hosts((), rewrites=(server.rewrite(),))
        source = GitSource(held.git(command), hosts, FetchSettings(folder=tmp_path / "fetch"))
        looking = asyncio.create_task(source.survey(TOOLS))
        await held.sleep_through()
        assert len((await looking).places) == 2
        await source.close()


@pytest.mark.parametrize("command", ["ls-tree", "cat-file"])
async def test_a_git_that_gets_nothing_of_the_processor_is_not_the_contents_fault(held, tmp_path, command):
    """Its processor time is limited; what takes long without it waits for this machine."""
    with git_server(tmp_path / "served") as server:
        server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
        hosts = Hosts((), rewrites=(server.rewrite(),))
        submission, git = make_submission("demo", identity=TOOLS), held.git(command)
        hurried = GitSource(git, hosts, FetchSettings(folder=tmp_path / "hurried", seconds=1.0))
        with pytest.raises(Shortage, match="too little of the processor"):
            await _fetch_as_far_as(held, hurried, submission)
        await hurried.close()
        held.go.touch()
        source = GitSource(git, hosts, FetchSettings(folder=tmp_path / "fetch"))
        assert (await source.fetch(submission)).files
        await source.close()


async def _fetch_as_far_as(held: Held, source: GitSource, submission: Submission) -> None:
    """Fetch until the held command takes the time; on a busy machine, what comes before it can take nearly all of it."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await source.fetch(submission)
            except Shortage:
                assert held.asked.exists()
                raise
            except SourceUnavailable:
                held.asked.unlink(missing_ok=True)


async def test_a_scan_that_was_slept_through_is_complete(held, tmp_path):
    await asyncio.to_thread(keep_compiled_rules, tmp_path)
    scanner = await PooledScanner.open(wait_for_file, processes=1, cache=tmp_path / "scanner")
    try:
        text = skill_md("a") + f"\nwait: {held.asked} {held.go}\n".encode()
        scanning = asyncio.create_task(scanner.scan([SkillFile("SKILL.md", "100644", text)]))
        await held.sleep_through()
        assert (await scanning).status is ScanStatus.COMPLETE
    finally:
        await scanner.close()


async def test_an_analysis_that_was_slept_through_is_complete(held, tmp_path):
    program = tmp_path / "fake-bandit"
    program.write_text(
        f"#!{sys.executable} -IS\nimport os, sys, time\nif '--version' in sys.argv: sys.exit()\n"
        f"open({str(held.asked)!r}, 'w')\nwhile not os.path.exists({str(held.go)!r}): time.sleep(0.02)\n"
        'print(\'{"results": [], "errors": []}\')\n'
    )
    program.chmod(0o755)
    given = {**NONE, "bandit_command": str(program)}
    async with open_test_env("memory", tmp_path / "data", **given) as env:
        digest = await published(env, "demo", script("a.py", GOOD_PYTHON))
        await request_scans(digest)
        working = asyncio.create_task(run_until_quiet(env))
        await held.sleep_through()
        await working
        report = await get_external_scan(digest, "bandit")
    assert report is not None and report.status is ExternalStatus.COMPLETE


@asynccontextmanager
async def open_judge(url: str) -> AsyncIterator[HttpJudge]:
    settings = Settings(judge_url=url, judge_model="m", judge_budget_ms=3_000)
    client = await asyncio.to_thread(make_client, url, settings)
    address = JudgeAddress("first", url, "m", "")
    yield HttpJudge(client, address, settings, clock=ManualClock(), log=logger(), metrics=Metrics())
    await client.aclose()


class SlowAnswer:
    """A judge's server that waits before it answers, or that never does."""

    def __init__(self) -> None:
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def __call__(self, asked: Asked) -> Reply | None:
        self.asked.set()
        await self.go.wait()
        return await passes(asked)


async def test_a_judge_whose_answer_was_slept_through_has_answered():
    async with judge_server() as server, open_judge(server.url) as judge:
        server.answer = slow = SlowAnswer()
        asking = asyncio.create_task(judge.review(FILES, CLEAN))
        await slow.asked.wait()
        await sleep_through()
        slow.go.set()
        assert (await asking).status is JudgeStatus.ANSWERED


async def test_a_judge_that_we_lost_while_we_slept_is_asked_again_and_not_down():
    """No packet comes through any more: the other side has long given up."""
    async with judge_server() as server, open_judge(server.url) as judge:
        server.answer = slow = SlowAnswer()
        asking = asyncio.create_task(judge.review(FILES, CLEAN))
        await slow.asked.wait()
        await sleep_through()
        with pytest.raises(Shortage, match="slept"):
            await asking
        slow.go.set()
        assert (await judge.review(FILES, CLEAN)).status is JudgeStatus.ANSWERED


async def test_the_budget_of_a_submission_does_not_count_sleep():
    scanner = Scripted()
    scanner.go_on.clear()
    env = memory_env(ManualClock(), scanner=scanner)
    submission = await submit(env, "demo")
    working = asyncio.create_task(work(env))
    await scanner.started.wait()
    await sleep_through()
    scanner.go_on.set()
    await working
    record = await read(env, submission)
    assert (record.state, record.attempts.failed) == (State.PUBLISHED, 0)


async def test_the_budget_of_a_task_does_not_count_sleep():
    began, go_on = asyncio.Event(), asyncio.Event()

    async def run(_: Task) -> TaskEnd:
        began.set()
        await go_on.wait()
        return TaskEnd("did it")

    async with open_test_env("memory", Path("unused")) as env:
        await ask_for("demo", "one", {})
        ((batch,),) = (await env.broker.receive(1, 0),)
        kinds = (TaskKind("demo", "for tests", run),)
        working = asyncio.create_task(handle_task(batch.messages[0], TaskMessage("demo", "one", 1), kinds))
        await began.wait()
        await sleep_through()
        go_on.set()
        assert await working == "done"


# The claim.


@pytest.mark.parametrize("verdict", [StaticReport("r", ScanStatus.TIMED_OUT), RuntimeError("broken"), None])
async def test_whoever_finds_that_its_claim_ran_out_writes_no_verdict(verdict):
    clock = ManualClock()
    scanner = Scripted(verdict)
    scanner.go_on.clear()
    env = memory_env(clock, scanner=scanner)
    submission = await submit(env, "demo")
    working = asyncio.create_task(work(env))
    await scanner.started.wait()
    clock.advance(CLAIM_MS)
    scanner.go_on.set()
    await working
    record = await read(env, submission)
    assert (record.state, record.claim, record.decision) == (State.RECEIVED, None, None)
    assert (record.attempts.failed, record.attempts.interrupted) == (0, 0)
    assert record.history[-1].reason == "its claim ran out, as when this machine slept"
    assert record.attempts.waiting_for == "this machine"
    clock.advance(UNAVAILABLE_FIRST_MS)
    await work(env)
    assert (await read(env, submission)).state is State.PUBLISHED


async def test_a_task_whose_claim_ran_out_writes_no_result():
    clock = ManualClock()

    async def run(_: Task) -> TaskEnd:
        clock.advance(CLAIM_MS)
        return TaskEnd("did it", (Put("extscan:one:demo", b"{}"),))

    async with open_test_env("memory", Path("unused"), clock=clock) as env:
        await ask_for("demo", "one", {})
        ((batch,),) = (await env.broker.receive(1, 0),)
        with pytest.raises(ClaimLost):
            await handle_task(
                batch.messages[0], TaskMessage("demo", "one", 1), (TaskKind("demo", "for tests", run),)
            )
        task, _ = await read_task("demo", "one")
        assert task is not None
        assert (task.state, task.claim, task.attempts.interrupted) == (TaskState.ACTIVE, None, 0)
        assert await env.kv.get("extscan:one:demo") is None


# The day after which a person is asked.


async def test_a_machine_that_slept_for_a_weekend_goes_on_trying():
    """A source that was away for a moment on Friday evening and on Monday morning was not away for a day."""

    class Down:
        async def fetch(self, _: Submission) -> None:
            raise SourceUnavailable(host="github.com")

    clock = ManualClock()
    env = memory_env(clock, sources=Down())
    submission = await submit(env, "demo")
    await work(env)
    clock.advance(60 * 3_600_000)
    await work(env)
    record = await read(env, submission)
    assert (record.state, record.attempts.unavailable) == (State.RECEIVED, 2)


async def test_a_remote_analyser_that_could_not_call_while_we_slept_has_as_long_again(tmp_path):
    clock, given = ManualClock(), {**NONE, "external_scan_secrets": ("far=a-secret-of-far-away",)}
    async with open_test_env("memory", tmp_path, clock=clock, **given) as env:
        digest = await published(env, "demo")
        await request_scans(digest)
        clock.advance(env.settings.external_scan_callback_ms + int(NIGHT_S * 1000))
        await run_until_quiet(env)
        assert await get_external_scan(digest, "far") is None
        clock.advance(env.settings.external_scan_callback_ms)
        await run_until_quiet(env)
        report = await get_external_scan(digest, "far")
    assert report is not None and report.status is ExternalStatus.TIMED_OUT
