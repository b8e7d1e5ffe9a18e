"""The service as the documents' unit starts it: where nothing but its data can be written, all of it works; and where it
cannot even have a temporary file, everybody is told, and no submission is charged for it."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.cli.role_processes import COMMAND, Process, announced, stop, submit
from tests.support.compiled_rules import keep_compiled_rules
from tests.support.lifetimes import running
from tests.support.patience import wait_until
from tests.support.read_only_machine import can_be_read_only, on_read_only_machine
from tools.blocks import blocks
from tools.files import ROOT

pytestmark = pytest.mark.slow

SKILL_MD = "---\nname: tidy\ndescription: Tidies a folder.\n---\n# Tidy\n"
#: A folder that is no folder for files.
NOWHERE = "/proc"


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    folder = tmp_path / "tidy"
    folder.mkdir()
    (folder / "SKILL.md").write_text(SKILL_MD)
    return folder


@pytest.fixture
def unit(tmp_path: Path) -> tuple[dict[str, str], list[str]]:
    """The environment and the arguments of the unit on the page, with its data in a folder of the test."""
    page = (ROOT / "docs" / "how-to" / "self-host.md").read_text()
    (text,) = [one.text for one in blocks(page) if one.language == "systemd"]
    (state,) = re.findall(r"^StateDirectory=(.*)$", text, re.MULTILINE)
    data = tmp_path / "state"
    data.mkdir()
    if not can_be_read_only(data):
        pytest.skip("this machine lets nobody have a mount namespace of their own")
    keep_compiled_rules(data)
    given = dict(re.findall(r"^Environment=(\w+)=(.*)$", text, re.MULTILINE))
    assert given["VSKILL_DATA_DIR"] == f"/var/lib/{state}"
    (started,) = re.findall(r"^ExecStart=\S+ (.*)$", text, re.MULTILINE)
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONUNBUFFERED": "1",
        **given,
        "VSKILL_DATA_DIR": str(data),
    }
    return environment, [*shlex.split(started), "--port", "0"]


@contextmanager
def service(environment: Mapping[str, str], arguments: list[str]) -> Iterator[Process]:
    command = on_read_only_machine(Path(environment["VSKILL_DATA_DIR"]), *COMMAND, *arguments)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with running(command, env=environment, **pipes) as process:
        yield process


def read(address: str, path: str) -> dict[str, object]:
    found: dict[str, object] = httpx2.get(address + path, timeout=60).json()
    return found


def test_a_service_that_may_write_nothing_but_its_data_publishes_what_is_submitted(unit, skill):
    environment, arguments = unit
    with service(environment, arguments) as process:
        address = announced(process)["Address"]
        watch = submit(environment, skill, "--watch")
        assert watch.returncode == 0, watch.stdout + watch.stderr
        assert read(address, "/readyz")["status"] == "ready"
        assert read(address, "/api/v1/queue/health")["healthy"] is True
        assert stop(process)[0] == 0


def test_a_service_without_a_temporary_file_says_so_everywhere_and_charges_nobody(unit, skill):
    environment, arguments = unit
    with service({**environment, "TMPDIR": NOWHERE}, arguments) as process:
        address = announced(process)["Address"]
        submitted = json.loads(submit(environment, skill, "--json").stdout)[0]
        place = f"/api/v1/submissions/{submitted['submission']['id']}"
        wait_until(lambda: alerts(address) >= {"worker_lacks"}, "no alert tells of it")
        ready = httpx2.get(f"{address}/readyz")
        assert ready.status_code == 503
        assert "TMPDIR" in ready.json()["detail"]
        health = read(address, "/api/v1/queue/health")
        assert health["healthy"] is False
        assert "TMPDIR" in str(health["violations"])
        doctor = subprocess.run(
            [*COMMAND, "doctor"], env=environment, capture_output=True, text=True, check=False
        )
        assert doctor.returncode == 1
        assert "TMPDIR" in doctor.stdout
        wait_until(lambda: "the record store" in str(read(address, place)), "it does not wait for the store")
        assert "died" not in str(read(address, place))
        assert stop(process)[0] == 0
    with service(environment, arguments) as process:
        address = announced(process)["Address"]
        wait_until(lambda: read(address, place)["state"] == "PUBLISHED", "it was not published in the end")
        assert stop(process)[0] == 0


def alerts(address: str) -> set[str]:
    found = read(address, "/api/v1/queue/health")["alerts"]
    assert isinstance(found, list)
    return {one["code"] for one in found}
