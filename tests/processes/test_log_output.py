"""A process whose output cannot be written goes on with its work, and says what was lost once it can."""

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import httpx2
import pytest

from tests.processes.workers import ROOT
from tests.support.lifetimes import running
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.slow


@contextmanager
def full_device() -> Iterator[dict[str, Any]]:
    with Path("/dev/full").open("wb") as full:
        yield {"stdout": full, "stderr": full}


@contextmanager
def closed_pipe() -> Iterator[dict[str, Any]]:
    """Nobody reads, as after `vskill-platform serve | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        yield {"stdout": writing, "stderr": writing}
    finally:
        os.close(writing)


@contextmanager
def closed_descriptors() -> Iterator[dict[str, Any]]:
    """As a careless supervisor starts its services."""
    yield {"preexec_fn": lambda: os.closerange(1, 3)}


@pytest.mark.parametrize("output", [full_device, closed_pipe, closed_descriptors])
def test_a_server_that_cannot_print_or_log_serves_and_stops_cleanly(tmp_path, output):
    """The banner and every log line are lost; once, the banner's loss ended the process."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "vskill_platform", "serve", "--port", str(port)]
    variables = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT / "src"),
        "VSKILL_DATA_DIR": str(tmp_path),
    }
    with ExitStack() as stack:
        options = stack.enter_context(output())
        server = stack.enter_context(running(command, env=variables, stdin=DEVNULL, cwd=tmp_path, **options))
        until_up(server, f"http://127.0.0.1:{port}/healthz")
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE_S) == 0


def until_up(server, url: str) -> None:
    began = time.monotonic()
    while True:
        assert server.poll() is None, f"the server ended with {server.returncode}"
        assert time.monotonic() - began < PATIENCE_S
        try:
            assert httpx2.get(url).json()["status"] == "ok"
        except httpx2.HTTPError:
            time.sleep(0.05)
        else:
            return


_LOSES_LINES = """
import os, resource
from vskill_platform.observing.logs import configure_logging
from vskill_platform.settings import Settings

log = configure_logging(Settings(log_format=FORMAT))
log.info("before")
resource.setrlimit(resource.RLIMIT_FSIZE, (os.fstat(2).st_size + 30, resource.RLIM_INFINITY))
for _ in range(3):
    log.info("while the disk is full")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
log.info("after")
log.info("later")
"""


@pytest.mark.parametrize("style", ["json", "console"])
def test_lines_that_were_lost_are_counted_where_the_log_goes_on(tmp_path, style):
    """Half a line that still fitted is ended first, and every line after it is whole."""
    log = tmp_path / "log"
    with (
        log.open("wb") as out,
        running([sys.executable, "-c", _LOSES_LINES.replace("FORMAT", repr(style))], stderr=out) as writer,
    ):
        assert writer.wait(PATIENCE_S) == 0
    before, cut, note, after, later = log.read_text("utf-8").splitlines()
    assert len(cut) == 30
    assert ["before" in before, "after" in after, "later" in later] == [True] * 3
    assert "log lines could not be written" in note
    if style == "json":
        told = json.loads(note)
        assert (told["level"], told["lines"], told["event"]) == (
            "warning",
            3,
            "log lines could not be written",
        )
    else:
        assert "lines=3" in note
