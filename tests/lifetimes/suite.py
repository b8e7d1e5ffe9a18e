"""Tests that start everything that tests start, and never end by themselves: the suite that `test_interrupted` interrupts.

Each start is told as a line of the file EVENTS before and after, so that there are moments in the middle of it.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.clients import registry
from tests.support import lifetimes, nats, postgres

#: A process that left its session, its environment and its parent behind, and does not hear SIGTERM.
ESCAPED = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
"""


def tell(event: str) -> None:
    with Path(os.environ["EVENTS"]).open("a", encoding="utf-8") as events:
        events.write(f"{event}\n")


@contextmanager
def told(name: str) -> Iterator[None]:
    tell(f"starting {name}")
    yield
    tell(f"{name} is up")


@pytest.mark.parametrize("turn", ["servers first", "servers last"])
def test_that_starts_everything(tmp_path, turn):
    with ExitStack() as stack:
        starts: dict[str, Callable[[], object]] = {
            "PostgreSQL": postgres.server,
            "NATS": nats.server,
            "a registry": lambda: stack.enter_context(registry.running(tmp_path)),
            "an escaped process": lambda: lifetimes.start([sys.executable, "-c", ESCAPED], env={}).wait(),
        }
        names = list(starts) if turn == "servers first" else list(reversed(starts))
        for name in names:
            with told(name):
                starts[name]()
        while True:
            time.sleep(1)
