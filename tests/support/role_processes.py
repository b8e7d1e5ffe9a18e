"""The processes in which `serve` runs its roles, found from outside; and who of several web processes answers."""

import contextlib
import os
import signal
from collections.abc import Iterator

from tests.chaos.disk import children_of
from vskill_platform.cli.operation.role_process import WORKER_CHILD
from vskill_platform.cli.operation.web_processes import WEB_CHILD


def worker_of(server: int) -> int | None:
    """The number of the server's worker process, where one runs."""
    return next((pid for pid, command in children_of(server).items() if WORKER_CHILD in command), None)


def webs_of(server: int) -> list[int]:
    """The numbers of the server's web processes."""
    return sorted(pid for pid, command in children_of(server).items() if WEB_CHILD in command)


@contextlib.contextmanager
def answered_by(server: int, web: int) -> Iterator[None]:
    """Meanwhile only this one of the web processes accepts connections: the others stand still."""
    others = [pid for pid in webs_of(server) if pid != web]
    for pid in others:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in others:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
