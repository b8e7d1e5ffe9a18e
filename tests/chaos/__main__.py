"""`python -m tests.chaos --minutes 5`: play the faults and print the account; `--write FILE` keeps it as a page."""

import argparse
import asyncio
import tempfile
from pathlib import Path

import msgspec

from tests.chaos.world import QUIET_WITHIN_S, WORKERS, Account, play

PAGE = """# Reliability

What `make chaos MINUTES={minutes:g}` measured: {workers} worker processes on PostgreSQL and NATS, skills submitted five times a
second, and faults at random (seed {seed}). A worker is killed with `kill -9`, a server is killed and comes back after two
seconds, and the network between workers and PostgreSQL is cut, stalled or half-closed for two. Every claim lasts its real 15 s.

The run fails unless every accepted submission has ended or waits for a person, its history has no gap, nothing was published
twice, and nothing is owed within {quiet:g} s of the last fault.

| figure | value |
|---|---|
{rows}
"""


def page(account: Account, minutes: float) -> str:
    figures = {
        "time under faults": f"{account.seconds:g} s",
        **{f"fault: {name}": f"{count} times" for name, count in account.faults.items()},
        "submissions accepted": account.accepted,
        "refused while the store was away": account.refused,
        **{f"ended {state}": count for state, count in account.states.items()},
        "lost, or published twice": 0,
        "attempts that ended with their worker": account.interrupted,
        "nothing owed after the last fault": f"{account.quiet_after_s:g} s",
        "from acceptance to the end, median": f"{account.median_s:g} s",
        "from acceptance to the end, worst": f"{account.worst_s:g} s",
    }
    rows = "\n".join(f"| {name} | {value} |" for name, value in figures.items())
    return PAGE.format(minutes=minutes, workers=WORKERS, seed=account.seed, quiet=QUIET_WITHIN_S, rows=rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path, help="keep the account as this page")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vskill-chaos-") as folder:
        account = asyncio.run(play(Path(folder), given.minutes * 60, given.seed))
    print(msgspec.json.format(msgspec.json.encode(account), indent=2).decode())
    if given.write is not None:
        given.write.write_text(page(account, given.minutes), "utf-8")


if __name__ == "__main__":
    main()
