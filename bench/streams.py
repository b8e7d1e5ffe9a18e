"""A thousand open event streams on one web process, at one change a second: how soon each is told, and what each costs.

The server is a process of its own, the product's `serve --web-only`. This process opens the streams, writes a change
a second to the same file as another process would, and notes when each stream has told it.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import msgspec

from bench.processes import cpu_seconds, resident_bytes
from bench.results import Figure, Report, at_most
from bench.workshop import Workshop, open_env
from vskill_platform.domain.identity import normalise
from vskill_platform.domain.submission import Step, Submission, create
from vskill_platform.env import Env

EVERY_S = 1.0
#: Connections that are opened at the same time.
OPENING = 50
PATHS = ("/queue/live", "/api/v1/submissions/stream")

MOST_DELAY_S = 1.0
MOST_KB = 50.0


class Sample(msgspec.Struct, frozen=True):
    """One round."""

    #: Seconds from the end of the write to the frame, for every stream and change.
    delays: tuple[float, ...]
    #: Bytes that the server's memory grew by with each stream.
    bytes_per_stream: float
    #: Of a core, while one change a second is told to all.
    cpu_share: float
    missing: int


class Client(asyncio.Protocol):
    """Reads a stream and notes when an id comes by."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._transport: asyncio.BaseTransport | None = None
        self.opened = asyncio.get_running_loop().create_future()
        self.seen: dict[bytes, float] = {}
        self.wanted = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # By its methods: the loop's transport is not one of asyncio's classes.
        self._transport = transport
        cast("asyncio.WriteTransport", transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.opened.done() and b": connected" in data:
            self.opened.set_result(None)
        if self.wanted and self.wanted in data:
            self.seen.setdefault(self.wanted, time.perf_counter())

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.opened.done():
            self.opened.set_exception(ConnectionError("the server closed the stream before it began"))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


def run(workshop: Workshop) -> Report:
    streams = workshop.scale.streams
    sample = measure(workshop, streams, workshop.scale.changes)
    worst, middle = max(sample.delays), statistics.median(sample.delays)
    kilobytes = sample.bytes_per_stream / 1000
    return Report(
        name="streams",
        title=f"{streams:,} open event streams on one process, one change a second",
        figures=(
            Figure(
                "from the write to a stream", "ms", middle * 1000, min(sample.delays) * 1000, worst * 1000
            ),
            Figure.of("server memory per stream", "KB", [kilobytes]),
            Figure.of("server CPU", "% of a core", [sample.cpu_share * 100]),
        ),
        goals=(
            at_most("slowest delivery", worst, MOST_DELAY_S, unit=" s"),
            at_most("memory per stream", kilobytes, MOST_KB, unit=" KB"),
            at_most("frames that did not come", sample.missing, 0, unit=""),
        ),
        notes=(
            "Half of the streams are the queue page's, half the API's; the change comes from another process.",
        ),
    )


def measure(workshop: Workshop, streams: int, changes: int) -> Sample:
    path = workshop.new_file()
    workshop.run(_create(path))
    with server(path) as (port, pid):
        return workshop.run(_measure(path, port, pid, streams, changes))


async def _create(path: Path) -> None:
    """The file exists before two processes open it."""
    async with open_env(path):
        pass


@contextmanager
def server(path: Path) -> Iterator[tuple[int, int]]:
    """The web side of this store as a process: its port and its process id."""
    environment = {
        **os.environ,
        "VSKILL_STORE": f"sqlite:{path}",
        "VSKILL_DATA_DIR": str(path.with_suffix("")),
        "VSKILL_LOG_LEVEL": "error",
        "VSKILL_MAX_STREAMS_PER_ADDRESS": "1000",
        "PYTHONUNBUFFERED": "1",
    }
    command = [sys.executable, "-m", "vskill_platform", "serve", "--web-only", "--port", "0"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = next(text for text in process.stdout if "Address" in text)
            yield int(line.split()[2].rpartition(":")[2]), process.pid
        finally:
            process.terminate()
            process.wait()


async def _measure(path: Path, port: int, pid: int, streams: int, changes: int) -> Sample:
    async with open_env(path) as env:
        warm = await _open(port, 10)
        await _change(env, warm, 0)
        before = resident_bytes(pid)
        clients = await _open(port, streams - len(warm))
        everybody = [*warm, *clients]
        grown = resident_bytes(pid) - before
        cpu, began = cpu_seconds([pid]), time.perf_counter()
        delays: list[float] = []
        missing = 0
        for number in range(1, changes + 1):
            found = await _change(env, everybody, number)
            delays += found
            missing += len(everybody) - len(found)
        share = (cpu_seconds([pid]) - cpu) / (time.perf_counter() - began)
        for client in everybody:
            client.close()
    return Sample(tuple(delays), grown / len(clients), share, missing)


async def _open(port: int, count: int) -> list[Client]:
    clients: list[Client] = []
    for start in range(0, count, OPENING):
        new = [await _connect(port, number) for number in range(start, min(start + OPENING, count))]
        await asyncio.gather(*(client.opened for client in new))
        clients += new
    return clients


async def _connect(port: int, number: int) -> Client:
    request = f"GET {PATHS[number % len(PATHS)]} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    _, client = await asyncio.get_running_loop().create_connection(lambda: Client(request), "127.0.0.1", port)
    return client


async def _change(env: Env, clients: Sequence[Client], number: int) -> list[float]:
    """Write one submission, and wait a second for everybody to be told; how long each had to wait."""
    record = _record(number, env.kv.now())
    wanted = record.id.encode()
    for client in clients:
        client.wanted = wanted
    await env.kv.put(record.key, msgspec.json.encode(record))
    written = time.perf_counter()
    await asyncio.sleep(EVERY_S)
    return [client.seen[wanted] - written for client in clients if wanted in client.seen]


def _record(number: int, now: int) -> Submission:
    identity = normalise(f"https://github.com/bench/streams-{number}")
    return create(
        submission_id=f"sub_bench_{number:06}",
        identity=identity,
        repo_url=identity.url,
        skill_name=f"streams-{number}",
        step=Step(f"event-{number}", now, "system", "submitted"),
    )
