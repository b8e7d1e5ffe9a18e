"""What several benchmarks of the queue share: filling it, a worker that consumes it, many clients at a time, and
waiting until everything is done."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress

from bench.measure import PATIENCE_S
from vskill_platform.domain.messages import submission_send
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions.states import State
from vskill_platform.queue.consumer import Handler, handle_submission_queue, run_consumer
from vskill_platform.submission_store import count_submissions
from vskill_platform.worker_context import Env

_FILL = 1_000


async def fill(env: Env, messages: int) -> None:
    """So many messages wait in the queue; nobody has their submissions."""
    sends = [submission_send(f"sub_{number}", 1) for number in range(messages)]
    for start in range(0, messages, _FILL):
        await env.broker.send_batch(sends[start : start + _FILL])


@asynccontextmanager
async def consuming(env: Env, handler: Handler = handle_submission_queue) -> AsyncIterator[None]:
    """The product's consumer works while the body runs. It is broken off and not asked to stop, since it would first
    wait a second for a message; the batches that it runs are finished all the same."""
    worker = asyncio.create_task(run_consumer(env, asyncio.Event(), handler))
    try:
        yield
    finally:
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker


async def from_clients(clients: int, numbers: Iterable[int], once: Callable[[int], Awaitable[None]]) -> None:
    """Once for every number, by so many clients at a time."""
    left = iter(numbers)

    async def client() -> None:
        for number in left:
            await once(number)

    await asyncio.gather(*(client() for _ in range(clients)))


async def until_published(count: int, look_every_s: float = 0.02) -> int:
    """Until so many submissions are PUBLISHED; how many there are then."""
    async with asyncio.timeout(PATIENCE_S):
        while (found := (await count_submissions(audiences=EVERYTHING)).by_state[State.PUBLISHED]) < count:  # noqa: ASYNC110 - nobody says
            await asyncio.sleep(look_every_s)
    return found


async def until_empty(env: Env) -> None:
    """Until nothing is queued or leased any more: every acknowledgement has arrived."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            depth = await env.broker.depth()
            if not depth.ready + depth.delayed + depth.leased:
                return
            await asyncio.sleep(0.001)
