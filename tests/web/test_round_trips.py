"""How often an answer asks the store: at most three times, whatever the number of skills, and also where nothing is
kept from a request before."""

import httpx2
import msgspec
import pytest

from tests.support.counting_kv import CountingKV
from tests.support.shelf import open_shelf
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

MOST = 3
READS = (
    "/api/v1/skills",
    "/api/v1/skills?category=other&sort=installs",
    "/api/v1/skills/search?q=small",
    "/api/v1/skills/acme/tools/skill-1",
    "/api/v1/skills/acme%2Ftools%2Fskill-1",
    "/api/v1/skills/acme/tools/skill-1/versions",
    "/api/v1/submissions/stats",
)


@pytest.mark.parametrize("engine", ["memory", "sqlite"])
async def test_lists_search_and_detail_take_at_most_three_round_trips(tmp_path, engine):
    async with open_shelf(tmp_path, engine) as shelf:
        for number in range(3):
            await shelf.publish(f"skill-{number}")
        kv = CountingKV(shelf.env.kv)
        app = create_app(msgspec.structs.replace(shelf.env, kv=kv))
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as client:
            await client.get("/api/v1/blocklist")
            for path in READS:
                kv.calls.clear()
                assert (await client.get(path)).status_code == 200
                assert kv.total <= MOST, (path, dict(kv.calls))
                kv.calls.clear()
                assert (await client.get(path)).status_code == 200
                assert kv.total <= MOST, (path, dict(kv.calls))
