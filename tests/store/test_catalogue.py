"""The marketplace's lists: only what can be installed, in order, filtered, counted, and in step with every change."""

import pytest

from tests.support.envs import open_test_env, run_until_quiet, submit_skill
from vskill_platform.domain import keys
from vskill_platform.domain.trust import TrustTier
from vskill_platform.store.catalogue import Filter, Sort, facets, list_skills, search_skills
from vskill_platform.store.installs import count_installs, installs_of
from vskill_platform.store.reports import file_report
from vskill_platform.store.skills import get_skill
from vskill_platform.store.standing import refresh_standing
from vskill_platform.store.withdrawals import restore, take_down

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture
async def three(env):
    for name in ("csv-cleaner", "test-writer", "theme-picker"):
        await submit_skill(name)
    await run_until_quiet(env)


def names(page) -> list[str]:
    return [skill.slug for skill in page.items]


async def test_A1_a_published_skill_is_listed_found_and_counted_by_the_write_that_published_it(env, three):
    assert sorted(names(await list_skills())) == ["csv-cleaner", "test-writer", "theme-picker"]
    assert names(await search_skills("csv")) == ["csv-cleaner"]
    counted = await facets()
    assert counted.total == 3 and counted.certification == {"SCANNED": 3}
    assert counted.category == {"data": 1, "other": 1, "testing": 1}
    assert names(await list_skills(Filter(category="data", owner="tests"))) == ["csv-cleaner"]


async def test_what_is_taken_down_is_in_no_list_and_no_count_and_last_in_search(env, three):
    canonical = "upload~tests/skills/csv-cleaner"
    await take_down(canonical, by="admin:ann", reason="under review")
    assert sorted(names(await list_skills())) == ["test-writer", "theme-picker"]
    assert (await facets()).total == 2
    (hit,) = (await search_skills("csv")).items
    assert hit.listing is None
    await restore(canonical, by="admin:ann", reason="it was fine")
    assert (await facets()).total == 3


async def test_pages_go_on_from_their_cursor_in_every_order(env, three):
    for sort in Sort:
        first = await list_skills(sort=sort, limit=2)
        rest = await list_skills(sort=sort, limit=2, after=first.after)
        assert sorted(names(first) + names(rest)) == ["csv-cleaner", "test-writer", "theme-picker"]
        assert rest.after is None


async def test_a_record_that_cannot_be_read_hides_no_other_and_is_counted(env, three):
    await env.kv.put(keys.skill("o/r/odd"), b'{"listing": {"updated_at": 5}, "canonical": 7}')
    page = await list_skills()
    assert len(page.items) == 3 and page.unreadable == 1


async def test_installs_and_reports_reach_the_standing_and_nobody_is_tracked(env, three):
    canonical = "upload~tests/skills/csv-cleaner"
    for _ in range(101):
        await count_installs([canonical, canonical])
    await file_report(canonical, reporter="user:ann", reason="does not work")
    assert await installs_of(canonical) == 101
    assert await refresh_standing() == 1
    assert await refresh_standing() == 0
    skill = await get_skill(canonical)
    assert skill.listing is not None
    assert skill.listing.installs == 101 and skill.trust.open_reports == 1
    assert names(await list_skills(sort=Sort.INSTALLS))[0] == "csv-cleaner"
    stored = await env.kv.scan(keys.INSTALLS)
    assert [entry.value for entry in stored.items] == [b"101"]


async def test_trust_is_computed_when_a_version_is_published(env, three):
    (skill, *_) = (await list_skills()).items
    assert skill.listing is not None
    assert (skill.listing.trust_tier, skill.listing.trust_score) == (TrustTier.T2, 40)
