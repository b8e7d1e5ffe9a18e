"""huey on SQLite: threads that take one job each. It deletes a message before it runs it, so a killed worker's job is
lost."""

import threading
from typing import Any

import huey.api

from bench.queue_peers.protocol import Order, Work


def fill(order: Order) -> None:
    queue = huey.api.SqliteHuey(filename=order.place, fsync=False)
    job = _task(queue, _nothing)
    for _ in range(order.jobs):
        job()
    queue.storage.sql("pragma wal_checkpoint(truncate)")
    queue.storage.close()


def work(order: Order, work: Work) -> None:
    queue = huey.api.SqliteHuey(filename=order.place, fsync=order.options.get("fsync"))
    _task(queue, work.job)
    consumer = queue.create_consumer(workers=order.options.get("workers", 1), periodic=False)
    work.start()
    consumer.start()
    threading.Event().wait()


def _task(queue: Any, job: Any) -> Any:
    # Its name and its module stand in the queued messages, so both must be the same for every job.
    def run() -> None:
        job()

    return queue.task(name="job")(run)


def _nothing() -> None:
    pass
