"""Gets awaited one after the other through aiosqlite, the usual driver of SQLite for an event loop, as its own pages
show them. It runs in the peers' environment, in a process of its own: `milliseconds` starts that.
"""

import asyncio
import json
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

from bench.queue_peers import environment

PACKAGE = "aiosqlite"
PATIENCE_S = 120
ROOT = Path(__file__).parent.parent


def installed() -> bool:
    return environment.has(PACKAGE)


def milliseconds(path: Path, expected: int) -> float:
    """How long it takes to get every published skill of a file and to read its JSON."""
    command = [str(environment.python()), "-m", "bench.driver_reads", str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE_S, cwd=ROOT)
    found = json.loads(done.stdout)
    assert found["count"] == expected, f"{found['count']} found of {expected}"
    return float(found["ms"])


async def _read_all(path: str) -> dict[str, float]:
    async with import_module(PACKAGE).connect(path) as connection:
        # Also reads the file once before the clock starts, as every rival does.
        rows = await connection.execute_fetchall(
            "SELECT key, length(value) FROM records WHERE collection = 'skill' ORDER BY key"
        )
        found = []
        began = time.perf_counter()
        for key, _ in rows:
            async with connection.execute("SELECT value FROM records WHERE key = ?", (key,)) as cursor:
                (value,) = await cursor.fetchone()
            found.append(json.loads(value))
        return {"count": len(found), "ms": (time.perf_counter() - began) * 1000}


def main(arguments: list[str]) -> None:
    with asyncio.Runner(loop_factory=import_module("uvloop").new_event_loop) as runner:
        print(json.dumps(runner.run(_read_all(arguments[0]))))


if __name__ == "__main__":
    main(sys.argv[1:])
