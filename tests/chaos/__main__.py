"""`python -m tests.chaos --minutes 5`: play the faults and print the account; `--write FILE` keeps it as a page."""

import argparse
import asyncio
import tempfile
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import msgspec

from tests.chaos.account import QUIET_WITHIN_S, Account
from tests.chaos.crew import WEBS, WORKERS
from tests.chaos.engines import engines
from tests.chaos.load import EVERY_S
from tests.chaos.single import single
from tests.chaos.world import SLOW, Plan, World, play
from tests.support.lifetimes import guard_runner

#: The world of one machine has fewer faults, and gets this part of the time on top.
SINGLE_SHARE = 0.2

PAGE = """# Reliability

What `make chaos MINUTES={minutes:g}` measured, with real processes: {webs} web processes and {workers} workers, {rate:g} skills
submitted a second over HTTP, and faults at random (seed {seed}). A process is killed with `kill -9`, a server is killed and comes
back after two seconds, a stretch of network is cut, stalled or half-closed for two, a disk has no room for two, and the
clocks of workers go 20 s wrong and stay so. Content of a published skill is deleted, cut, or flipped at equal length, behind the store's
back. {slow} clients send half a request and wait. Every claim lasts its real 15 s.

The run fails unless

- every submission that was answered with success is there, and has ended or waits for a person;
- so has every one that was made though its answer was lost or said "come again";
- histories have no gap, and nothing was published twice;
- nobody was handed a wrong byte of damaged content, the damage was listed, and the same files mended it;
- every refusal was a 503 that says why and when to come again, and no process ended by itself;
- queue health is empty within {quiet:g} s of each fault's end, and nothing is owed within {quiet:g} s of the last one.

"Taken again" is how long after a fault's end a client had to wait for its submission to be accepted; "health empty" is how
long until queue health was read and empty, without the time that later faults lasted; "caught up" is how long until everything that had been accepted by then had ended,
while other faults went on. Each is the worst of all times.

## Many machines: PostgreSQL, NATS and S3

{engines}

## One machine: SQLite

{single}
"""

TABLE = """| fault | times | taken again | health empty | caught up |
|---|---|---|---|---|
{faults}

| figure | value |
|---|---|
{figures}"""


def section(account: Account) -> str:
    faults = [
        f"| {name} | {one.times} | {one.accepted_again_s:g} s | {one.healthy_s:g} s | {one.caught_up_s:g} s |"
        for name, one in account.faults.items()
    ]
    figures = {
        "time under faults": f"{account.seconds:g} s",
        "processes started again since their store was away": account.started_again,
        "submissions accepted": account.accepted,
        **{f"refused, {code}": count for code, count in account.refused.items()},
        "connection lost before the answer": account.unheard,
        "made, though refused or without an answer": account.made_unheard,
        **{f"ended {state}": count for state, count in account.states.items()},
        "lost, or published twice": 0,
        "attempts that ended with their worker": account.interrupted,
        "nothing owed after the last fault": f"{account.quiet_after_s:g} s",
        "accepted and ended per second": account.per_second,
        "from acceptance to the end, median": f"{account.median_s:g} s",
        "from acceptance to the end, worst": f"{account.worst_s:g} s",
    }
    rows = [f"| {name} | {value} |" for name, value in figures.items()]
    return TABLE.format(faults="\n".join(faults), figures="\n".join(rows))


def page(many: Account, one: Account, minutes: float) -> str:
    return PAGE.format(
        minutes=minutes,
        webs=WEBS,
        workers=WORKERS,
        rate=1 / EVERY_S,
        seed=many.seed,
        quiet=QUIET_WITHIN_S,
        slow=SLOW,
        engines=section(many),
        single=section(one),
    )


def played(
    opened: Callable[[Path, Plan], AbstractAsyncContextManager[World]], seconds: float, seed: int
) -> Account:
    with tempfile.TemporaryDirectory(prefix="vskill-chaos-") as folder:
        account = asyncio.run(play(opened, Path(folder), Plan(seconds, seed)))
    print(msgspec.json.format(msgspec.json.encode(account), indent=2).decode(), flush=True)
    return account


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path, help="keep the account as this page")
    given = parser.parse_args()
    guard_runner()
    one = played(single, given.minutes * 60 * SINGLE_SHARE, given.seed)
    many = played(engines, given.minutes * 60, given.seed)
    if given.write is not None:
        given.write.write_text(page(many, one, given.minutes), "utf-8")


if __name__ == "__main__":
    main()
