"""A server that acts and a command that follows the audit, both killed by `kill -9` at places of chance: what was
committed arrives in the file, each at least once, and what comes again has the id that it had."""

import json
import os
import random
import signal
import sqlite3
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread

import httpx2
import pytest

from tests.cli.role_processes import COMMAND, announced, started
from tests.support.lifetimes import running
from tests.support.patience import PATIENCE_S, wait_until

pytestmark = pytest.mark.slow

#: How many kills; `make test-long` does a hundred. Each test has a store of its own, and at most so many.
KILLS, MOST_OF_A_TEST = int(os.environ.get("AUDIT_KILLS", "5")), 10


class Book:
    """What the test asked for, and what it was told was done."""

    def __init__(self, token: str) -> None:
        self.headers = {"authorization": f"Bearer {token}"}
        self.asked = 0
        self.answered: list[str] = []

    def act(self, address: str, count: int) -> None:
        """Create teams until so many are answered, or the server is gone."""
        with httpx2.Client(base_url=address, headers=self.headers, timeout=PATIENCE_S) as client:
            for _ in range(count):
                self.asked += 1
                name = f"team-{self.asked}"
                answer = client.post(f"/api/v1/teams/{name}", json={"reason": "to have an entry"})
                assert answer.status_code == 201, answer.text
                self.answered.append(name)


def whole_lines(path: Path) -> list[dict[str, str]]:
    """A kill can leave a part of a line, which comes again."""
    found = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        with suppress(json.JSONDecodeError):
            found.append(json.loads(line))
    return found


def stored(data_dir: Path, prefix: str) -> set[str]:
    with sqlite3.connect(data_dir / "vskill.db") as store:
        rows = store.execute("SELECT key FROM records WHERE key GLOB ?", (f"{prefix}*",)).fetchall()
    return {key.removeprefix(prefix) for (key,) in rows}


def has_grown(path: Path, beyond: int) -> bool:
    return path.exists() and path.stat().st_size > beyond


@pytest.mark.parametrize("first", range(0, KILLS, MOST_OF_A_TEST))
def test_no_commit_is_missing_in_the_file_wherever_server_and_follower_are_killed(
    run, environment, data_dir, tmp_path, first
):
    run("admin", "create", "ada", "--generate", "--reason", "a test")
    made = run("token", "create", "ada", "--name", "t", "--scope", "admin", "--json").stdout
    book, kept, dice = Book(json.loads(made)["token"]), tmp_path / "audit.jsonl", random.Random(first)
    follow = [*COMMAND, "audit", "tail", "--state", str(tmp_path / "place"), "--file", str(kept)]
    torn = 0
    kills = min(KILLS - first, MOST_OF_A_TEST)
    for _ in range(kills):
        size = kept.stat().st_size if kept.exists() else 0
        with (
            started(environment, "serve", "--web-only", "--port", "0") as server,
            running(follow, env=environment) as follower,
        ):
            address = announced(server)["Address"]
            book.act(address, dice.randrange(1, 4))
            if dice.random() < 0.8:
                wait_until(partial(has_grown, kept, size), "nothing is written")
            _kill_while_it_acts(server, follower, partial(book.act, address, 1_000), dice)
        torn += kept.exists() and not kept.read_bytes().endswith(b"\n")
    run("audit", "tail", "--no-follow", "--state", tmp_path / "place", "--file", kept)
    lines = whole_lines(kept)
    ids = {one["id"] for one in lines}
    assert ids == stored(data_dir, "audit:"), (
        "an entry that was committed is missing, or one was never committed"
    )
    told = {one["target"] for one in lines if one["action"] == "team created"}
    assert told == stored(data_dir, "team:") >= set(book.answered)
    by_id = {one["id"]: one for one in lines}
    assert all(by_id[one["id"]] == one for one in lines), "what comes again is the same"
    print(f"{kills} kills, {len(ids)} entries, {len(lines) - len(ids)} repeats, {torn} torn lines")


def _kill_while_it_acts(server, follower, act, dice: random.Random) -> None:
    """Both are killed at their own moment, after a few requests more."""

    def until_it_is_gone() -> None:
        with suppress(httpx2.TransportError):
            act()

    acting = Thread(target=until_it_is_gone)
    acting.start()
    victims = [server, follower]
    dice.shuffle(victims)
    for victim in victims:
        acting.join(dice.random() / 4)
        victim.send_signal(signal.SIGKILL)
        victim.wait(PATIENCE_S)
    acting.join(PATIENCE_S)
