"""How many messages a second go through the real consumer loop, beside other queues and beside bare SQLite, and what
becomes of a job whose worker is killed. Every queue runs in a process of its own (`bench.queue_peers`)."""

import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from bench.measure import repeat, timed
from bench.queue_peers.registry import ON_FILES, ON_SERVERS, OURS, OWN, OWN_ON_SERVERS
from bench.queue_peers.runner import Drained, NotMeasured, Peer, drain, redelivery
from bench.queue_peers.servers import DURABILITY, Servers, open_servers
from bench.results import Figure, Goal, Report, Table, at_least, at_most, readable
from bench.workshop import Workshop

ON_SQLITE = f"{OURS} on SQLite"
RAW = "bare SQLite, no queue around it"
UNIT = "messages/s"

#: Whose jobs survive a killed worker as they come.
SURVIVORS = ("pgqueuer", "taskiq-nats")
#: How long a job may take to come again before it counts as lost.
REDELIVERY_S = 75.0

_WARM = 0.05
_COLUMNS = (
    "queue",
    "engine",
    UNIT,
    "least to most",
    "CPU ms a job",
    "context leaks",
    "a killed worker's job runs again",
)
_NOTES = (
    (
        "One worker process each. Others are timed until their last job has run, ours until its last acknowledgement "
        "has arrived. CPU is the worker's alone, not its server's."
    ),
    (
        "A context leak is a job that finds the context variable of the one before it. Ours starts every batch in an "
        "empty context and every message in a task of its own."
    ),
    (
        "A killed worker's job: one job, `kill -9` in the middle of it, another worker, both with the queue's "
        "defaults. huey and Celery take a job off the queue before they run it; procrastinate leaves it marked as "
        "running; SAQ gives a job one attempt; arq waits for its job timeout of 300 s, dramatiq for a heartbeat of "
        "60 s and then for chance."
    ),
    "Celery's own default forks two processes; here its jobs run in threads of one, where they can be counted.",
)


class Row(msgspec.Struct, frozen=True):
    """What was found out about one queue, or why nothing was."""

    peer: Peer
    rounds: tuple[Drained, ...] = ()
    #: When a killed worker's job began again, in words; empty where it was not tried.
    again: str = ""
    problem: str = ""

    @property
    def figure(self) -> Figure:
        return Figure.of(self.peer.name, UNIT, [one.per_second for one in self.rounds])

    @property
    def cpu_ms(self) -> float:
        return Figure.of("", "", [one.cpu_ms for one in self.rounds]).median


def run(workshop: Workshop) -> Report:
    """Every rival empties a queue that is full when the clock starts."""
    peers = chosen(workshop.scale.name)
    with open_servers() as servers:
        rows = take_turns(workshop, servers, peers)
        rows = with_redelivery(workshop, servers, rows)
    raw = repeat(
        workshop.scale.rounds, lambda: raw_per_second(workshop.new_file(), workshop.scale.queue_messages)
    )
    return report(workshop.scale.queue_messages, rows, Figure.of(RAW, UNIT, raw))


def chosen(scale: str) -> tuple[Peer, ...]:
    """Who takes part: a quick run starts no servers, a test's none of other people's queues."""
    if scale == "full":
        return (*OWN, *OWN_ON_SERVERS, *ON_FILES, *ON_SERVERS)
    return (*OWN, *ON_FILES[::2]) if scale == "quick" else OWN


def take_turns(workshop: Workshop, servers: Servers, peers: Sequence[Peer]) -> list[Row]:
    """All of them, round by round; whoever fails once is left out of the rest, with the reason."""
    rows = {peer.name: Row(peer) for peer in peers}
    rounds = max(1, workshop.scale.rounds - 2)
    # A single round is too short a run to prepare for.
    first = 0 if rounds > 1 else 1
    for number in range(first, rounds + 1):
        for name, row in rows.items():
            if row.problem:
                continue
            # A first, short round that does not count shows who runs at all, and starts the servers.
            jobs = max(10, int(workshop.scale.queue_messages * row.peer.share * (1 if number else _WARM)))
            try:
                drained = drain(row.peer, servers, workshop.folder, jobs)
            except NotMeasured as error:
                workshop.say(f"{name} was not measured: {error}")
                rows[name] = msgspec.structs.replace(row, rounds=(), problem=f"not measured: {error}")
                continue
            if number:
                rows[name] = msgspec.structs.replace(row, rounds=(*row.rounds, drained))
    return list(rows.values())


def with_redelivery(workshop: Workshop, servers: Servers, rows: Sequence[Row]) -> list[Row]:
    """Kill a worker of each, all at the same time: they only wait."""
    if workshop.scale.name != "full":
        return list(rows)
    first = {(row.peer.module, row.peer.engine): row.peer for row in reversed(rows) if not row.problem}
    asked = {key: peer for key, peer in first.items() if peer.engine != "memory"}
    workshop.say(f"killing a worker of each of {len(asked)} queues, and waiting {REDELIVERY_S:.0f} s")

    def ask(peer: Peer) -> str:
        try:
            return str(redelivery(peer, servers, workshop.folder, REDELIVERY_S))
        except NotMeasured as error:
            return f"not measured: {error}"

    with ThreadPoolExecutor(len(asked)) as pool:
        found = dict(zip(asked, pool.map(ask, asked.values()), strict=True))
    return [
        msgspec.structs.replace(row, again=found.get((row.peer.module, row.peer.engine), "kept nowhere"))
        for row in rows
    ]


# What is said about it.


def report(messages: int, rows: Sequence[Row], raw: Figure) -> Report:
    figures = (*(row.figure for row in rows if row.rounds), raw)
    missing = [f"{row.peer.name}: {row.problem}." for row in rows if row.problem]
    engines = {row.peer.engine for row in rows}
    return Report(
        name="queue",
        title=f"Up to {messages:,} no-op messages through one worker process; ours in batches of 3, 10 at once",
        figures=figures,
        goals=goals(rows),
        notes=(
            *_NOTES,
            "Bare SQLite leases and deletes 30 rows at a time in two FULL commits, in one thread: the engine's price.",
            "What is accepted is safe as the engine has it by default: "
            + "; ".join(f"{engine} {kept}" for engine, kept in DURABILITY.items() if engine in engines)
            + ".",
            *missing,
        ),
        tables=(Table(_COLUMNS, tuple(_cells(row) for row in rows)),),
    )


def goals(rows: Sequence[Row]) -> tuple[Goal, ...]:
    per_second = {row.peer.name: row.figure.median for row in rows if row.rounds}
    if ON_SQLITE not in per_second:
        return ()
    ours = per_second[ON_SQLITE]
    found = [
        at_least(f"{ON_SQLITE} ÷ {name} as it comes", ours / per_second[name], 3.0)
        for name in SURVIVORS
        if name in per_second
    ]
    for engine in ("SQLite", "PostgreSQL", "NATS"):
        found += _on_engine(engine, [row for row in rows if row.rounds and row.peer.engine == engine])
    leaks = sum(one.leaks for row in rows if row.peer.ours for one in row.rounds)
    found.append(at_most("context leaks of ours", leaks, 0, unit=" leaks"))
    return tuple(found)


def _on_engine(engine: str, rows: Sequence[Row]) -> Sequence[Goal]:
    """Our fastest beside the fastest of the others on the same engine; on SQLite once more without flushing."""
    ours = [row.figure for row in rows if row.peer.ours]
    others = [row for row in rows if not row.peer.ours]
    flushed = [row.figure for row in others if row.peer.options.get("fsync") is not False]
    unflushed = [row.figure for row in others if row.peer.options.get("fsync") is False]
    if not ours:
        return []
    best = max(ours, key=lambda figure: figure.median)
    found = []
    for label, among in (("", flushed), (", which flushes nothing", unflushed)):
        if among:
            rival = max(among, key=lambda figure: figure.median)
            name = f"our fastest on {engine} ÷ {rival.name}{label}"
            found.append(at_least(name, best.median / rival.median, 1.0))
    return found


def _cells(row: Row) -> tuple[str, ...]:
    peer = row.peer
    if not row.rounds:
        return (peer.name, peer.engine, row.problem, *("",) * (len(_COLUMNS) - 3))
    figure = row.figure
    jobs, leaks = sum(one.jobs for one in row.rounds), sum(one.leaks for one in row.rounds)
    return (
        peer.name,
        peer.engine,
        readable(figure.median),
        figure.spread,
        f"{row.cpu_ms:.3f}",
        f"{leaks:,} of {jobs:,}",
        row.again or "not tried in a run of this size",
    )


# The engine alone.


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
