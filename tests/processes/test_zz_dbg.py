import pytest
from tests.processes.test_kill import *
from tests.processes.test_kill import _restart_until_ended
@pytest.mark.anyio
async def test_dbg(tmp_path):
    async with (open_test_env("sqlite", tmp_path, clock=SystemClock()) as env,
        workers_on(env.settings, tmp_path, TEST_SCAN_S="0.3", TEST_SCANS=str(tmp_path/"scans"), **SHORT_CLAIM) as workers):
        poison = record_of(await submit_skill("deadly", "poison"))
        beside = [record_of(await submit_skill(f"beside-{number}", "slow")) for number in range(4)]
        t0=(await get_submission(poison.id)).created_at
        d = await _restart_until_ended(workers, poison, beside)
        r = await get_submission(poison.id)
        for e in r.history: print(e.at-t0, e.to, e.actor[-12:], e.reason)
        print(d)
        for w in workers.started[:6]: print("-----", w.pid); print(w.log.read_text()[-1500:])
