"""arq on Valkey (Redis): a job stays queued while it runs, under a mark that lasts a little over its timeout, 300 s."""

import asyncio

from arq import create_pool, func
from arq.connections import RedisSettings
from arq.worker import Worker

from bench.queue_peers.protocol import Order, Work, run

_AT_ONCE = 200


def fill(order: Order) -> None:
    run(_fill(order.place, order.jobs))


def work(order: Order, work: Work) -> None:
    run(_work(order, work))


async def _fill(place: str, count: int) -> None:
    pool = await create_pool(RedisSettings.from_dsn(place))
    for start in range(0, count, _AT_ONCE):
        await asyncio.gather(*(pool.enqueue_job("job") for _ in range(min(_AT_ONCE, count - start))))
    await pool.aclose()


async def _work(order: Order, work: Work) -> None:
    async def job(_: object) -> None:
        await work.job_async()

    worker = Worker(
        functions=[func(job, name="job")],
        redis_settings=RedisSettings.from_dsn(order.place),
        handle_signals=False,
        **order.options,
    )
    work.start()
    await worker.async_run()
