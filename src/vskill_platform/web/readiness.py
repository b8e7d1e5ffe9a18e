"""Whether this process can do its work now: a real write to the record store and to the content store, a temporary file
and a child process; if it works the queue, also whether a worker could. The result is reused for a few seconds, so that
frequent probes cost nothing."""

import asyncio

from vskill_core.errors import BlobUnavailable, Shortage, StoreTimeout
from vskill_platform.machine.shortages import MACHINE
from vskill_platform.upkeep.work_needs import find_lack, look_at_running
from vskill_platform.worker_context import Env


class ReadinessProbe:
    """The last probe of one process, or the one that is under way."""

    def __init__(self, *, works: bool) -> None:
        self._works = works
        self._probe: asyncio.Task[None] | None = None
        self._began = 0.0

    async def check(self, env: Env) -> None:
        now = env.clock.monotonic()
        probe = self._probe
        if probe is None or (probe.done() and now - self._began >= env.pace.ready_every_s):
            probe = self._probe = asyncio.create_task(_probe(env, works=self._works))
            self._began = now
        await asyncio.shield(probe)


async def _probe(env: Env, *, works: bool) -> None:
    within_s = env.pace.ready_within_s
    for check, error in ((env.kv.check, StoreTimeout), (env.blobs.check, BlobUnavailable)):
        try:
            async with asyncio.timeout(within_s):
                await check()
        except TimeoutError:
            raise error from None
    lack = await find_lack()
    if lack is not None:
        raise lack
    if works:
        workers = await look_at_running(env)
        if workers.alive and len(workers.lacks) == workers.alive:
            raise Shortage(f"No worker can work: {workers.lacks[0]}", host=MACHINE)
