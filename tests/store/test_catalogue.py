"""The marketplace's lists: only what can be installed, in order, filtered, counted, and in step with every change."""

from functools import partial

import msgspec
import pytest

from tests.support.acting import restore, take_down
from tests.support.envs import active_env, open_test_env, run_until_quiet, submit_skill
from tests.support.faults import HookedKV
from tests.support.owners import set_owners
from tests.support.shelf import open_shelf
from vskill_core.capability import Lack
from vskill_core.content import SkillFile
from vskill_core.errors import Conflict, NotFound, RecordMalformed
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import PUBLIC_ONLY
from vskill_platform.domain.skills.catalogue import Filter, SkillHits, SkillPage, Sort
from vskill_platform.domain.skills.trust import Provenance, TrustTier
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.stages.rescan import request_rescan
from vskill_platform.store.people.owners import Owner
from vskill_platform.store.review.reports import file_report
from vskill_platform.store.skills import catalogue
from vskill_platform.store.skills.installs import count_installs, installs_by_skill
from vskill_platform.store.skills.reputation import refresh_standing
from vskill_platform.store.skills.skills import find_by_name, get_skill, list_by_prefix
from vskill_platform.submission_store import iter_published_skills

pytestmark = pytest.mark.anyio

list_skills = partial(catalogue.list_skills, audiences=PUBLIC_ONLY)
search_skills = partial(catalogue.search_skills, audiences=PUBLIC_ONLY)
count_facets = partial(catalogue.count_facets, audiences=PUBLIC_ONLY)


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
    counted = await count_facets()
    assert counted.total == 3 and counted.certification == {"SCANNED": 3}
    assert counted.category == {"data": 1, "other": 1, "testing": 1}
    assert names(await list_skills(Filter(category="data", owner="tests"))) == ["csv-cleaner"]


@pytest.mark.parametrize("audiences", [frozenset(), frozenset({"ns:acme"})], ids=["none", "another"])
async def test_a_reader_of_no_audience_in_common_finds_lists_and_counts_nothing(env, three, audiences):
    canonical = "upload~tests/skills/csv-cleaner"
    assert await catalogue.list_skills(audiences=audiences) == SkillPage(())
    assert await catalogue.search_skills("csv", audiences=audiences) == SkillHits(())
    assert (await catalogue.count_facets(audiences=audiences)).total == 0
    assert [one async for one in iter_published_skills(audiences=audiences)] == []
    assert await list_by_prefix("upload~tests/", None, 10, audiences=audiences) == ((), None)
    for name in (canonical, "csv-cleaner", "tests/csv-cleaner"):
        with pytest.raises(NotFound) as hidden:
            await find_by_name(name, audiences=audiences)
        assert hidden.value.message == f"There is no skill {name}."
    both = audiences | PUBLIC_ONLY
    assert len((await catalogue.list_skills(audiences=both)).items) == 3
    assert (await find_by_name(canonical, audiences=both)).canonical == canonical


async def test_what_is_taken_down_is_in_no_list_and_no_count_and_last_in_search(env, three):
    canonical = "upload~tests/skills/csv-cleaner"
    await take_down(canonical, by="admin:ann", reason="under review")
    assert sorted(names(await list_skills())) == ["test-writer", "theme-picker"]
    assert (await count_facets()).total == 2
    (hit,) = (await search_skills("csv")).items
    assert hit.listing is None
    await restore(canonical, by="admin:ann", reason="it was fine")
    assert (await count_facets()).total == 3


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
    await file_report(canonical, reporter="user:ann", reason="does not work", audiences=PUBLIC_ONLY)
    assert await installs_by_skill() == {canonical: 101}
    assert await refresh_standing() == 1
    assert await refresh_standing() == 0
    skill = await get_skill(canonical)
    assert skill.listing is not None
    assert skill.listing.installs == 101 and skill.trust.open_reports == 1
    assert names(await list_skills(sort=Sort.INSTALLS))[0] == "csv-cleaner"
    stored = await env.kv.scan(keys.installs.prefix)
    assert [entry.value for entry in stored.items] == [b"101"]


async def test_a_counter_that_is_no_number_is_named_and_not_guessed(env, three):
    canonical = "upload~tests/skills/csv-cleaner"
    await env.kv.put(keys.installs(canonical, "2026-01-01"), b"many")
    with pytest.raises(RecordMalformed, match="2026-01-01 is not a number"):
        await installs_by_skill()


async def test_a_malformed_skill_keeps_no_other_from_its_standing(env, three):
    await env.kv.put(keys.skill("o/r/odd"), b"{")
    await count_installs(["upload~tests/skills/theme-picker"])
    assert await refresh_standing() == 1
    assert (await get_skill("upload~tests/skills/theme-picker")).trust.installs == 1
    labels = {"operation": "iter_skills", "reason": "malformed"}
    assert env.metrics.registry.get_sample_value("vskill_records_skipped_total", labels) == 1


async def test_a_skill_that_others_write_all_the_time_is_left_to_the_next_run(env, three):
    busy, quiet = "upload~tests/skills/csv-cleaner", "upload~tests/skills/test-writer"
    await count_installs([busy, quiet])
    hooked = HookedKV(env.kv)

    async def busy_one(operations):
        if any(isinstance(one, Put) and one.key == keys.skill(busy) for one in operations):
            raise Conflict("somebody was quicker")

    hooked.before_commit = busy_one
    with active_env(env, kv=hooked):
        assert await refresh_standing() == 1
    assert [(await get_skill(name)).trust.installs for name in (busy, quiet)] == [0, 1]
    assert await refresh_standing() == 1
    assert (await get_skill(busy)).trust.installs == 1


async def test_only_what_a_proved_owner_submitted_has_a_verified_provenance(tmp_path):
    async with open_shelf(tmp_path) as shelf:
        repo = "https://github.com/ann/tools"
        by_owner = await shelf.publish("mine", repo=repo, submitter="ann")
        by_other = await shelf.publish("theirs", repo=repo, submitter="bob")
        elsewhere = await shelf.publish("far", repo="https://github.com/eve/tools", submitter="ann")
        await set_owners(shelf.env, by_owner.identity, Owner("ann", 1, "file"))
        with active_env(shelf.env):
            assert await refresh_standing() == 1
            assert [
                (await get_skill(skill.canonical)).trust.provenance
                for skill in (by_owner, by_other, elsewhere)
            ] == [Provenance.VERIFIED, Provenance.UNKNOWN, Provenance.UNKNOWN]


async def test_trust_is_computed_when_a_version_is_published(env, three):
    (skill, *_) = (await list_skills()).items
    assert skill.listing is not None
    assert (skill.listing.trust_tier, skill.listing.trust_score) == (TrustTier.T1, 40)


# Choosing.

SCRIPT = SkillFile("run.sh", "100644", b"#!/bin/sh\ncurl https://api.example.dev/x\n")
UNREAD = SkillFile("run.tcl", "100644", b"puts 1\n")


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
async def kinds(request, tmp_path):
    """Prose alone, a script that asks a host, and a file that nobody can read."""
    async with open_test_env(request.param, tmp_path) as opened:
        await submit_skill("prose")
        await submit_skill("online", extra=(SCRIPT,))
        await submit_skill("opaque", extra=(UNREAD,))
        await run_until_quiet(opened)
        yield opened


async def test_lists_searches_and_counts_are_narrowed_by_what_the_card_is_without(kinds):
    assert names(await list_skills(Filter(without="network"))) == ["prose"]
    assert names(await search_skills("online", Filter(without="network"))) == []
    assert sorted(names(await list_skills(Filter(without="secrets,files")))) == ["online", "prose"]
    assert names(await list_skills(Filter(without="secrets", category="other"), sort=Sort.INSTALLS)) != []
    everything = {"network": 1, "secrets": 2, "installs": 2, "scripts": 1, "files": 2}
    counted = await count_facets()
    assert (counted.total, counted.without) == (3, everything)
    narrowed = await catalogue.count_listed(Filter(without="scripts"), audiences=PUBLIC_ONLY)
    assert (narrowed.total, narrowed.without) == (1, dict.fromkeys(everything, 1))
    found = await catalogue.count_found("skill", Filter(without="network"), audiences=PUBLIC_ONLY)
    assert found.total == len((await search_skills("skill", Filter(without="network"))).items)


async def test_what_was_not_read_whole_is_in_no_such_list(kinds):
    opaque = await get_skill("upload~tests/skills/opaque")
    assert opaque.listing is not None and opaque.listing.without is None
    for lack in Lack:
        assert "opaque" not in names(await list_skills(Filter(without=lack)))


async def test_a_record_from_before_says_nothing_until_it_is_judged_again(kinds):
    key = keys.skill("upload~tests/skills/prose")
    entry = await kinds.kv.get(key)
    assert entry is not None
    record = msgspec.json.decode(entry.value)
    for name in ("without", "provenance", "min_installs", "min_age"):
        del record["listing"][name]
    for ref in record["versions"]:
        del ref["without"]
    await kinds.kv.put(key, msgspec.json.encode(record))
    assert names(await list_skills(Filter(without="network"))) == []
    assert (await count_facets()).without == {"secrets": 1, "installs": 1, "files": 1}
    skill = await get_skill("upload~tests/skills/prose")
    await request_rescan(skill, skill.versions[-1])
    await run_until_quiet(kinds)
    assert names(await list_skills(Filter(without="network"))) == ["prose"]
    assert (await count_facets()).without["network"] == 1


async def test_installs_and_a_verified_owner_narrow_a_list(tmp_path):
    async with open_shelf(tmp_path) as shelf:
        repo = "https://github.com/ann/tools"
        mine = await shelf.publish("mine", repo=repo, submitter="ann")
        await shelf.publish("theirs", repo=repo, submitter="bob")
        await set_owners(shelf.env, mine.identity, Owner("ann", 1, "file"))
        with active_env(shelf.env):
            for _ in range(10):
                await count_installs([mine.canonical])
            await refresh_standing()
            assert names(await list_skills(Filter(provenance="verified"))) == ["mine"]
            assert names(await list_skills(Filter(min_installs="10"))) == ["mine"]
            assert names(await list_skills(Filter(min_installs="50"))) == []
            counted = await count_facets()
            assert (counted.provenance, counted.min_installs) == ({"verified": 1}, {"1": 1, "10": 1})
            assert counted.min_age == {}
