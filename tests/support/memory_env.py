"""An environment on memory engines, built by hand: for tests that need no file and no second process."""

from typing import Any

import msgspec

from tests.support.memories import tiny_memory
from tests.support.scanners import structure_scanner
from vskill_platform.ledger.blobs.memory import MemoryBlobs
from vskill_platform.ledger.broker.memory import MemoryBroker
from vskill_platform.ledger.clock import Clock, SystemClock
from vskill_platform.ledger.kv.memory import MemoryKV
from vskill_platform.observing.logs import logger
from vskill_platform.observing.metrics import Metrics
from vskill_platform.settings import load_settings
from vskill_platform.sources.router import UploadSource
from vskill_platform.worker_context import Env
from vskill_scan.reading.manifest import read_manifest


def memory_env(clock: Clock | None = None, **overrides: Any) -> Env:
    """Everything in memory; `overrides` replaces single fields."""
    clock = clock or SystemClock()
    broker = MemoryBroker(clock)
    blobs = MemoryBlobs()
    env = Env(
        kv=MemoryKV(clock, broker),
        broker=broker,
        blobs=blobs,
        sources=UploadSource(blobs),
        scanner=structure_scanner(read_manifest),
        judge=None,
        clock=clock,
        settings=load_settings({}),
        log=logger(),
        metrics=Metrics(),
        worker_id="test",
        packaged_memory=tiny_memory,
    )
    return msgspec.structs.replace(env, **overrides)


def named_env(name: str) -> Env:
    """An environment that can be told from another."""
    return memory_env(worker_id=name)
