"""The processes that `backlog` measures: those that `serve` starts."""

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench.processes import ROOT
from bench.scaling.sizes import free_port
from tests.support.worker_process import worker_of
from vskill_platform.settings import Settings

#: How long a process may take until it answers, and until it works.
UP_S = 60.0


class Platform(msgspec.Struct, frozen=True):
    """A server that answers."""

    port: int
    pid: int

    def kill_worker(self) -> None:
        """Whoever works for it."""
        worker = worker_of(self.pid)
        if worker is None:
            raise ProcessLookupError("nobody works")
        os.kill(worker, signal.SIGKILL)


@contextmanager
def serving(settings: Settings, folder: Path) -> Iterator[Platform]:
    """The platform on this folder, once it answers."""
    port = free_port()
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("VSKILL_")},
        "VSKILL_DATA_DIR": str(folder),
        "VSKILL_LOG_LEVEL": "error",
        "VSKILL_RATE_LIMITS": settings.rate_limits,
    }
    command = [sys.executable, "-m", "vskill_platform", "serve", "--port", str(port)]
    with subprocess.Popen(command, env=environ, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        try:
            _until_up(port)
            yield Platform(port, process.pid)
        finally:
            process.terminate()
            process.wait()


def _until_up(port: int) -> None:
    deadline = time.monotonic() + UP_S
    while time.monotonic() < deadline:
        try:
            read(port, "/healthz")
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError("the server did not start")


def read(port: int, path: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise OSError(f"{path} answered {answer.status}")
        return body
    finally:
        connection.close()
