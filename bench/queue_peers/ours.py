"""The project's own queue through its real consumer, on any of its engines: leased, handled, and acknowledged after
that. The clock runs until the last acknowledgement, not only until the last job."""

import asyncio

from bench.consuming import consuming, until_empty
from bench.consuming import fill as fill_queue
from bench.queue_peers.protocol import Order, Work
from vskill_platform.bootstrap import env_for
from vskill_platform.cli.process import run_async
from vskill_platform.ledger.broker.contract import Batch
from vskill_platform.observing.logs import configure_logging
from vskill_platform.settings import Settings
from vskill_platform.worker_context import Env


def fill(order: Order) -> None:
    # What is kept nowhere is filled by the process that works.
    if not order.place.startswith("memory:"):
        run_async(_fill_at(order))


def work(order: Order, work: Work) -> None:
    run_async(_work(order, work))


def settings_of(order: Order) -> Settings:
    """The place is a store, or a store and a queue with a space between them."""
    store, _, broker = order.place.partition(" ")
    settings = Settings(
        store=store,
        broker=broker,
        blobs="memory:",
        data_dir=order.folder,
        log_level="error",
        **order.options,
    )
    configure_logging(settings)
    return settings


async def _fill_at(order: Order) -> None:
    async with env_for(settings_of(order)) as env:
        await fill_queue(env, order.jobs)


async def _work(order: Order, work: Work) -> None:
    all_run = asyncio.Event()
    work.on_last = all_run.set

    async def handle(batch: Batch, _: Env) -> None:
        # A task for every message, as the product's own handler has it.
        await asyncio.gather(*(work.job_async() for _ in batch.messages))

    async with env_for(settings_of(order)) as env:
        if order.place.startswith("memory:"):
            await fill_queue(env, order.jobs)
        work.start()
        async with consuming(env, handle):
            await all_run.wait()
            await until_empty(env)
            work.report()
