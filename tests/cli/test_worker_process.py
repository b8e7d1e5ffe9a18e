"""The process in which `serve` works its queue: of lower priority, started again when it ends, gone when `serve` is,
and counted as if it were one with it."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.chaos.disk import children_of
from tests.cli.role_processes import announced, started, stop, submit, wait_for
from tests.support.lifetimes import running
from tests.support.patience import PATIENCE_S
from tests.support.role_processes import worker_of
from vskill_platform import __version__
from vskill_platform.cli.operation.role_process import WORKER_CHILD
from vskill_platform.cli.operation.worker_child import NICENESS

pytestmark = pytest.mark.slow


def new_worker_of(process, before: int | None = None) -> int:
    """Its worker process, once there is another than before."""
    wait_for(lambda: worker_of(process.pid) not in (None, before))
    pid = worker_of(process.pid)
    assert pid is not None
    return pid


def is_alive(pid: int) -> bool:
    """One that has ended may still be in the table, where nobody asks how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def counted(address: str, sample: str) -> float:
    """One line of `/metrics`."""
    answer = httpx2.get(f"{address}/metrics", timeout=PATIENCE_S)
    assert answer.status_code == 200, answer.text
    lines = answer.text.splitlines()
    return next((float(line.split()[-1]) for line in lines if line.startswith(f"{sample} ")), 0.0)


def until_counted(address: str, sample: str, least: float) -> None:
    wait_for(lambda: counted(address, sample) >= least)


DONE = 'vskill_messages_total{outcome="done"}'


def test_its_work_is_counted_where_everybody_looks(environment, skill):
    with started(environment, "serve", "--port", "0") as process:
        address = announced(process)["Address"]
        assert submit(environment, skill, "--watch").returncode == 0
        until_counted(address, DONE, 1)
        assert counted(address, 'vskill_transitions_total{to="PUBLISHED"}') == 1
        assert counted(address, 'vskill_stage_duration_seconds_count{state="RECEIVED"}') == 1
        assert counted(address, "vskill_workers_alive") == 1
        assert stop(process)[0] == 0


def test_it_has_a_lower_priority(environment, skill):
    nice = min(os.getpriority(os.PRIO_PROCESS, 0) + NICENESS, 19)
    with started(environment, "serve", "--port", "0") as process:
        announced(process)
        worker = new_worker_of(process)
        wait_for(lambda: os.getpriority(os.PRIO_PROCESS, worker) == nice)
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == os.getpriority(os.PRIO_PROCESS, 0)
        assert submit(environment, skill, "--watch").returncode == 0
        # Whoever scans for it as well.
        assert {os.getpriority(os.PRIO_PROCESS, pid) for pid in children_of(worker)} == {nice}
        assert stop(process)[0] == 0


def test_a_killed_one_is_replaced_while_the_site_goes_on_and_counts_never_fall(environment, skill):
    with started(environment, "serve", "--port", "0") as process:
        address = announced(process)["Address"]
        first = new_worker_of(process)
        assert submit(environment, skill, "--watch").returncode == 0
        until_counted(address, DONE, 1)
        os.kill(first, signal.SIGKILL)
        second = new_worker_of(process, before=first)
        assert httpx2.get(f"{address}/healthz").json()["status"] == "ok"
        assert counted(address, DONE) == 1
        assert is_alive(second)
        (skill / "SKILL.md").write_text("---\nname: tidy\ndescription: Tidies two folders.\n---\n# Tidy\n")
        assert submit(environment, skill, "--watch").returncode == 0
        until_counted(address, DONE, 2)
        code, errors = stop(process)
        assert code == 0, errors
        assert "ending=SIGKILL" in errors
        assert not is_alive(second)


def test_one_that_is_asked_to_stop_says_first_what_it_counted_and_is_replaced(environment, skill):
    """Nobody has looked at the metrics before."""
    with started(environment, "serve", "--port", "0") as process:
        address = announced(process)["Address"]
        first = new_worker_of(process)
        assert submit(environment, skill, "--watch").returncode == 0
        os.kill(first, signal.SIGTERM)
        new_worker_of(process, before=first)
        assert counted(address, 'vskill_transitions_total{to="PUBLISHED"}') == 1
        assert stop(process)[0] == 0


def test_a_second_signal_ends_both_at_once(environment, skill):
    """The worker holds a submission whose judge never answers, and would have its grace to finish it."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        judge = {
            "VSKILL_JUDGE_URL": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "VSKILL_JUDGE_MODEL": "silent",
            "VSKILL_SHUTDOWN_GRACE_MS": "86400000",
        }
        with started({**environment, **judge}, "serve", "--port", "0") as process:
            announced(process)
            worker = new_worker_of(process)
            assert submit(environment, skill).returncode == 0
            silent.settimeout(PATIENCE_S)
            assert process.stderr is not None
            asked, _ = silent.accept()
            with asked:
                process.send_signal(signal.SIGINT)
                log = iter(process.stderr.readline, "")
                assert any("stopping" in line for line in log)
                assert stop(process, signal.SIGINT)[0] == 130
                wait_for(lambda: not is_alive(worker))


def test_without_a_standard_error_it_works_and_stops(environment, skill):
    command = f"exec {sys.executable} -m vskill_platform serve --port 0 2>&-"
    with running(["sh", "-c", command], env=environment, stdout=subprocess.PIPE, text=True) as process:
        address = announced(process)["Address"]
        assert submit(environment, skill, "--watch").returncode == 0
        first = new_worker_of(process)
        os.kill(first, signal.SIGTERM)
        new_worker_of(process, before=first)
        assert httpx2.get(f"{address}/healthz").status_code == 200
        process.terminate()
        assert process.wait(PATIENCE_S) == 0


def test_what_lies_in_the_working_folder_is_not_imported(environment, tmp_path, skill):
    (tmp_path / "msgspec.py").write_text("raise SystemExit('not ours')\n")
    program = [sys.executable, "-P", "-m", "vskill_platform", "serve", "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with running(program, env=environment, cwd=tmp_path, **pipes) as process:
        announced(process)
        assert submit(environment, skill, "--watch").returncode == 0
        assert stop(process)[0] == 0


def test_it_ends_with_a_killed_server(environment):
    with started(environment, "serve", "--port", "0") as process:
        announced(process)
        worker = new_worker_of(process)
        process.kill()
        process.wait()
        wait_for(lambda: not is_alive(worker))


def test_one_that_does_not_stop_is_killed(environment):
    """Its work has its grace, and it some seconds more."""
    with started({**environment, "VSKILL_SHUTDOWN_GRACE_MS": "1"}, "serve", "--port", "0") as process:
        announced(process)
        worker = new_worker_of(process)
        os.kill(worker, signal.SIGSTOP)
        code, errors = stop(process)
        assert code == 0, errors
        assert "child process killed" in errors
        assert not is_alive(worker)


@pytest.mark.parametrize("kept_in_memory", ["VSKILL_STORE", "VSKILL_BLOBS"])
def test_what_no_other_process_can_see_is_worked_on_in_the_same(environment, kept_in_memory):
    with started({**environment, kept_in_memory: "memory:"}, "serve", "--port", "0", "--demo") as process:
        until_counted(announced(process)["Address"], DONE, 1)
        assert worker_of(process.pid) is None
        assert stop(process)[0] == 0


@pytest.mark.parametrize(
    ("setting", "version", "said"),
    [
        ({}, "0.0.1", "The server is version 0.0.1"),
        ({"VSKILL_STORE": "postgresql://nobody@127.0.0.1:1/none"}, __version__, "127.0.0.1"),
    ],
    ids=["after an upgrade", "without its store"],
)
def test_one_that_cannot_start_says_so_in_one_line(environment, setting, version, said):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-m", WORKER_CHILD, str(theirs.fileno()), version]
        options = {"pass_fds": (theirs.fileno(),), "stderr": subprocess.PIPE, "text": True}
        given = {**environment, "VSKILL_LOG_FORMAT": "json", **setting}
        with running(command, env=given, **options) as process:
            _, errors = process.communicate(timeout=PATIENCE_S)
    (line,) = errors.splitlines()
    assert process.returncode == 1
    assert json.loads(line)["event"] == "child process not started"
    assert said in line
