"""How long tests wait. A test waits for a condition; a time only keeps it from waiting for ever, so it is long enough for
a machine on which everything takes thirty times as long."""

import time
from collections.abc import Callable

#: For anything that must happen; only a guard against hanging.
PATIENCE_S = 300.0
#: For calls that wait by themselves and must be woken: longer than anybody's patience, so that a wait that runs out is
#: never taken for a wake-up.
NEVER_MS = 600_000


def wait_until(holds: Callable[[], bool], otherwise: str) -> None:
    """Look again and again until it holds, where only another process knows when it does."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < PATIENCE_S, otherwise
        time.sleep(0.2)
