"""Analysers that hang, crash, babble or are interrupted: killed, bounded, reported, and nothing is left behind."""

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.external_scan.conftest import GOOD_PYTHON, NONE, processes_with, published, script
from tests.processes.workers import until
from tests.support.damage import lose
from tests.support.dead_letters import list_dead_letters
from tests.support.envs import open_test_env, run_until_quiet
from tests.support.manual_clock import ManualClock
from tests.support.patience import PATIENCE_S
from vskill_platform.domain.operation.task import TaskState
from vskill_platform.external_scan import launch, sandbox
from vskill_platform.external_scan.dispatch import request_scans
from vskill_platform.external_scan.sandbox import SandboxLimits, private_folder, run
from vskill_platform.queue.health import queue_health
from vskill_platform.store.external_scans import ExternalStatus, get_external_scan, read_external_task

pytestmark = pytest.mark.anyio

REPORT = 'print(\'{"results": [], "errors": []}\')'


async def report_of(program: str, tmp_path: Path, **settings):
    """What becomes of one published skill when the analyser is this program."""
    given = {**NONE, "bandit_command": program, **settings}
    clock = ManualClock()
    async with open_test_env("sqlite", tmp_path / "data", clock=clock, **given) as env:
        digest = await published(env, "demo", script("a.py", GOOD_PYTHON))
        await request_scans(digest)
        for _ in range(2):
            await run_until_quiet(env)
            clock.advance(10_000)
        task = await read_external_task(digest, "bandit")
        assert task is not None and task.state is TaskState.DONE
        assert (await queue_health()).violations == () and await list_dead_letters() == []
        folders = tmp_path / "data" / "analyses"
        assert not folders.exists() or list(folders.iterdir()) == []
        return await get_external_scan(digest, "bandit"), task


async def test_an_analyser_that_hangs_is_killed_with_all_its_children(fake, tmp_path):
    marker = f"vskill-test-{os.getpid()}"
    code = (
        "import subprocess\n"
        f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', {marker!r}])\n"
        "time.sleep(600)"
    )
    report, task = await report_of(fake(code), tmp_path, external_scan_budget_ms=1_000)
    assert (report.status, report.verdict) == (ExternalStatus.TIMED_OUT, None)
    assert "1 s" in report.problem and task.attempts.started == 1
    assert processes_with(marker) == []


async def test_processor_time_is_bounded_too(fake, tmp_path):
    async with private_folder(tmp_path / "x") as folder:
        limits = SandboxLimits(seconds=PATIENCE_S, cpu_s=1)
        began = time.monotonic()
        finished = await run([fake("while True: pass")], folder, limits, {})
        assert time.monotonic() - began < PATIENCE_S, "not the time but the processor time was over"
    assert finished.timed_out


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("sys.stderr.write('Traceback: boom'); sys.exit(3)", "code 3: Traceback: boom"),
        ("os.kill(os.getpid(), 6)", "code 134"),
        ("print('not a report')", "not what was asked for"),
        ("print()", "not what was asked for"),
        ("sys.stdout.write('x' * (9 << 20))", "printed more than"),
        ("x = bytearray(3 << 30)", "MemoryError"),
    ],
    ids=["exit", "abort", "garbage", "empty", "oversize", "memory"],
)
async def test_an_analyser_that_breaks_is_tried_once_more_and_then_reported(fake, tmp_path, code, words):
    report, task = await report_of(fake(code), tmp_path)
    assert (report.status, report.verdict, report.findings) == (ExternalStatus.ERROR, None, ())
    assert words in report.problem
    assert (task.attempts.started, task.attempts.failed) == (2, 1)


async def test_one_that_breaks_once_is_forgiven(fake, tmp_path):
    once = tmp_path / "once"
    code = f"if not os.path.exists({str(once)!r}):\n    open({str(once)!r}, 'w'); sys.exit(9)\n{REPORT}"
    report, _ = await report_of(fake(code), tmp_path)
    assert (report.status, report.version) == (ExternalStatus.COMPLETE, "0.0.1")


async def test_an_analyser_sees_nothing_of_ours_and_no_network(fake, tmp_path, monkeypatch):
    monkeypatch.setenv("VSKILL_JUDGE_API_KEY", "sk-secret")
    code = (
        "import json, socket, resource\n"
        "try:\n    socket.create_connection(('127.0.0.1', PORT), 2); net = True\n"
        "except OSError:\n    net = False\n"
        "print(json.dumps({'env': dict(os.environ), 'net': net, 'mode': os.stat('.').st_mode & 0o777,"
        " 'core': resource.getrlimit(resource.RLIMIT_CORE)[0], 'cwd': os.getcwd()}))"
    )
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with private_folder(tmp_path / "x") as folder:
        finished = await run([fake(code.replace("PORT", str(port)))], folder, SandboxLimits(), {"MORE": "1"})
    server.close()
    seen = json.loads(finished.out)
    assert "sk-secret" not in finished.out.decode()
    assert set(seen["env"]) - {"LC_CTYPE"} == {
        "PATH", "HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "LC_ALL",
        "PYTHONDONTWRITEBYTECODE", "PYTHONSAFEPATH", "MORE",
    }  # fmt: skip
    assert (seen["mode"], seen["core"], seen["cwd"]) == (0o700, 0, str(folder))
    # Where the system permits no namespaces the report says so instead.
    assert seen["net"] is not finished.isolated
    assert not folder.exists()


async def test_a_cancelled_analysis_leaves_no_process_and_no_folder(fake, tmp_path):
    marker = f"vskill-cancel-{os.getpid()}"
    program = fake("time.sleep(600)")

    async def work() -> None:
        async with private_folder(tmp_path / "x") as folder:
            await run([program, marker], folder, SandboxLimits(), {})

    working = asyncio.create_task(work())

    async def started() -> bool:
        return processes_with(marker) != []

    await until(started, 10, "it was not started")
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert processes_with(marker) == [] and list((tmp_path / "x").iterdir()) == []


async def test_what_a_dead_worker_left_behind_is_removed_by_the_next(tmp_path):
    old, young = tmp_path / "analysis-old", tmp_path / "analysis-young"
    for folder in (old, young):
        folder.mkdir()
    past = time.time() - sandbox.LEFT_BEHIND_S - 60
    os.utime(old, (past, past))
    async with private_folder(tmp_path) as mine:
        assert mine.stat().st_mode & 0o777 == 0o700
        assert not old.exists() and young.exists()


async def test_the_launcher_says_what_it_achieved_and_starts_nothing_for_a_dead_parent(tmp_path):
    given = {
        "parent": os.getpid(), "note": str(tmp_path / "note"), "cpu_s": 10, "memory_bytes": 1 << 30,
        "file_bytes": 1 << 20, "processes": 64, "open_files": 64,
    }  # fmt: skip

    def start(settings: dict, *command: str) -> int:
        code = "import sys; from vskill_platform.external_scan import launch; sys.exit(launch.main())"
        return subprocess.run(
            [sys.executable, "-c", code, json.dumps(settings), *command], check=False
        ).returncode

    assert start(given, "/bin/false") == 1
    assert json.loads((tmp_path / "note").read_text())["isolated"] in (True, False)
    assert start(given, "/bin/sh", "-c", "kill -9 $$") == 137
    assert start(given, "/no/such/program") == launch.NOT_STARTED
    assert start({**given, "parent": 1}, "/bin/true") == launch.NOT_STARTED


async def test_analyses_take_turns_in_a_process(fake, tmp_path):
    """One at a time unless the operator allows more: fresh submissions need the processors."""
    log = tmp_path / "log"
    code = (
        f"open({str(log)!r}, 'a').write('+'); time.sleep(0.2); open({str(log)!r}, 'a').write('-')\n{REPORT}"
    )
    async with open_test_env("sqlite", tmp_path / "data", **{**NONE, "bandit_command": fake(code)}) as env:
        for name in ("one", "two", "three"):
            await request_scans(await published(env, name, script("a.py", GOOD_PYTHON)))
        await run_until_quiet(env)
    assert log.read_text() == "+-" * 3


async def test_content_that_is_gone_is_waited_for(fake, tmp_path):
    async with open_test_env("sqlite", tmp_path / "data", **{**NONE, "bandit_command": fake(REPORT)}) as env:
        digest = await published(env, "demo", script("a.py", GOOD_PYTHON))
        await request_scans(digest)
        await lose(env.blobs, digest)
        await run_until_quiet(env)
        task = await read_external_task(digest, "bandit")
        assert task is not None and task.state is TaskState.ACTIVE and "are missing" in task.outcome
        assert await get_external_scan(digest, "bandit") is None
