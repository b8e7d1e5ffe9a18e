"""The audit as it leaves the house: every entry at least once, whenever the command is killed, in a file or by syslog."""

import json
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from tests.support.lifetimes import running
from tests.support.patience import PATIENCE_S, wait_until

PROGRAM = shutil.which("vskill-platform", path=str(Path(sys.executable).parent)) or ""
#: How often the command is killed, at places of chance.
KILLS = 8


def make_entries(run, count: int, since: int = 0) -> list[str]:
    """Entries of the audit, by what they are about, the oldest first."""
    for number in range(since, since + count):
        run("team", "create", f"team-{number}", "--reason", "to have an entry")
    return [f"team-{number}" for number in range(since, since + count)]


def lines_of(path: Path) -> list[dict[str, str]]:
    """Whole lines: a kill can leave a part of one, which comes again."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text().splitlines():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def _has_lines(path: Path, least: int) -> bool:
    return len(lines_of(path)) >= least


def test_what_is_printed_once_is_not_printed_again(run, tmp_path):
    made, state = make_entries(run, 3), tmp_path / "place"
    first = run("audit", "tail", "--no-follow", "--state", state).stdout.splitlines()
    assert [json.loads(one)["target"] for one in first if "team created" in one] == made
    assert set(json.loads(first[0])) >= {"id", "at", "by", "action", "target", "reason"}
    assert run("audit", "tail", "--no-follow", "--state", state).stdout == ""
    more = make_entries(run, 2, since=3)
    again = run("audit", "tail", "--no-follow", "--state", state).stdout.splitlines()
    assert [json.loads(one)["target"] for one in again] == more


@pytest.mark.slow
def test_no_entry_is_lost_wherever_the_command_is_killed(run, tmp_path, environment):
    state, kept = tmp_path / "place", tmp_path / "audit.jsonl"
    dice = random.Random(7)
    made: list[str] = []
    for _ in range(KILLS):
        made += make_entries(run, 2, since=len(made))
        at_least = dice.randrange(len(made) + 1)
        with kept.open("ab") as output:
            # What a kill left of a line must not run into the next one.
            output.write(b"\n")
            command = [PROGRAM, "audit", "tail", "--state", str(state)]
            with running(command, stdout=output, env=environment) as process:
                wait_until(partial(_has_lines, kept, at_least), "nothing is printed")
                process.send_signal(signal.SIGKILL)
                process.wait(PATIENCE_S)
    with kept.open("ab") as output:
        last = [PROGRAM, "audit", "tail", "--no-follow", "--state", str(state)]
        subprocess.run(last, stdout=output, env=environment, check=True, timeout=PATIENCE_S)
    seen: dict[str, str] = {one["id"]: one["target"] for one in lines_of(kept)}
    assert [target for target in seen.values() if target.startswith("team-")] == made


def test_a_file_is_for_its_owner_alone_whole_after_a_torn_line_and_made_again_when_rotated(run, tmp_path):
    made, kept, state = make_entries(run, 2), tmp_path / "audit.jsonl", tmp_path / "place"
    kept.write_text('{"id": "torn by a ki')
    words = ("audit", "tail", "--no-follow", "--state", state, "--file", kept)
    run(*words)
    assert [one["target"] for one in lines_of(kept) if one["action"] == "team created"] == made
    kept.rename(tmp_path / "audit.jsonl.1")
    more = make_entries(run, 1, since=2)
    run(*words)
    assert [one["target"] for one in lines_of(kept)] == more
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_local_syslog_takes_datagrams(run, tmp_path):
    made = make_entries(run, 2)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(tmp_path / "log"))
        server.settimeout(PATIENCE_S)
        got: list[bytes] = []

        def listen() -> None:
            while sum(b"team-" in one for one in got) < len(made):
                got.append(server.recv(65_536))

        thread = threading.Thread(target=listen)
        thread.start()
        run("audit", "tail", "--no-follow", "--syslog", f"unix://{tmp_path}/log")
        thread.join(PATIENCE_S)
    told = [json.loads(one.split(b" ", 7)[7]) for one in got]
    assert [one["target"] for one in told if one["action"] == "team created"] == made


def test_a_file_and_a_syslog_server_at_once_are_refused(run, tmp_path):
    told = run("audit", "tail", "--file", tmp_path / "a", "--syslog", "udp://127.0.0.1:1", code=1).stderr
    assert "one place" in told


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_a_syslog_server_gets_each_entry_as_a_message(run, kind):
    made = make_entries(run, 2)
    with socket.socket(type=socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(PATIENCE_S)
        got: list[bytes] = []

        def listen() -> None:
            if kind == "tcp":
                server.listen()
                connection, _ = server.accept()
                with connection:
                    while part := connection.recv(65_536):
                        got.append(part)
            else:
                while sum(b"team-" in one for one in got) < len(made):
                    got.append(server.recv(65_536))

        thread = threading.Thread(target=listen)
        thread.start()
        address = f"{kind}://127.0.0.1:{server.getsockname()[1]}"
        run("audit", "tail", "--no-follow", "--syslog", address)
        thread.join(PATIENCE_S)
    messages = _counted(b"".join(got)) if kind == "tcp" else got
    heads = [one.split(b" ", 7) for one in messages]
    assert all(head[0] == b"<110>1" and head[3] == b"vskill-platform" for head in heads)
    told = [json.loads(head[7]) for head in heads]
    assert [one["target"] for one in told if one["action"] == "team created"] == made
    assert all(head[5].decode() == one["id"] for head, one in zip(heads, told, strict=True))


def _counted(stream: bytes) -> list[bytes]:
    """The messages of a stream, each behind its length."""
    found = []
    while stream:
        length, _, rest = stream.partition(b" ")
        found.append(rest[: int(length)])
        stream = rest[int(length) :]
    return found


@pytest.mark.parametrize(
    "address",
    [
        "host",
        "http://host:1",
        "tcp://host",
        "udp://:514",
        "tcp://host:99999",
        "tcp://host:x",
        "unix://",
        "unix://a/b",
    ],
)
def test_what_is_no_syslog_server_is_said(run, address):
    assert "is no address of a syslog server" in run("audit", "tail", "--syslog", address, code=1).stderr
