"""pgqueuer on PostgreSQL through asyncpg: picked jobs carry a heartbeat, and a stale one is picked again."""

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

from bench.queue_peers.protocol import Order, Work, run

_CHUNK = 1_000


def fill(order: Order) -> None:
    run(_fill(order.place, order.jobs))


def work(order: Order, work: Work) -> None:
    run(_work(order, work))


async def _fill(place: str, count: int) -> None:
    connection = await asyncpg.connect(place)
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    for start in range(0, count, _CHUNK):
        jobs = min(_CHUNK, count - start)
        await queries.enqueue(["job"] * jobs, [None] * jobs, [0] * jobs)
    await connection.close()


async def _work(order: Order, work: Work) -> None:
    connection = await asyncpg.connect(order.place)
    queue = PgQueuer(AsyncpgDriver(connection))

    async def job(_: object) -> None:
        await work.job_async()

    queue.entrypoint("job")(job)
    work.start()
    await queue.run(**order.options)
