"""What is on the disk and on the wire: the bytes of a database and of the stored content, and connections."""

import contextlib
import socket
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import asyncpg

from tests.processes.workers import WorkerProcess
from vskill_platform.env import Env


async def database_bytes(env: Env) -> int:
    if env.kv.engine == "sqlite":
        return _pages_bytes(Path(env.settings.data_dir) / "vskill.db")
    ((found,),) = await _fetch(env, "SELECT pg_database_size(current_database())")
    return int(found)


async def most_connections(env: Env, processes: Sequence[WorkerProcess]) -> int:
    """Of any one process, by the sockets that the server sees; they come from this machine."""
    if env.kv.engine == "sqlite":
        return 0
    rows = await _fetch(
        env, "SELECT client_port FROM pg_stat_activity WHERE datname = current_database() AND client_port > 0"
    )
    ports = {port for (port,) in rows}
    return max(len(ports & _ports_of(one.pid)) for one in processes)


async def _fetch(env: Env, statement: str) -> list[Any]:
    connection = await asyncpg.connect(env.settings.store)
    try:
        return list(await connection.fetch(statement))
    finally:
        await connection.close()


def _ports_of(pid: int) -> set[int]:
    """Local ports of a process's connections."""
    links = Path(f"/proc/{pid}/fd")
    sockets = {_target(one) for one in links.iterdir()}
    lines = [line.split() for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]]
    return {int(line[1].rpartition(":")[2], 16) for line in lines if f"socket:[{line[9]}]" in sockets}


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


def _pages_bytes(file: Path) -> int:
    """The database itself, without the log beside it, which is a few megabytes whatever it holds."""
    with contextlib.closing(sqlite3.connect(file)) as connection:
        ((pages,),) = connection.execute("PRAGMA page_count")
        ((size,),) = connection.execute("PRAGMA page_size")
    return int(pages) * int(size)


def folder_bytes(folder: Path) -> int:
    """What the files take on the disk."""
    return sum(one.stat().st_blocks * 512 for one in folder.rglob("*") if one.is_file())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
