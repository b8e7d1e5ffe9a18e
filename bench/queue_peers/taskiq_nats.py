"""taskiq on NATS JetStream with a durable pull consumer: a message is acknowledged after its job, and the server sends
it again after its own `ack_wait` of 30 s."""

import asyncio
from typing import Any

from taskiq.api import run_receiver_task
from taskiq_nats import PullBasedJetStreamBroker

from bench.queue_peers.protocol import Order, Work, run

_AT_ONCE = 200


def fill(order: Order) -> None:
    run(_fill(order.place, order.jobs))


def work(order: Order, work: Work) -> None:
    run(_work(order, work))


def _broker(place: str, **options: Any) -> Any:
    address, _, name = place.rpartition("/")
    return PullBasedJetStreamBroker(
        address, subject=name, stream_name=f"{name}_stream", durable=f"{name}_durable", **options
    )


async def _nothing() -> None:
    pass


async def _fill(place: str, count: int) -> None:
    broker = _broker(place)
    task = broker.task("job")(_nothing)
    await broker.startup()
    for start in range(0, count, _AT_ONCE):
        await asyncio.gather(*(task.kiq() for _ in range(min(_AT_ONCE, count - start))))
    await broker.shutdown()


async def _work(order: Order, work: Work) -> None:
    broker = _broker(order.place, **order.options)

    async def job() -> None:
        await work.job_async()

    broker.task("job")(job)
    await broker.startup()
    work.start()
    await run_receiver_task(broker)
