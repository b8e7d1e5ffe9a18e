"""How many messages a second go through the real consumer loop, beside huey and beside bare SQLite."""

import asyncio
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.measure import PATIENCE_S, take_turns, timed
from bench.peers import NO_HUEY, huey_queue
from bench.results import Figure, Goal, Report, at_least
from bench.workshop import Workshop, open_env
from vskill_platform.broker.contract import Batch
from vskill_platform.domain.messages import submission_send
from vskill_platform.env import Env
from vskill_platform.queue.consumer import run_consumer

#: Measured on this kind of machine, not in this run: their servers are not part of this project yet.
REFERENCES = {"pgqueuer": 3_800.0, "taskiq on NATS": 2_900.0}

OURS = "vskill-platform on SQLite"
IN_MEMORY = "vskill-platform in memory"
RAW = "bare SQLite, no queue around it"
HUEY_FSYNC = {"default": None, "fsync": True, "no fsync": False}

_FILL = 1_000


def run(workshop: Workshop) -> Report:
    """Every rival drains a queue of the same length that is full when the clock starts."""
    messages = workshop.scale.messages
    peers, peer_note = _huey(workshop)
    rivals: dict[str, Callable[[], float]] = {
        OURS: lambda: workshop.run(drain(workshop.new_file(), messages)),
        IN_MEMORY: lambda: workshop.run(drain(None, messages)),
        RAW: lambda: raw_per_second(workshop.new_file(), messages),
        **peers,
    }
    samples = take_turns(workshop.scale.rounds, rivals)
    figures = tuple(Figure.of(name, "messages/s", taken) for name, taken in samples.items())
    return Report(
        name="queue",
        title=f"{messages:,} no-op messages through the consumer, batches of 3, 10 at once, synchronous=FULL",
        figures=figures,
        goals=_goals({figure.name: figure.median for figure in figures}, tuple(peers)),
        notes=(
            peer_note,
            "Bare SQLite leases and deletes 30 rows at a time in two FULL commits, in one thread: the engine's price.",
            "pgqueuer and taskiq: reference figures measured on this kind of machine, not from this run.",
        ),
    )


def _huey(workshop: Workshop) -> tuple[dict[str, Callable[[], float]], str]:
    """Every configuration of huey that might be its fastest."""
    huey = huey_queue(workshop.folder, workshop.scale.messages)
    if huey is None:
        return {}, NO_HUEY
    rivals: dict[str, Callable[[], float]] = {
        f"huey, {label}, {workers} thread{'s' if workers > 1 else ''}": partial(
            huey.messages_per_second, workers, fsync=fsync
        )
        for label, fsync in HUEY_FSYNC.items()
        for workers in workshop.scale.peer_threads
    }
    return rivals, (
        f"huey's default leaves SQLite at synchronous={huey.synchronous(fsync=None)} (2 is FULL, as we have it). It "
        "deletes a message before it runs it; ours is leased in one commit, handled, and deleted in another."
    )


def _goals(per_second: dict[str, float], peers: tuple[str, ...]) -> tuple[Goal, ...]:
    ours = per_second[OURS]
    goals = []
    for label, among in (("durable", [name for name in peers if "no fsync" not in name]), ("of all", peers)):
        if among:
            fastest = max(among, key=lambda name: per_second[name])
            goals.append(at_least(f"{OURS} ÷ fastest {label} ({fastest})", ours / per_second[fastest], 1.0))
    for name, value in REFERENCES.items():
        goals.append(at_least(f"{OURS} ÷ {name} (reference {value:,.0f}/s)", ours / value, 3.0, wish=5.0))
    return tuple(goals)


async def drain(path: Path | None, messages: int) -> float:
    """Messages a second, from the consumer's start until the last one is deleted."""
    async with open_env(path) as env:
        await fill(env, messages)
        handled = 0
        all_handled = asyncio.Event()
        stop = asyncio.Event()

        async def handle(batch: Batch, _: Env) -> None:
            nonlocal handled
            handled += len(batch.messages)
            if handled >= messages:
                all_handled.set()

        with timed() as watch:
            consuming = asyncio.create_task(run_consumer(env, stop, handle))
            await all_handled.wait()
            await until_empty(env)
            watch.stop()
        stop.set()
        await consuming
        return messages / watch.seconds


async def fill(env: Env, messages: int) -> None:
    sends = [submission_send(f"sub_{number}", 1) for number in range(messages)]
    for start in range(0, messages, _FILL):
        await env.broker.send_batch(sends[start : start + _FILL])


async def until_empty(env: Env) -> None:
    """Until nothing is queued or leased any more: every ack is on the disk."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            depth = await env.broker.depth()
            if not depth.ready + depth.delayed + depth.leased:
                return
            await asyncio.sleep(0.001)


def raw_per_second(path: Path, messages: int) -> float:
    """The same two commits for every 30 messages, without anything around them."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, visible_at INTEGER, body TEXT)")
    connection.execute("CREATE INDEX by_time ON messages (visible_at, id)")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO messages VALUES (?, 0, 'body')", ((n,) for n in range(messages)))
    connection.execute("COMMIT")
    with timed() as watch:
        while taken := _raw_take(connection):
            connection.execute(f"DELETE FROM messages WHERE id IN ({taken})")  # noqa: S608 - numbers that we read
    connection.close()
    return messages / watch.seconds


def _raw_take(connection: sqlite3.Connection) -> str:
    rows = connection.execute(
        "UPDATE messages SET visible_at = 1 WHERE id IN "
        "(SELECT id FROM messages WHERE visible_at = 0 ORDER BY visible_at, id LIMIT 30) RETURNING id, body"
    ).fetchall()
    return ",".join(str(number) for number, _ in rows)
