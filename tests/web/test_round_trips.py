"""How often an answer asks the store: at most four times, whatever the number of skills, and also where nothing is
kept from a request before."""

import httpx2
import msgspec
import pytest

from tests.support.counting_kv import CountingKV
from tests.support.envs import active_env
from tests.support.shelf import open_shelf
from vskill_core.findings import Severity
from vskill_platform.domain.blocklist import BlockEntry, place_target
from vskill_platform.machine.process_cache import KeptReads
from vskill_platform.store.recall.blocklist import add_block
from vskill_platform.store.skills.collections import add_skills, create_collection
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

MOST = 4
#: The page of one skill also names related skills, of its owner and of its topic: a question each. A search reads the
#: words of public skills, every ten seconds, then finds candidates and reads the best.
MOST_OF_PAGE = {"/skills/acme/tools/skill-1": 5, "/skills?q=skill": 6, "/api/v1/skills/search?q=small": 6}
#: Who may read, the skills shown, and collections, once the first visitor has made the process choose and count.
MOST_OF_HOME = 3
READS = (
    "/api/v1/skills",
    "/api/v1/skills?category=other&sort=installs",
    "/api/v1/skills/search?q=small",
    "/api/v1/skills/acme/tools/skill-1",
    "/api/v1/skills/acme%2Ftools%2Fskill-1",
    "/api/v1/skills/acme/tools/skill-1/versions",
    "/api/v1/submissions/stats",
)
PAGES = (
    "/skills",
    "/skills?sort=newest",
    "/skills?category=other",
    "/skills?q=skill",
    "/skills/acme/tools/skill-1",
    "/owners/acme",
)


@pytest.mark.parametrize("engine", ["memory", "sqlite"])
async def test_lists_search_and_detail_take_at_most_four_round_trips(tmp_path, engine):
    async with open_shelf(tmp_path, engine) as shelf:
        for number in range(3):
            await shelf.publish(f"skill-{number}")
        kv = CountingKV(shelf.env.kv)
        app = create_app(msgspec.structs.replace(shelf.env, kv=kv, kept=KeptReads()))
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as client:
            await client.get("/api/v1/blocklist")
            for path in READS:
                kv.calls.clear()
                assert (await client.get(path)).status_code == 200
                assert kv.total <= MOST_OF_PAGE.get(path, MOST), (path, dict(kv.calls))
                kv.calls.clear()
                assert (await client.get(path)).status_code == 200
                assert kv.total <= MOST_OF_PAGE.get(path, MOST), (path, dict(kv.calls))


@pytest.mark.parametrize("engine", ["memory", "sqlite"])
async def test_pages_take_few_round_trips_with_nothing_kept_too(tmp_path, engine):
    """Each page is the first that a process is asked for, and then asked for again."""
    async with open_shelf(tmp_path, engine) as shelf:
        for number in range(3):
            await shelf.publish(f"skill-{number}")
        for path in PAGES:
            kv = CountingKV(shelf.env.kv)
            async with client_of(msgspec.structs.replace(shelf.env, kv=kv, kept=KeptReads())) as client:
                for _ in range(2):
                    kv.calls.clear()
                    assert (await client.get(path)).status_code == 200
                    assert 1 <= kv.total <= MOST_OF_PAGE.get(path, MOST), (path, dict(kv.calls))


@pytest.mark.parametrize("engine", ["memory", "sqlite"])
async def test_the_home_page_takes_three_round_trips_however_many_collections_there_are(tmp_path, engine):
    async with open_shelf(tmp_path, engine) as shelf:
        with active_env(shelf.env):
            for number in range(3):
                skill = await shelf.publish(f"skill-{number}")
                await create_collection(f"set-{number}", by="admin:ada", reason="a test")
                await add_skills(f"set-{number}", [skill.canonical], by="admin:ada", reason="a test")
        kv = CountingKV(shelf.env.kv)
        async with client_of(msgspec.structs.replace(shelf.env, kv=kv, kept=KeptReads())) as client:
            await client.get("/")
            kv.calls.clear()
            text = (await client.get("/")).text
            assert "skill-1" in text and "/collections/set-2" in text
            assert 1 <= kv.total <= MOST_OF_HOME, dict(kv.calls)


@pytest.mark.parametrize("knows", [False, True], ids=["first page", "blocklist read before"])
async def test_what_was_blocked_a_moment_ago_is_in_no_list(tmp_path, knows):
    """Whether or not the process has read the whole blocklist; no pass has taken anything down yet."""
    async with open_shelf(tmp_path) as shelf:
        await shelf.publish("good")
        bad = await shelf.publish("bad", repo="https://github.com/evil/tools")
        async with client_of(shelf.env) as client:
            if knows:
                await client.get("/api/v1/blocklist")
            assert "evil/tools/bad" in (await client.get("/skills")).text
            now = shelf.env.kv.now()
            entry = BlockEntry(place_target(bad.identity), Severity.CRITICAL, "bad", "system", now, now)
            with active_env(shelf.env):
                await add_block(entry)
            for path in ("/", "/skills"):
                text = (await client.get(path)).text
                assert "acme/tools/good" in text and "evil/tools/bad" not in text, path


def client_of(env) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        transport=httpx2.ASGITransport(create_app(env)), base_url="http://platform.test"
    )
