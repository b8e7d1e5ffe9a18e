"""Every fault once, with real processes, in seconds; `make chaos` plays them for minutes."""

from pathlib import Path

import pytest

from tests.chaos.__main__ import page
from tests.chaos.account import QUIET_WITHIN_S
from tests.chaos.engines import engines
from tests.chaos.single import LOCKED, single
from tests.chaos.world import DISK_FULL, SLOW_CLIENTS, WEB_KILLED, WORKER_KILLED, Plan, play

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def test_B8_E9_through_every_fault_nothing_is_lost_and_nothing_is_published_twice(tmp_path: Path):
    account = await play(engines, tmp_path, Plan(0, seed=7, down_s=0.5))
    assert len(account.faults) == 29
    assert sum(account.states.values()) == account.accepted > 0
    # Each kind of trouble was met, and was told apart.
    assert account.refused.keys() >= {"store_unavailable", "store_full", "blob_unavailable", "blob_full"}
    assert account.quiet_after_s < QUIET_WITHIN_S
    assert f"| submissions accepted | {account.accepted} |" in page(account, account, 1)


async def test_B8_E9_on_one_machine_with_a_full_disk_and_a_locked_file(tmp_path: Path):
    account = await play(single, tmp_path, Plan(0, seed=7, down_s=0.5))
    assert account.faults.keys() >= {
        DISK_FULL,
        LOCKED,
        SLOW_CLIENTS,
        WORKER_KILLED,
        WEB_KILLED,
        "content changed",
    }
    assert sum(account.states.values()) == account.accepted > 0
    assert account.quiet_after_s < QUIET_WITHIN_S
