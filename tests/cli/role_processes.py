"""The roles of the executable as processes, for tests."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.lifetimes import running
from tests.support.patience import PATIENCE_S

SOURCE = Path(__file__).parents[2] / "src"
COMMAND = [sys.executable, "-m", "vskill_platform"]

Process = subprocess.Popen[Any]


@contextmanager
def started(environment: Mapping[str, str], *arguments: str) -> Iterator[Process]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with running([*COMMAND, *arguments], env=environment, **pipes) as process:
        yield process


def announced(process: Process) -> dict[str, str]:
    """The box that a role prints, by the first words of its lines."""
    assert process.stdout is not None
    lines = {}
    for line in process.stdout:
        words = [part.strip() for part in line.strip(" │\n").split("  ") if part.strip()]
        if len(words) == 2:
            lines[words[0]] = words[1]
        if "stops it" in line:
            return lines
    raise AssertionError(process.stderr.read() if process.stderr else "it ended")


def stop(process: Process, number: int = signal.SIGTERM) -> tuple[int, str]:
    """Its exit code, and its log."""
    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE_S)
    return process.returncode, errors


def submit(environment: Mapping[str, str], skill: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "submit", str(skill), *options],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)
