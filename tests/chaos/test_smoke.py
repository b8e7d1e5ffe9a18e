"""Every fault once, with real processes, in seconds; `make chaos` plays them for minutes."""

from pathlib import Path

import pytest

from tests.chaos.__main__ import page
from tests.chaos.world import FAULTS, QUIET_WITHIN_S, play

pytestmark = pytest.mark.anyio


async def test_B8_E9_through_every_fault_nothing_is_lost_and_nothing_is_published_twice(tmp_path: Path):
    account = await play(tmp_path, seconds=10, seed=7)
    assert account.faults.keys() >= FAULTS.keys()
    assert sum(account.states.values()) == account.accepted
    assert account.quiet_after_s < QUIET_WITHIN_S
    assert f"| submissions accepted | {account.accepted} |" in page(account, 1)
