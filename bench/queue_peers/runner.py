"""Starts a process for each order, and reads what it found: how long a full queue takes to empty, and whether a job
comes again whose worker was killed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from bench.queue_peers import environment
from bench.queue_peers.protocol import Order
from bench.queue_peers.servers import Servers

ROOT = Path(__file__).parent.parent.parent
#: A queue that takes longer for its jobs is given up.
PATIENCE_S = 120.0
#: Until a job begins in a worker that has just been started.
BEGIN_S = 30.0
#: What of an error goes into a table.
_SHOWN = 160


class NotMeasured(Exception):
    """Why there is no figure."""


class Peer(msgspec.Struct, frozen=True):
    """A queue, the engine beneath it, and how its worker is configured."""

    #: As people know it, with its configuration where there are several.
    name: str
    #: The module of this package.
    module: str
    engine: str
    #: The package that must be installed in the other environment; empty for our own.
    package: str = ""
    #: Of the worker, where its defaults are not its fastest.
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    #: Share of the scale's messages: slow ones need not take all.
    share: float = 1.0

    @property
    def ours(self) -> bool:
        return not self.package


class Drained(msgspec.Struct, frozen=True):
    """One queue emptied once."""

    jobs: int
    seconds: float
    #: Of the worker's process; its server is another.
    cpu: float
    leaks: int

    @property
    def per_second(self) -> float:
        return self.jobs / self.seconds

    @property
    def cpu_ms(self) -> float:
        return self.cpu / self.jobs * 1000


class Redelivery(msgspec.Struct, frozen=True):
    """What became of a job whose worker was killed."""

    #: Until it began again in another worker; None if it had not by the end.
    seconds: float | None
    waited: float

    def __str__(self) -> str:
        return f"not within {self.waited:.0f} s" if self.seconds is None else f"after {self.seconds:.0f} s"


def drain(peer: Peer, servers: Servers, folder: Path, jobs: int) -> Drained:
    """Fill a fresh queue and empty it, in a process of its own."""
    with _ordered(peer, servers, folder) as order:
        found = json.loads(_finish(peer, replace(order, task="drain", jobs=jobs, options=peer.options)))
    return Drained(jobs, found["seconds"], found["cpu"], found["leaks"])


def redelivery(peer: Peer, servers: Servers, folder: Path, patience: float) -> Redelivery:
    """One job, kill -9 in the middle of it, then another worker: when does the job begin again? Both workers run
    with the queue's defaults, since what makes it faster is another matter."""
    with _ordered(peer, servers, folder) as order:
        file = Path(order.folder) / "begun"
        file.touch()
        _finish(peer, replace(order, task="fill"))
        hanging = replace(order, task="hang", file=str(file))
        with _worker(peer, hanging) as first:
            if not _begun(file, 1, first, BEGIN_S):
                raise NotMeasured("the job never began")
        killed = time.monotonic()
        with _worker(peer, hanging) as second:
            again = _begun(file, 2, second, patience)
        return Redelivery(time.monotonic() - killed if again else None, patience)


def _begun(file: Path, times: int, worker: "subprocess.Popen[str]", patience: float) -> bool:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if len(file.read_text().splitlines()) >= times:
            return True
        if worker.poll() is not None:
            raise NotMeasured("its worker ended by itself")
        time.sleep(0.05)
    return False


@contextmanager
def _worker(peer: Peer, order: Order) -> Iterator["subprocess.Popen[str]"]:
    """A worker that is killed at the end, with whatever it has started."""
    process = subprocess.Popen(
        _command(peer, order),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def _ordered(peer: Peer, servers: Servers, folder: Path) -> Iterator[Order]:
    """An order with a place and a folder that nobody has used; the folder is gone afterwards."""
    own = Path(tempfile.mkdtemp(dir=folder))
    try:
        yield Order(peer.module, "", _place(peer, servers, own), str(own))
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _place(peer: Peer, servers: Servers, folder: Path) -> str:
    file = folder / "queue.db"
    if peer.engine == "SQLite":
        return f"sqlite:{file}" if peer.ours else str(file)
    try:
        place = servers.place(peer.engine)
    except (OSError, RuntimeError, ImportError) as error:
        raise NotMeasured(f"no {peer.engine}: {error}") from error
    # Ours keeps its records beside the queue that is somebody else's.
    return f"sqlite:{file} {place}" if peer.ours and peer.engine == "NATS" else place


def _finish(peer: Peer, order: Order) -> str:
    """Run the order to its end; the last line that it wrote."""
    try:
        done = subprocess.run(
            _command(peer, order), check=False, capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE_S
        )
    except subprocess.TimeoutExpired as error:
        raise NotMeasured(f"not done after {PATIENCE_S:.0f} s") from error
    lines = done.stdout.splitlines()
    if done.returncode != 0 or (order.task == "drain" and not lines):
        raise NotMeasured((done.stderr.strip().splitlines() or ["it ended without a word"])[-1][:_SHOWN])
    return lines[-1] if lines else ""


def _command(peer: Peer, order: Order) -> list[str]:
    if not peer.ours and not environment.has(peer.package):
        raise NotMeasured("not installed; `make bench` installs it")
    python = sys.executable if peer.ours else str(environment.python())
    return [python, "-m", "bench.queue_peers.protocol", order.to_json()]
