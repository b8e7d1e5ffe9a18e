"""The roles as real processes: up quickly, stopped cleanly by a signal, at once by a second one."""

import json
import os
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import httpx2
import pytest

from tests.cli.role_processes import COMMAND, announced, started, stop, submit, wait_for
from tests.support.lifetimes import running
from tests.support.patience import PATIENCE_S
from tests.support.signing import as_value
from vskill_core.content import digest_of_files
from vskill_core.folders import read_folder
from vskill_core.release import __version__
from vskill_core.signing_keys import SigningKey

pytestmark = pytest.mark.slow

get = partial(httpx2.get, timeout=PATIENCE_S)


def processor_s(pid: int) -> float:
    """The processor time that a process has used until now."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_is_soon_up_says_where_to_look_and_stops_cleanly(environment, number):
    """Up within 10 s of processor time: how long that takes is the machine's affair."""
    with started(environment, "serve", "--port", "0") as process:
        places = announced(process)
        answer = get(places["Is it up?"])
        assert answer.json()["status"] == "ok"
        assert processor_s(process.pid) < 10
        assert get(places["Is anything stuck?"]).json()["violations"] == []
        assert places["Records"] == f"sqlite:{environment['VSKILL_DATA_DIR']}/vskill.db"
        code, errors = stop(process, number)
    assert code == 0, errors
    assert "Traceback" not in errors
    assert "stopped" in errors


def test_a_skill_submitted_beside_a_running_server_is_published_and_watched_to_its_end(environment, skill):
    with started(environment, "serve", "--port", "0") as process:
        address = announced(process)["Address"]
        watch = submit(environment, skill, "--watch")
        assert watch.returncode == 0, watch.stdout + watch.stderr
        states = [
            word for word in watch.stdout.split() if word in {"RECEIVED", "TIER1_SCANNING", "PUBLISHED"}
        ]
        assert states[-2:] == ["TIER1_SCANNING", "PUBLISHED"]
        assert get(f"{address}/api/v1/submissions/stats").json()["byState"]["PUBLISHED"] == 1
        assert stop(process)[0] == 0
    doctor = subprocess.run([*COMMAND, "doctor"], env=environment, capture_output=True, text=True, check=True)
    assert f"{__version__}, and no other before it" in doctor.stdout


def test_watching_a_skill_that_is_not_published_ends_with_exit_code_1_and_the_reason(environment, skill):
    bad = {**environment, "VSKILL_KNOWN_BAD_DIGESTS": digest_of_files(read_folder(skill))}
    with started(bad, "serve", "--port", "0") as process:
        announced(process)
        watch = submit(environment, skill, "--watch", "--json")
        assert watch.returncode == 1, watch.stderr
        (result,) = json.loads(watch.stdout)
        assert result["submission"]["state"] == "BLOCKED"
        assert result["submission"]["decision"]["ruleIds"] == ["KB-001"]
        assert stop(process)[0] == 0


def test_doctor_says_which_keys_each_process_has(environment):
    """The worker was not given the new signing key yet, and no key that seals."""
    new, old = SigningKey.generate(), SigningKey.generate()
    here = {**environment, "VSKILL_SIGNING_KEY": as_value(new), "VSKILL_SEALING_KEY": "A" * 43 + "="}
    elsewhere = {**environment, "VSKILL_SIGNING_KEY": as_value(old)}

    def told() -> dict[str, tuple[bool, str]]:
        done = subprocess.run(
            [*COMMAND, "doctor", "--json"], env=here, capture_output=True, text=True, check=False
        )
        rows = [one for one in json.loads(done.stdout) if one["name"].startswith("keys of ")]
        return {one["name"].split()[2]: (one["warning"], one["detail"]) for one in rows}

    with started(here, "serve", "--port", "0", "--web-only") as web, started(elsewhere, "worker") as worker:
        announced(web), announced(worker)
        wait_for(lambda: told().keys() == {"web", "worker"})
        found = told()
        assert found["web"][0] is False and f"signs with {new.public.key_id}, seals with " in found["web"][1]
        assert found["worker"] == (
            True,
            f"signs with {old.public.key_id}, seals with no key; this machine has other keys",
        )
        assert stop(web)[0] == stop(worker)[0] == 0
        assert told() == {}


def test_roles_can_run_apart(environment, skill):
    """The web side alone accepts and shows; a worker beside it does the work."""
    with started(environment, "serve", "--port", "0", "--web-only") as web:
        places = announced(web)
        assert places["Runs"] == "web"
        assert submit(environment, skill).returncode == 0
        stats = f"{places['Address']}/api/v1/submissions/stats"
        assert get(stats).json()["byState"]["RECEIVED"] == 1
        with started(environment, "worker") as worker, started(environment, "schedule") as schedule:
            assert announced(worker)["Runs"] == "work"
            assert announced(schedule)["Runs"] == "schedule"
            wait_for(lambda: get(stats).json()["byState"]["PUBLISHED"] == 1)
            for process in (worker, schedule, web):
                code, errors = stop(process)
                assert code == 0, errors


def test_a_process_without_a_web_side_shows_its_metrics_if_a_port_is_set(environment):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with started({**environment, "VSKILL_METRICS_PORT": str(port)}, "worker") as process:
        places = announced(process)
        assert places["Metrics"] == f"http://127.0.0.1:{port}/metrics"
        assert "vskill_batches_in_flight" in get(places["Metrics"]).text
        assert get(f"http://127.0.0.1:{port}/queue").status_code == 404
        assert stop(process)[0] == 0


def test_a_port_in_use_is_one_line_that_names_it_with_exit_code_1(environment):
    with started(environment, "serve", "--port", "0", "--no-workers") as process:
        port = announced(process)["Address"].rpartition(":")[2]
        second = subprocess.run(
            [*COMMAND, "serve", "--port", port],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert second.returncode == 1
    assert second.stderr.count("\n") == 1
    assert f"Port {port} on 127.0.0.1 is in use" in second.stderr


NEVER_ENDS = """
import asyncio
from vskill_platform.cli.process import run_async, stop_on_signals

async def role():
    with stop_on_signals() as stop:
        print("up", flush=True)
        await stop.wait()
        print("stopping", flush=True)
        while True:
            {wait}

run_async(role())
"""


@pytest.mark.parametrize("wait", ["await asyncio.sleep(1)", "pass"], ids=["waiting", "blocking the loop"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_second_signal_ends_a_process_that_does_not_stop(environment, number, code, wait):
    program = NEVER_ENDS.replace("{wait}", wait)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with running([sys.executable, "-c", program], env=environment, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(number)
        assert process.stdout.readline() == "stopping\n"
        assert stop(process, number)[0] == code


def test_a_log_for_machines_is_all_json(environment):
    with started({**environment, "VSKILL_LOG_FORMAT": "json"}, "serve", "--port", "0") as process:
        announced(process)
        _, errors = stop(process)
    events = [json.loads(line)["event"] for line in errors.splitlines()]
    assert "degraded mode: no judge configured" in events
    assert events[-1] == "stopped"
