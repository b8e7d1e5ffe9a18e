"""Two releases beside each other during a rolling restart: what the newer one writes, the older one reads and works on;
what the older one wrote years ago, the newer one takes up.

A field that a release does not know is dropped when it writes the record again. So a release writes only fields that the
release before it knows already: `docs/how-to/scale-out.md` says how a field is introduced in two steps.
"""

import json
from typing import Any

import msgspec
import pytest

from tests.support.envs import make_submission, open_test_env, run_until_quiet, submit_skill
from tests.support.system_reads import get_submission
from vskill_platform.domain.messages import decode_body
from vskill_platform.domain.operation.task import Task, create
from vskill_platform.domain.skills.skill import PublishedSkill, SkillVersion
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.queue.health import queue_health
from vskill_platform.worker_context import Env

pytestmark = pytest.mark.anyio

#: A submission as release 0.3.0 writes it. Once that is published, these bytes never change: later releases must read them.
FIRST_RELEASE = (
    b'{"id":"sub_041b73a6-595d-50da-bef4-62c1164b440c","repo_url":"upload://tests/demo","identity":{"host":"upload",'
    b'"owner":"tests","repo":"skills","path":"demo"},"skill_name":"demo","skill_path":"demo","state":"RECEIVED",'
    b'"run":1,"created_at":1700000000000,"updated_at":1700000000000,"history":[{"id":"demo-1","seq":1,'
    b'"at":1700000000000,"to":"RECEIVED","actor":"user:test","reason":"submitted"}],'
    b'"next_attempt_at":1700000000000}'
)


#: Objects that are no records but tables, whose keys mean something.
TABLES = {"findings", "malice", "subject", "listed_as", "holders"}


def with_unknown(value: Any) -> Any:
    """The same JSON as a later release might write it: one more field in every record."""
    if isinstance(value, dict):
        fields = {key: one if key in TABLES else with_unknown(one) for key, one in value.items()}
        return {**fields, "from_next_release": {"x": [1]}}
    if isinstance(value, list):
        return [with_unknown(one) for one in value]
    return value


async def rewritten_by_the_next_release(env: Env, prefix: str) -> int:
    page = await env.kv.scan(prefix)
    for entry in page.items:
        value = with_unknown(json.loads(entry.value))
        await env.kv.put(entry.key, json.dumps(value).encode(), if_version=entry.version)
    return len(page.items)


@pytest.mark.parametrize("engine", ["memory", "sqlite", "postgresql"])
async def test_an_older_worker_takes_a_newer_record_all_the_way(engine, tmp_path):
    async with open_test_env(engine, tmp_path) as env:
        submitted = (await submit_skill("newer")).submission
        assert submitted is not None
        assert await rewritten_by_the_next_release(env, "sub:") == 1
        await run_until_quiet(env)
        assert (await get_submission(submitted.id)).state is State.PUBLISHED
        assert not (await queue_health()).violations


async def test_a_field_of_the_next_release_is_dropped_by_the_older_ones_write(tmp_path):
    """Not what one would wish, and so the rule: a release writes only what the one before it knows."""
    async with open_test_env("memory", tmp_path) as env:
        submitted = (await submit_skill("newer")).submission
        assert submitted is not None
        await rewritten_by_the_next_release(env, "sub:")
        await run_until_quiet(env)
        entry = await env.kv.get(submitted.key)
        assert entry is not None
        assert "from_next_release" not in json.loads(entry.value)


@pytest.mark.parametrize("engine", ["memory", "sqlite", "postgresql"])
async def test_what_was_published_is_read_whatever_the_next_release_adds_to_it(engine, tmp_path):
    async with open_test_env(engine, tmp_path) as env:
        await submit_skill("live")
        await run_until_quiet(env)
        for prefix in ("skill:", "sub:"):
            assert await rewritten_by_the_next_release(env, prefix) > 0
        again = (await submit_skill("live", "more words", version="2.0.0")).submission
        assert again is not None
        await run_until_quiet(env)
        assert (await get_submission(again.id)).state is State.PUBLISHED


@pytest.mark.parametrize(
    "record",
    [
        *(make_submission(state=state, claimed_until=None) for state in State),
        create("rescan", "t", {"digest": "d"}, now=1),
    ],
    ids=lambda record: str(record.state),
)
def test_every_record_is_read_with_fields_that_nobody_knows(record: Submission | Task):
    newer = with_unknown(json.loads(msgspec.json.encode(record)))
    assert msgspec.convert(newer, type(record), strict=True) == record


@pytest.mark.parametrize("kind", [Submission, Task, PublishedSkill, SkillVersion])
def test_no_record_refuses_fields_that_it_does_not_know(kind):
    """One that did would make a rolling restart stop at the first record that the newer release wrote."""
    assert not kind.__struct_config__.forbid_unknown_fields


@pytest.mark.parametrize("engine", ["memory", "sqlite", "postgresql"])
async def test_a_record_of_the_first_release_is_found_by_recovery_and_worked_on(engine, tmp_path):
    async with open_test_env(engine, tmp_path) as env:
        record = msgspec.json.decode(FIRST_RELEASE, type=Submission)
        await env.kv.put(record.key, FIRST_RELEASE)
        assert await run_until_quiet(env, recover=True) > 0
        assert (await get_submission(record.id)).history[: len(record.history)] == record.history
        assert (await get_submission(record.id)).attempts != record.attempts
        assert not (await queue_health()).violations


def test_a_message_of_the_next_release_is_understood_as_far_as_it_goes():
    body = decode_body(b'{"kind":"submission","submission_id":"s","run":1,"from_next_release":true}')
    assert body.run == 1


async def test_a_state_that_only_the_next_release_knows_is_reported_and_left_alone(tmp_path):
    """An older worker cannot guess what it means; the record is shown, not lost, and the newer one goes on with it."""
    async with open_test_env("sqlite", tmp_path) as env:
        record = json.loads(msgspec.json.encode(make_submission("odd")))
        value = json.dumps({**record, "state": "TIER3_SCANNING"}).encode()
        await env.kv.put(f"sub:{record['id']}", value)
        await run_until_quiet(env, recover=True)
        entry = await env.kv.get(f"sub:{record['id']}")
        assert entry is not None
        assert entry.value == value
        (violation,) = (await queue_health()).violations
        assert violation.key == f"sub:{record['id']}"
