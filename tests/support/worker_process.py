"""The process in which `serve` works its queue, found from outside."""

from tests.chaos.disk import children_of
from vskill_platform.cli.operation.worker_process import CHILD


def worker_of(server: int) -> int | None:
    """The number of the server's worker process, where one runs."""
    return next((pid for pid, command in children_of(server).items() if CHILD in command), None)
