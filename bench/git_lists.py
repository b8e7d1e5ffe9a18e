"""Git marketplaces of the whole registry: what the first clone, a clone of a kept list and an update after one
publication cost a web process of its own, and how many bytes a client is sent."""

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx2
import msgspec

from bench.measure import PATIENCE_S
from bench.processes import most_resident_bytes, resident_bytes
from bench.results import Figure, Report, Table, at_most, readable
from bench.web_store import body_of, filled, opened
from bench.workshop import Workshop
from vskill_platform.cli.process import run_async
from vskill_platform.domain import keys
from vskill_platform.domain.skill import PublishedSkill
from vskill_platform.env import Env
from vskill_platform.kv.contract import iterate_pages
from vskill_platform.kv.entries import Put
from vskill_platform.records import decode
from vskill_platform.web.app import create_app

ADDRESS = "/marketplace.git"
#: Clones that the figure of a kept one is the mean of.
KEPT_CLONES = 20
#: Who asks at once for a list that is not there yet.
BURST = 10
MOST_KEPT = 0.1
MOST_MEMORY_MB = 128.0
_MS, _MB = 1_000, 1_000_000
_NOTE = (
    f"First: {BURST} clone at once, and the list is made once. Update: one skill has changed, so the list is made anew "
    "and sent whole. Kept: nothing has changed. Times are those of the server, both requests of a clone together."
)


class ListCost(msgspec.Struct, frozen=True):
    """What the list cost the process that was asked for it."""

    bytes: int
    first_ms: float
    first_cpu_ms: float
    update_ms: float
    update_cpu_ms: float
    kept_ms: float
    kept_cpu_ms: float
    memory_before_mb: float
    memory_after_mb: float
    memory_most_mb: float


def run(workshop: Workshop) -> Report:
    skills, rounds = workshop.scale.skills, workshop.scale.rounds
    store = filled(workshop, skills)
    found = [_ask_process(store) for _ in range(rounds)]
    kept, first = _median(found, "kept_ms"), _median(found, "first_ms")
    gained = _median(found, "memory_after_mb") - _median(found, "memory_before_mb")
    return Report(
        name="lists",
        title=f"A git marketplace of {skills:,} skills, by a web process of its own",
        figures=tuple(
            Figure.of(f"{when} clone", "ms", [getattr(cost, f"{when}_ms") for cost in found])
            for when in ("first", "update", "kept")
        ),
        goals=(
            at_most("kept ÷ first", kept / first, MOST_KEPT),
            at_most("memory that it adds", max(0.0, gained), MOST_MEMORY_MB, unit=" MB"),
        ),
        tables=(_table(found),),
        notes=(_NOTE,),
    )


def _table(found: list[ListCost]) -> Table:
    rows = [
        (
            when,
            f"{readable(_median(found, f'{when}_ms'))} ms",
            f"{readable(_median(found, f'{when}_cpu_ms'))} ms",
            f"{_median(found, 'bytes'):,.0f}",
        )
        for when in ("first", "update", "kept")
    ]
    memory = "; ".join(
        f"{when} {_median(found, f'memory_{when}_mb'):.0f} MB" for when in ("before", "after", "most")
    )
    return Table(("clone", "time", "CPU", "bytes sent"), (*rows, ("memory", memory, "", "")))


def _median(found: list[ListCost], name: str) -> float:
    return float(statistics.median(getattr(cost, name) for cost in found))


# The process that is asked.


def _ask_process(store: Path) -> ListCost:
    root = Path(__file__).parent.parent
    command = [sys.executable, "-m", "bench.git_lists", str(store)]
    done = subprocess.run(command, cwd=root, capture_output=True, check=True, timeout=PATIENCE_S)
    return msgspec.json.decode(done.stdout, type=ListCost)


async def measure(store: Path) -> ListCost:
    async with opened(store) as opened_env:
        settings = msgspec.structs.replace(opened_env.settings, git_list_interval_ms=1)
        env = msgspec.structs.replace(opened_env, settings=settings)
        app = create_app(env)
        await body_of(app, "/api/v1/skills?limit=1")
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            before = resident_bytes()
            first, first_cpu = await _timed(lambda: _burst(client))
            await _publish_one(env)
            update, update_cpu = await _timed(lambda: _clone(client))
            kept, kept_cpu = await _timed(lambda: _many(client))
            after, size = resident_bytes(), await _clone(client)
    return ListCost(
        bytes=size,
        first_ms=first,
        first_cpu_ms=first_cpu,
        update_ms=update,
        update_cpu_ms=update_cpu,
        kept_ms=kept / KEPT_CLONES,
        kept_cpu_ms=kept_cpu / KEPT_CLONES,
        memory_before_mb=before / _MB,
        memory_after_mb=after / _MB,
        memory_most_mb=most_resident_bytes() / _MB,
    )


async def _timed(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    clock, cpu = time.perf_counter(), time.process_time()
    await work()
    return (time.perf_counter() - clock) * _MS, (time.process_time() - cpu) * _MS


async def _burst(client: httpx2.AsyncClient) -> None:
    await asyncio.gather(*(_clone(client) for _ in range(BURST)))


async def _many(client: httpx2.AsyncClient) -> None:
    for _ in range(KEPT_CLONES):
        await _clone(client)


async def _clone(client: httpx2.AsyncClient) -> int:
    """Both requests of a shallow clone; the bytes of the answers."""
    shown = await client.get(f"{ADDRESS}/info/refs?service=git-upload-pack")
    commit = shown.text.partition("\n0000")[2][4:44]
    wanted = f"0032want {commit}\n00000009done\n"
    sent = await client.post(f"{ADDRESS}/git-upload-pack", content=wanted.encode())
    if b"PACK" not in sent.content[:20]:
        raise RuntimeError(f"no pack: {sent.content[:200]!r}")
    return len(shown.content) + len(sent.content)


async def _publish_one(env: Env) -> None:
    """As much of a publication as changes the list."""
    async for page in iterate_pages(env.kv, keys.SKILL, page=1):
        entry = page.items[0]
        skill = decode(entry, PublishedSkill)
        changed = msgspec.structs.replace(
            skill, description=f"{skill.description} Again.", updated_at=skill.updated_at + 1
        )
        await env.kv.commit([Put(entry.key, msgspec.json.encode(changed), entry.version)])
        return


if __name__ == "__main__":
    cost = run_async(measure(Path(sys.argv[1])))
    sys.stdout.buffer.write(msgspec.json.encode(cost))
