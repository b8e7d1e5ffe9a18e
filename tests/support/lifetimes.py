"""How tests start processes, and why none of them outlives its test run.

`running` is for a process that ends with a block, `start` and `start_async` for one that is ended by other means. Each
makes sure that a guardian watches over this process: whatever was started from here, by tests or by the product, ends
when the runner does, also by SIGINT, SIGTERM and `kill -9`, and so do temporary files. `tools.code_rules` refuses every
other way to start a process in tests.
"""

import asyncio
import contextlib
import os
import resource
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.support import guardian

#: Whose test process this one belongs to; the workers of a run end with it.
RUNNER = "TEST_RUNNER_PID"
#: Where pytest puts the folders of tests, which are kept for a while.
KEPT_ROOT = "PYTEST_DEBUG_TEMPROOT"


@cache
def guard_runner() -> Path:
    """Start the guardian of this process; the folder that takes its temporary files and goes with it."""
    root = Path(os.environ.setdefault(KEPT_ROOT, tempfile.gettempdir()))
    mark = secrets.randbits(48)
    folder = root / guardian.name_of(os.getpid(), mark)
    # Others may pass: PostgreSQL runs as an ordinary user where we are root.
    folder.mkdir(mode=0o711)
    _, most = resource.getrlimit(resource.RLIMIT_RSS)
    resource.setrlimit(resource.RLIMIT_RSS, (mark, most))
    watched = [str(os.getpid()), *filter(None, [os.environ.get(RUNNER)])]
    subprocess.Popen(
        [sys.executable, "-I", "-S", guardian.__file__, str(folder), *watched],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    ).returncode = 0  # nobody waits for it: it ends after us
    os.environ[RUNNER] = str(os.getpid())
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    return folder


def start(command: Sequence[str | Path], **options: Any) -> subprocess.Popen[Any]:
    """A process beside the test; whoever asks for it ends it, and the guardian where that fails."""
    guard_runner()
    return subprocess.Popen(command, **options)


async def start_async(*command: str, **options: Any) -> asyncio.subprocess.Process:
    """The same, for a test that waits for it on its event loop."""
    guard_runner()
    return await asyncio.create_subprocess_exec(*command, **options)


@contextlib.contextmanager
def running(command: Sequence[str | Path], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A process for as long as the block runs; one that still runs then is killed."""
    process = start(command, **options)
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[Any]) -> None:
    """Kill it if it still runs, and close its pipes."""
    process.kill()
    process.wait()
    for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
        with contextlib.suppress(OSError):  # what it no longer reads cannot be flushed
            pipe.close()
