"""Estimates when a waiting submission has its turn: from how fast the line moved while there was work, from a pause,
and from whether a worker is alive. If one of them is unknown, there is no estimate."""

import msgspec

from vskill_platform.queue.control import Pause, current_pause
from vskill_platform.store.operation.workers import look_at_workers
from vskill_platform.store.submissions.statistics import Activity, LinePosition
from vskill_platform.worker_context import require_env


class Outlook(msgspec.Struct, frozen=True):
    """What the line waits for now."""

    pause: Pause | None
    #: Workers were here, and none is alive.
    deserted: bool
    at: int

    def estimate_ms(self, position: LinePosition | None, activity: Activity | None) -> int | None:
        """Milliseconds until its turn, including a pause; None where that is unknown."""
        each_ms = None if activity is None else activity.ms_each
        if position is None or each_ms is None or self.deserted:
            return None
        paused_ms = max(self.pause.until - self.at, 0) if self.pause else 0
        return paused_ms + int(position.place * each_ms)


async def look_ahead() -> Outlook:
    pause, workers = await current_pause(), await look_at_workers()
    return Outlook(pause, workers.gone, require_env("kv").kv.now())
