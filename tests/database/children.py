"""Real processes beside the test's own, each running a few lines against the same file."""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import vskill_platform
from tests.support import lifetimes
from tests.support.patience import PATIENCE_S

_SOURCE = Path(vskill_platform.__file__).parent.parent

_PRELUDE = """
import asyncio, os, sqlite3, sys
from vskill_platform.ledger.broker.sqlite import SqliteBroker
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.ledger.database.sqlite import SqliteDatabase
from vskill_core.errors import PlatformError
from vskill_platform.domain.messages import Send
from vskill_platform.ledger.kv.entries import *
from vskill_platform.ledger.kv.sqlite import SqliteKV
path = sys.argv[1]
"""


def start(script: str, path: Path | str) -> subprocess.Popen[str]:
    """A process that runs the script; it ends when its standard input does, if it reads that."""
    return lifetimes.start(
        [sys.executable, "-c", _PRELUDE + dedent(script), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(_SOURCE)},
    )


def finish(child: subprocess.Popen[str]) -> str:
    """What it printed; an error of the child is an error of the test."""
    out, err = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 0, err
    return out.strip()


def run(script: str, path: Path) -> str:
    return finish(start(script, path))


def line_of(child: subprocess.Popen[str]) -> str:
    """The next line that it prints."""
    assert child.stdout is not None
    return child.stdout.readline().rstrip("\n")


def tell(child: subprocess.Popen[str], line: str) -> None:
    assert child.stdin is not None
    child.stdin.write(line + "\n")
    child.stdin.flush()
