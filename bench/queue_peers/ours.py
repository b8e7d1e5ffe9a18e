"""The project's own queue through its real consumer, on any of its engines: leased, handled, and acknowledged after
that. The clock runs until the last acknowledgement, not only until the last job."""

import asyncio

from bench.queue_peers.protocol import Order, Work
from vskill_platform.bootstrap import env_for
from vskill_platform.broker.contract import Batch
from vskill_platform.cli.process import run_async, tune_process
from vskill_platform.domain.messages import submission_send
from vskill_platform.env import Env
from vskill_platform.observability import configure_logging
from vskill_platform.queue.consumer import run_consumer
from vskill_platform.settings import Settings

_CHUNK = 1_000


def fill(order: Order) -> None:
    # What is kept nowhere is filled by the process that works.
    if not order.place.startswith("memory:"):
        run_async(_fill_at(order))


def work(order: Order, work: Work) -> None:
    tune_process()
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
        await _fill(env, order.jobs)


async def _fill(env: Env, count: int) -> None:
    sends = [submission_send(f"sub_{number}", 1) for number in range(count)]
    for start in range(0, count, _CHUNK):
        await env.broker.send_batch(sends[start : start + _CHUNK])


async def _work(order: Order, work: Work) -> None:
    all_run = asyncio.Event()
    work.on_last = all_run.set

    async def handle(batch: Batch, _: Env) -> None:
        # A task for every message, as the product's own handler has it.
        await asyncio.gather(*(work.job_async() for _ in batch.messages))

    async with env_for(settings_of(order)) as env:
        if order.place.startswith("memory:"):
            await _fill(env, order.jobs)
        work.start()
        consuming = asyncio.create_task(run_consumer(env, asyncio.Event(), handle))
        await asyncio.wait((consuming, asyncio.ensure_future(all_run.wait())), return_when="FIRST_COMPLETED")
        await _until_empty(env)
        work.report()


async def _until_empty(env: Env) -> None:
    """Until nothing is queued or leased any more: every acknowledgement has arrived."""
    while True:
        depth = await env.broker.depth()
        if not depth.ready + depth.delayed + depth.leased:
            return
        await asyncio.sleep(0.001)
