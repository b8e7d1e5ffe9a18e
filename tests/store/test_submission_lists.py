"""Lists of submissions: narrowed by who submitted and by words, and honest about what could not be read."""

import pytest

from tests.support.envs import ENGINES, active_env, make_submission, open_test_env, put_record
from tests.support.faults import UnreadableKV
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions.states import State
from vskill_platform.store.submissions.submission_lists import find_submissions

pytestmark = pytest.mark.anyio


@pytest.fixture(params=ENGINES)
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as opened:
        yield opened


async def test_words_are_looked_for_within_the_submissions_of_one_submitter(env):
    for name, submitter in (("tidy-one", "ann"), ("tidy-two", "bob"), ("other", "ann")):
        await put_record(env, make_submission(name, at=env.kv.now(), submitter=submitter))
    found = await find_submissions(text="tidy", submitter="ann", audiences=EVERYTHING)
    assert [record.skill_name for record in found.items] == ["tidy-one"]
    both = await find_submissions(text="tidy", audiences=EVERYTHING)
    assert sorted(record.skill_name for record in both.items) == ["tidy-one", "tidy-two"]
    rejected = await find_submissions(
        text="tidy", submitter="ann", states=[State.REJECTED], audiences=EVERYTHING
    )
    assert rejected.items == ()


async def test_what_cannot_be_read_is_left_out_counted_and_hides_no_other(env):
    lost, kept = (make_submission(name, at=env.kv.now()) for name in ("lost", "kept"))
    for record in (lost, kept):
        await put_record(env, record)
    with active_env(env, kv=UnreadableKV(env.kv, lost.key)):
        found = await find_submissions(audiences=EVERYTHING)
    assert ([record.id for record in found.items], found.skipped) == ([kept.id], 1)
    labels = {"operation": "find_submissions", "reason": "failed"}
    assert env.metrics.registry.get_sample_value("vskill_records_skipped_total", labels) == 1
