"""Procrastinate on PostgreSQL through psycopg: jobs of a dead worker stay `doing` until a task of one's own asks for
stalled ones."""

from typing import Any

from procrastinate import App, PsycopgConnector

from bench.queue_peers.protocol import Order, Work, run

_CHUNK = 1_000


def fill(order: Order) -> None:
    run(_fill(order.place, order.jobs))


def work(order: Order, work: Work) -> None:
    run(_work(order, work))


async def _nothing() -> None:
    pass


async def _fill(place: str, count: int) -> None:
    app = App(connector=PsycopgConnector(conninfo=place))
    job: Any = app.task(name="job")(_nothing)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for start in range(0, count, _CHUNK):
            await job.batch_defer_async(*({} for _ in range(min(_CHUNK, count - start))))


async def _work(order: Order, work: Work) -> None:
    app = App(connector=PsycopgConnector(conninfo=order.place))

    async def job() -> None:
        await work.job_async()

    app.task(name="job")(job)
    async with app.open_async():
        work.start()
        await app.run_worker_async(install_signal_handlers=False, **order.options)
