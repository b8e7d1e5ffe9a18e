"""The front door: 20, 300 and 1,000 clients on one process, behind our protocol and behind uvicorn as it comes.

Each client has one connection and asks again as soon as it is answered; one that is refused comes again after the time
that the refusal names. Both servers run the same application over the same store, in turns.
"""

import asyncio
import contextlib
import itertools
import statistics
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import cast

import msgspec

from bench.catalogue import asked, filled
from bench.processes import resident_bytes, start_server
from bench.results import Figure, Goal, Report, at_least, at_most
from bench.workshop import Workshop

OURS, BARE = "ours", "bare"
WAYS = {OURS: "our front door", BARE: "uvicorn as it comes"}
#: Where the clients come from.
SOURCES = tuple(f"127.0.0.{number}" for number in range(2, 10))
_FIGURES = (
    ("answers", "answers/s", "rate"),
    ("half of them within", "ms", "p50"),
    ("99 of 100 within", "ms", "p99"),
    ("refused", "%", "shed"),
    ("memory", "MB", "memory_mb"),
)
_MB = 1_000_000
#: A crowd that nobody has answered by its end is waited for so long, on a machine that is busy with others.
MOST_S = 30.0
_NOTE = (
    "Requests: a list of 30 skills, a skill's detail, the page of skills and a search, in turn. Server and clients "
    "have one core each. A refusal is a 503 with Retry-After; its share is of all answers."
)


class Crowd(msgspec.Struct, frozen=True):
    """What so many clients got in so many seconds."""

    answered: int
    refused: int
    seconds: float
    #: Milliseconds of those that were answered.
    p50: float
    p99: float
    memory_mb: float

    @property
    def rate(self) -> float:
        return self.answered / self.seconds

    @property
    def shed(self) -> float:
        return 100 * self.refused / max(1, self.answered + self.refused)


def run(workshop: Workshop) -> Report:
    count = min(1_000, workshop.scale.skills)
    store = filled(workshop, count)
    found = {
        (way, clients): [
            _measure(store, way, clients, count, workshop.scale.crowd_s)
            for _ in range(workshop.scale.crowd_rounds)
        ]
        for clients in workshop.scale.crowds
        for way in WAYS
    }
    return Report(
        name="door",
        title="20, 300 and 1,000 clients on one web process",
        figures=tuple(
            Figure.of(
                f"{clients:,} clients, {WAYS[way]}: {what}", unit, [getattr(one, field) for one in crowds]
            )
            for (way, clients), crowds in found.items()
            for what, unit, field in _FIGURES
        ),
        goals=tuple(_goals(found, workshop.scale.crowds)),
        notes=(_NOTE,),
    )


def _goals(found: dict[tuple[str, int], list[Crowd]], crowds: tuple[int, ...]) -> Iterator[Goal]:
    least, most = min(crowds), max(crowds)

    def median(way: str, clients: int, field: str) -> float:
        samples: list[float] = [getattr(one, field) for one in found[way, clients]]
        return statistics.median(samples)

    yield at_least(
        f"{least} clients: answers/s behind our door ÷ behind uvicorn",
        median(OURS, least, "rate") / median(BARE, least, "rate"),
        0.9,
    )
    yield at_most(
        f"{most:,} clients: p99 behind our door ÷ behind uvicorn",
        median(OURS, most, "p99") / median(BARE, most, "p99"),
        1.0,
    )


def _measure(store: Path, way: str, clients: int, count: int, seconds: float) -> Crowd:
    with start_server("bench.door_server", str(store), way) as (port, pid):
        paths = _paths(count)
        Workshop.run(crowd(port, 2, paths, 0.5))
        found = Workshop.run(crowd(port, clients, paths, seconds))
        return msgspec.structs.replace(found, memory_mb=resident_bytes(pid) / _MB)


def _paths(count: int) -> tuple[str, ...]:
    names, word = asked(count)
    search = f"/api/v1/skills/search?q={word}"
    each = (("/api/v1/skills?limit=30", f"/api/v1/skills/{name}", "/skills", search) for name in names)
    return tuple(itertools.chain.from_iterable(each))


class Client(asyncio.Protocol):
    """One connection that asks for one address after another."""

    def __init__(self, paths: Iterator[str], crowd: "Tally") -> None:
        self._paths = paths
        self._crowd = crowd
        self._buffer = b""
        self._missing = 0
        self._status = 0
        self._sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Uvloop's are none of asyncio's by class.
        self._transport = cast("asyncio.Transport", transport)
        self._ask()

    def _ask(self) -> None:
        if self._crowd.over or self._transport.is_closing():
            return
        self._sent = time.perf_counter()
        head = f"GET {next(self._paths)} HTTP/1.1\r\nhost: bench\r\naccept-encoding: gzip\r\n\r\n"
        self._transport.write(head.encode())

    def data_received(self, data: bytes) -> None:
        if self._missing:
            self._missing -= len(data)
        else:
            self._buffer += data
            head, end, rest = self._buffer.partition(b"\r\n\r\n")
            if not end:
                return
            lower = head.lower()
            self._status = int(head[9:12])
            self._missing = int(lower.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0]) - len(rest)
            self._buffer = b""
        if not self._missing:
            wait_s = self._crowd.count(self._status, time.perf_counter() - self._sent)
            if wait_s:
                asyncio.get_running_loop().call_later(wait_s, self._ask)
            else:
                self._ask()


class Tally:
    """What all clients got."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.refused = 0
        self.over = False
        self.answered = asyncio.Event()

    def count(self, status: int, seconds: float) -> float:
        """How long the client waits before it asks again."""
        if self.over:
            return 0
        if status == 503:
            self.refused += 1
            return 2.0
        assert status == 200, status
        self.times.append(seconds)
        self.answered.set()
        return 0


async def crowd(port: int, clients: int, paths: tuple[str, ...], seconds: float) -> Crowd:
    loop, tally = asyncio.get_running_loop(), Tally()
    transports = []
    for number in range(clients):
        own = itertools.cycle(paths[number % len(paths) :] + paths[: number % len(paths)])
        source = (SOURCES[number % len(SOURCES)], 0)
        make = partial(Client, own, tally)
        transport, _ = await loop.create_connection(make, "127.0.0.1", port, local_addr=source)
        transports.append(transport)
    began = time.perf_counter()
    tally.times.clear()
    tally.answered.clear()
    tally.refused = 0
    await asyncio.sleep(seconds)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(MOST_S):
            await tally.answered.wait()
    tally.over = True
    taken = time.perf_counter() - began
    for transport in transports:
        transport.close()
    times = sorted(tally.times)
    return Crowd(
        len(times), tally.refused, taken, _percentile(times, 0.5), _percentile(times, 0.99), memory_mb=0
    )


def _percentile(times: list[float], share: float) -> float:
    return times[min(len(times) - 1, int(len(times) * share))] * 1000 if times else float("inf")
