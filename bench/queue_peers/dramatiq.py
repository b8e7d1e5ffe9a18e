"""dramatiq on Valkey (Redis): threads, acknowledged after the job; what a dead worker held is put back some time after
its heartbeat is 60 s old."""

import threading
from typing import Any

from dramatiq import Worker, actor
from dramatiq.brokers.redis import RedisBroker

from bench.queue_peers.protocol import Order, Work


def fill(order: Order) -> None:
    job = _actor(RedisBroker(url=order.place), lambda: None)
    for _ in range(order.jobs):
        job.send()


def work(order: Order, work: Work) -> None:
    broker = RedisBroker(url=order.place)
    _actor(broker, work.job)
    worker = Worker(broker, **order.options)
    work.start()
    worker.start()
    threading.Event().wait()


def _actor(broker: Any, function: Any) -> Any:
    def job() -> None:
        function()

    return actor(job, actor_name="job", broker=broker)
