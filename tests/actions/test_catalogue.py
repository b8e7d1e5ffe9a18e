"""What readers see of the catalogue, without a web server or a shell: lists, search, counts, files, versions, reports."""

import msgspec
import pytest

from tests.support.acting import VISITOR
from tests.support.envs import open_test_env, run_until_quiet, submit_skill
from vskill_client.wire.skills import SearchSkills, SkillRequest
from vskill_core.errors import Blocked, InvalidInput, NotFound
from vskill_core.findings import Severity
from vskill_platform.actions.principal import ANYBODY, OPERATOR, Principal
from vskill_platform.actions.skills.catalogue import (
    COUNT_SKILLS,
    LIST_SKILLS,
    SEARCH_SKILLS,
    CountSkills,
    ListSkills,
    list_front_page,
    list_unblocked,
)
from vskill_platform.actions.skills.skill_names import (
    LIST_FILES,
    LIST_VERSIONS,
    ReadVersion,
    current_blocklist,
    find_skill,
    leave_out_blocked,
)
from vskill_platform.actions.verdicts.skill_security import SECURITY
from vskill_platform.domain.blocklist import BlockEntry, place_target
from vskill_platform.domain.skills.catalogue import Sort
from vskill_platform.machine.process_cache import KeptReads
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.recall.blocklist import add_block

pytestmark = pytest.mark.anyio

READERS = (ANYBODY, OPERATOR, Principal("ann", Role.AUTHOR), Principal("rob", Role.ADMIN))


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as opened:
        for name in ("csv-cleaner", "test-writer", "theme-picker"):
            await submit_skill(name)
        await run_until_quiet(opened)
        yield opened


async def block(env, slug: str) -> None:
    skill = await find_skill(VISITOR, slug)
    now = env.kv.now()
    entry = BlockEntry(place_target(skill.identity), Severity.HIGH, "it steals", "admin:rob", now, now)
    await add_block(entry)


@pytest.mark.parametrize("reader", READERS, ids=lambda one: one.actor)
async def test_every_reader_lists_finds_and_counts_what_is_public(env, reader):
    listed = await LIST_SKILLS(env, reader, ListSkills(limit=2))
    rest = await LIST_SKILLS(env, reader, ListSkills(after=listed.pagination.after))
    names = {one.skill_slug for one in (*listed.skills, *rest.skills)}
    assert names == {"csv-cleaner", "test-writer", "theme-picker"}
    assert listed.pagination.has_more and not rest.pagination.has_more
    found = await SEARCH_SKILLS(env, reader, SearchSkills(q="csv"))
    assert [one.skill_slug for one in found.results] == ["csv-cleaner"] and found.total == 1
    counted = await COUNT_SKILLS(env, reader, CountSkills())
    assert counted.total == 3 and counted.certification == {"SCANNED": 3}


async def test_a_block_counts_at_once_in_lists_and_marks_in_search(env):
    await block(env, "csv-cleaner")
    for kept in (env.kept, KeptReads()):
        services = msgspec.structs.replace(env, kept=kept)
        listed = await list_unblocked(services, VISITOR, sort=Sort.NEWEST)
        assert sorted(one.slug for one in listed.items) == ["test-writer", "theme-picker"]
        shown = [one.slug for found in await list_front_page(services, VISITOR, 6) for one in found]
        assert shown and "csv-cleaner" not in shown
    assert len((await LIST_SKILLS(env, ANYBODY, ListSkills())).skills) == 2
    (hit,) = (await SEARCH_SKILLS(env, ANYBODY, SearchSkills(q="csv"))).results
    assert hit.is_blocked and hit.severity == "high"


async def test_the_blocklist_is_read_again_only_where_it_changed(env):
    first = await current_blocklist(env)
    assert await current_blocklist(env) is first
    await block(env, "csv-cleaner")
    assert await current_blocklist(env) is not first
    skill = await find_skill(VISITOR, "csv-cleaner")
    assert await leave_out_blocked(env, [skill]) == ()


async def test_a_skill_is_found_by_every_form_of_its_name(env):
    full = "upload~tests/skills/csv-cleaner"
    for name in (full, full.upper(), "csv-cleaner", "CSV-Cleaner", "upload~tests/csv-cleaner"):
        assert (await find_skill(VISITOR, name)).canonical == full
    for name in ("nobody/csv-cleaner", "csv", "a/b/c", "a/b/c/d", "", "/"):
        with pytest.raises(NotFound, match="There is no skill"):
            await find_skill(VISITOR, name)


async def test_a_flat_name_stays_with_the_skill_that_had_it_first(env):
    await submit_skill("csv-cleaner", namespace="others")
    await run_until_quiet(env)
    assert (await find_skill(VISITOR, "csv-cleaner")).identity.owner == "tests"
    for name in ("upload~others/csv-cleaner", "csv-cleaner-upload-others"):
        assert (await find_skill(VISITOR, name)).identity.owner == "others"


async def test_files_versions_and_the_report_of_a_version(env):
    files = await LIST_FILES(env, ANYBODY, ReadVersion(skill="csv-cleaner"))
    assert files.version == "1.0.0" and "SKILL.md" in {one.path for one in files.files}
    versions = await LIST_VERSIONS(env, ANYBODY, SkillRequest(skill="csv-cleaner"))
    assert [one.version for one in versions.versions] == ["1.0.0"] and versions.versions[0].is_current
    report = await SECURITY(env, ANYBODY, ReadVersion(skill="csv-cleaner", version="1.0.0"))
    assert (report.digest, report.overall_verdict) == (files.digest, "PASS")
    for action in (LIST_FILES, SECURITY):
        request = action.request(skill="csv-cleaner", version="9.9.9")
        with pytest.raises(NotFound, match=r"has no version '9\.9\.9'"):
            await action(env, ANYBODY, request)


async def test_blocked_files_are_not_handed_out_and_their_report_is(env):
    await block(env, "csv-cleaner")
    with pytest.raises(Blocked, match="it steals"):
        await LIST_FILES(env, ANYBODY, ReadVersion(skill="csv-cleaner"))
    report = await SECURITY(env, ANYBODY, ReadVersion(skill="csv-cleaner"))
    assert (report.overall_verdict, report.reason) == ("FAIL", "it steals")


async def test_limits_are_those_of_the_request_whoever_calls(env):
    with pytest.raises(InvalidInput) as refused:
        await LIST_SKILLS(env, OPERATOR, ListSkills(limit=1_000))
    assert refused.value.details["field"] == "limit"
