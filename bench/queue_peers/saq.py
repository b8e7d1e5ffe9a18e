"""SAQ on Valkey (Redis): a sweep looks once a minute for jobs that are older than their timeout of 10 s."""

from typing import Any

from saq import Job, Queue, Worker

from bench.queue_peers.protocol import Order, Work, run


def fill(order: Order) -> None:
    run(_fill(order.place, order.jobs))


def work(order: Order, work: Work) -> None:
    run(_work(order, work))


async def _fill(place: str, count: int) -> None:
    queue = Queue.from_url(place)
    await queue.connect()
    for _ in range(count):
        await queue.enqueue(Job("job"))
    await queue.disconnect()


async def _work(order: Order, work: Work) -> None:
    async def job(_: Any) -> None:
        await work.job_async()

    queue = Queue.from_url(order.place)
    await queue.connect()
    worker: Any = Worker(queue, functions=[("job", job)], **order.options)
    work.start()
    await worker.start()
