"""Celery on Valkey (Redis): by default a message is acknowledged before its job runs."""

from typing import Any

from celery import Celery

from bench.queue_peers.protocol import Order, Work


def fill(order: Order) -> None:
    task = _task(Celery("bench", broker=order.place), lambda: None)
    for _ in range(order.jobs):
        task.delay()


def work(order: Order, work: Work) -> None:
    app = Celery("bench", broker=order.place)
    _task(app, work.job)
    worker = app.Worker(loglevel="ERROR", without_gossip=True, without_mingle=True, **order.options)
    work.start()
    worker.start()


def _task(app: Any, function: Any) -> Any:
    def job() -> None:
        function()

    # Not shared: the application that fills and the one that works have different jobs of the same name.
    return app.task(name="job", ignore_result=True, shared=False)(job)
