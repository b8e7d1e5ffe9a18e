"""Whether this process can do its work now: a real write to the record store and to the content store. Everybody who
asks within a few seconds gets the same answer, so that asking often costs nothing."""

import asyncio

from vskill_platform.domain.errors import BlobUnavailable, StoreTimeout
from vskill_platform.env import Env


class ReadinessProbe:
    """The last probe of one process, or the one that is under way."""

    def __init__(self) -> None:
        self._probe: asyncio.Task[None] | None = None
        self._began = 0.0

    async def check(self, env: Env) -> None:
        """Raise what keeps records or content from being written."""
        now = env.clock.monotonic()
        probe = self._probe
        if probe is None or (probe.done() and now - self._began >= env.pace.ready_every_s):
            probe = self._probe = asyncio.create_task(_probe(env))
            self._began = now
        await asyncio.shield(probe)


async def _probe(env: Env) -> None:
    within_s = env.pace.ready_within_s
    try:
        async with asyncio.timeout(within_s):
            await env.kv.check()
    except TimeoutError:
        raise StoreTimeout from None
    try:
        async with asyncio.timeout(within_s):
            await env.blobs.check()
    except TimeoutError:
        raise BlobUnavailable from None
