"""US-001 and US-002: concurrent, settled reads of submissions and published skills.

The concurrency probes run on an engine that offers single-key `get` only; the differential tests show that an
engine with bulk reads and indexes gives the same answers.

In test names `-` is written `_`. Here are AC-US1-01, AC-US1-02, AC-US1-03, AC-US2-01, AC-US2-02, AC-US2-03, FR-001,
TC-050, TC-051, TC-052, TC-055, TC-056, TC-057, TC-070, TC-071, TC-072, TC-075, TC-076 and TC-077.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from tests.contracts.minimal_kv import MinimalKV
from tests.support.manual_clock import ManualClock
from tests.support.memory_env import memory_env
from tests.support.records import in_state, stored, submission
from tests.support.system_reads import get_run, get_submission
from vskill_core.errors import (
    InvalidInput,
    NoEnvironment,
    NotFound,
    RecordMalformed,
    StoreUnavailable,
)
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions.states import STUCK_STATES, State
from vskill_platform.domain.submissions.submission import STUCK_THRESHOLD_MS
from vskill_platform.ledger.database.sqlite import SqliteDatabase
from vskill_platform.ledger.kv.contract import KV, READS_AT_ONCE
from vskill_platform.ledger.kv.memory import MemoryKV
from vskill_platform.ledger.kv.sqlite import SqliteKV
from vskill_platform.store.submissions.submission_lists import Order, find_submissions
from vskill_platform.submission_store import (
    count_submissions,
    enumerate_published_skills,
    get_stuck_submissions,
    get_submissions_fresh,
    iter_published_skills,
    require_reason,
)
from vskill_platform.worker_context import Env, run_with_worker_env

pytestmark = pytest.mark.anyio

NOW = 10_000_000


class Setting:
    """A get-only store with a probe, and the environment around it."""

    def __init__(self) -> None:
        self.clock = ManualClock(NOW)
        self.kv = MinimalKV(self.clock)
        self.env = memory_env(self.clock, kv=self.kv)

    async def put(self, key: str, value: bytes | dict[str, object]) -> None:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        await self.kv.put(key, data)

    def skipped(self, operation: str, reason: str) -> float:
        labels = {"operation": operation, "reason": reason}
        return self.env.metrics.registry.get_sample_value("vskill_records_skipped_total", labels) or 0


@pytest.fixture
def setting() -> Setting:
    return Setting()


@pytest.fixture(params=["minimal", "memory", "sqlite"])
async def any_env(request, tmp_path) -> AsyncIterator[Env]:
    """The same stores over an engine with single reads only, with bulk reads, and with indexes."""
    clock = ManualClock(NOW)
    async with _engine(request.param, clock, tmp_path) as kv:
        yield memory_env(clock, kv=kv)


@asynccontextmanager
async def _engine(name, clock, tmp_path) -> AsyncIterator[KV]:
    if name == "sqlite":
        database = await SqliteDatabase.open(tmp_path / "store.db", clock)
        try:
            yield SqliteKV(database)
        finally:
            await database.close()
    else:
        yield MinimalKV(clock) if name == "minimal" else MemoryKV(clock)


def stuck_record(slug: str, state: State = State.RECEIVED, age: int = STUCK_THRESHOLD_MS) -> bytes:
    return stored(in_state(state, slug, NOW - age))


# get_submissions_fresh


async def test_TC_050_all_reads_start_before_any_finishes(setting):
    records = [submission(f"s{number}") for number in range(5)]
    for record in records:
        await setting.put(record.key, stored(record))
    setting.kv.probe.events.clear()
    fresh = await run_with_worker_env(setting.env, lambda: get_submissions_fresh([r.id for r in records]))
    assert [record.id for record in fresh] == [record.id for record in records]
    assert [kind for kind, _ in setting.kv.probe.events[:5]] == ["start"] * 5


async def test_TC_051_one_missing_leaves_the_others(setting):
    records = [submission("one"), submission("two")]
    for record in records:
        await setting.put(record.key, stored(record))
    ids = [records[0].id, "sub_missing", records[1].id]
    fresh = await run_with_worker_env(setting.env, lambda: get_submissions_fresh(ids))
    assert [record.id for record in fresh] == [records[0].id, records[1].id]
    assert setting.skipped("get_submissions_fresh", "missing") == 1


async def test_TC_052_no_ids_is_an_empty_answer_and_not_one_read(setting):
    assert await run_with_worker_env(setting.env, lambda: get_submissions_fresh([])) == []
    assert setting.kv.probe.reads == []


async def test_TC_055_a_stale_state_in_a_list_is_overridden_by_the_record(setting):
    stale = submission("demo")
    await setting.put(stale.key, stored(submission("demo", state=State.TIER1_SCANNING)))
    (fresh,) = await run_with_worker_env(setting.env, lambda: get_submissions_fresh([stale.id]))
    assert (stale.state, fresh.state) == (State.RECEIVED, State.TIER1_SCANNING)


# get_stuck_submissions


async def test_TC_056_TC_070_AC_US1_01_all_records_are_read_at_once(setting):
    for number in range(5):
        record = in_state(State.RECEIVED, f"s{number}", NOW - STUCK_THRESHOLD_MS)
        await setting.put(record.key, stored(record))
    stuck = await run_with_worker_env(setting.env, get_stuck_submissions)
    assert len(stuck) == 5
    assert setting.kv.probe.most_in_flight == 5
    assert len(setting.kv.probe.reads) == 5


async def test_AC_US1_01_concurrency_is_bounded(setting):
    """Unbounded concurrency was measured to be slower than a plain loop at 10,000 keys."""
    for number in range(READS_AT_ONCE + 100):
        await setting.put(f"sub:sub_{number:05}", stuck_record(f"s{number}"))
    assert len(await run_with_worker_env(setting.env, get_stuck_submissions)) == READS_AT_ONCE + 100
    assert setting.kv.probe.most_in_flight == READS_AT_ONCE


async def test_TC_071_AC_US1_02_invalid_json_a_failed_read_and_a_wrong_shape_are_skipped_and_counted(setting):
    """FR-001: settled; a partial failure never aborts the rest."""
    for slug in ("one", "two"):
        record = in_state(State.RECEIVED, slug, NOW - STUCK_THRESHOLD_MS)
        await setting.put(record.key, stored(record))
    await setting.put("sub:sub_broken", b"{not json")
    await setting.put("sub:sub_shape", {"state": "RECEIVED"})
    await setting.put("sub:sub_failing", stuck_record("three"))
    setting.kv.probe.failing["sub:sub_failing"] = StoreUnavailable("the disk is gone")
    stuck = await run_with_worker_env(setting.env, get_stuck_submissions)
    assert {one.skill_name for one in stuck} == {"one", "two"}
    assert setting.skipped("get_stuck_submissions", "malformed") == 2
    assert setting.skipped("get_stuck_submissions", "failed") == 1


async def test_AC_US1_02_an_error_of_any_kind_stays_with_its_key(setting):
    await setting.put("sub:sub_a", stuck_record("one"))
    await setting.put("sub:sub_b", stuck_record("two"))
    setting.kv.probe.failing["sub:sub_a"] = RuntimeError("a driver's own error")
    stuck = await run_with_worker_env(setting.env, get_stuck_submissions)
    assert [one.skill_name for one in stuck] == ["two"]


async def test_TC_072_AC_US1_03_only_stuck_states_past_the_threshold_come_back(any_env):
    """The filter: state in STUCK_STATES and now - updated_at >= 300,000 ms; the edge belongs to it."""
    assert STUCK_THRESHOLD_MS == 300_000
    assert {
        State.RECEIVED,
        State.TIER1_SCANNING,
        State.TIER2_SCANNING,
        State.AUTO_APPROVED,
    } == STUCK_STATES
    expected = set()
    for state in State:
        for age in (0, STUCK_THRESHOLD_MS - 1, STUCK_THRESHOLD_MS, STUCK_THRESHOLD_MS + 5):
            record = in_state(state, f"{state.lower().replace('_', '-')}-{age}", NOW - age)
            await any_env.kv.put(record.key, stored(record))
            if state in STUCK_STATES and age >= STUCK_THRESHOLD_MS:
                expected.add((record.id, state, age))
    stuck = await run_with_worker_env(any_env, get_stuck_submissions)
    assert {(one.id, one.state, one.stuck_for_ms) for one in stuck} == expected
    assert [one.updated_at for one in stuck] == sorted(one.updated_at for one in stuck)
    first = stuck[0]
    assert first.repo_url.startswith("upload://") and first.skill_path and first.skill_name


async def test_AC_US1_02_the_same_answer_whatever_the_engine_can_do(any_env):
    """Differential: single reads, bulk reads and indexes skip the same and report the same."""
    await any_env.kv.put("sub:sub_broken", b"{not json")
    await any_env.kv.put("sub:sub_no_state", b'{"id": "x", "updated_at": 5}')
    await any_env.kv.put("sub:sub_number", b'{"id": "x", "state": 7, "updated_at": 5}')
    for number in range(7):
        await any_env.kv.put(f"sub:sub_{number}", stuck_record(f"s{number}", age=STUCK_THRESHOLD_MS + number))
    stuck = await run_with_worker_env(any_env, get_stuck_submissions)
    assert [one.skill_name for one in stuck] == [f"s{number}" for number in range(6, -1, -1)]
    labels = {"operation": "get_stuck_submissions", "reason": "malformed"}
    assert any_env.metrics.registry.get_sample_value("vskill_records_skipped_total", labels) == 3


# enumerate_published_skills


async def test_TC_057_TC_075_AC_US2_01_all_skills_are_read_at_once(setting):
    for number in range(4):
        await setting.put(f"skill:o/r/s{number}", {"name": f"s{number}", "repo_url": "https://x"})
    assert len(await run_with_worker_env(setting.env, enumerate_published_skills)) == 4
    assert setting.kv.probe.most_in_flight == 4


async def test_TC_076_AC_US2_02_a_malformed_value_is_skipped(any_env):
    await any_env.kv.put("skill:o/r/good", b'{"name": "good"}')
    await any_env.kv.put("skill:o/r/bad", b"[1, 2")
    skills = await run_with_worker_env(any_env, enumerate_published_skills)
    assert [skill.name for skill in skills] == ["good"]


@pytest.mark.parametrize("way", ["enumerate_published_skills", "iter_published_skills"])
@pytest.mark.parametrize(
    "bad", [b"", b"nul", b'{"name": 1}', b"[" * 3000, b'{"name": "x"}],["skill:o/r/made-up",{"name": "x"}']
)
async def test_AC_US2_02_a_malformed_value_hides_no_other_and_is_counted(any_env, bad, way):
    """Pages are decoded as a whole; one with a malformed record is decoded again, record by record."""
    for number in range(30):
        await any_env.kv.put(f"skill:o/r/s{number:02}", b'{"name": "s"}' if number != 14 else bad)

    async def names() -> list[str]:
        if way == "enumerate_published_skills":
            return [skill.slug for skill in await enumerate_published_skills(page=10)]
        return [skill.slug async for skill in iter_published_skills(page=10, audiences=EVERYTHING)]

    found = await run_with_worker_env(any_env, names)
    assert found == [f"o/r/s{number:02}" for number in range(30) if number != 14]
    skipped = any_env.metrics.records_skipped.labels(way, "malformed")
    assert skipped._value.get() == 1


async def test_AC_US2_02_a_failed_read_is_skipped_and_counted(setting):
    for slug in ("a", "b"):
        await setting.put(f"skill:o/r/{slug}", {"name": slug})
    setting.kv.probe.failing["skill:o/r/a"] = StoreUnavailable("gone")
    skills = await run_with_worker_env(setting.env, enumerate_published_skills)
    assert [skill.name for skill in skills] == ["b"]
    assert setting.skipped("enumerate_published_skills", "failed") == 1


async def test_TC_077_AC_US2_03_aliases_are_left_out_before_anything_is_read(setting):
    for key in ("skill:foo", "skill:bar", "skill:alias:old"):
        await setting.put(key, {"name": key})
    skills = await run_with_worker_env(setting.env, enumerate_published_skills)
    assert [skill.slug for skill in skills] == ["bar", "foo"]
    assert len(setting.kv.probe.reads) == 2


async def test_the_summary_falls_back_to_the_slug_and_to_no_repository(any_env):
    await any_env.kv.put("skill:owner/repo/demo", b"{}")
    (skill,) = await run_with_worker_env(any_env, enumerate_published_skills)
    assert (skill.slug, skill.name, skill.repo_url) == ("owner/repo/demo", "owner/repo/demo", "")


async def test_what_is_withdrawn_is_not_listed(any_env):
    await any_env.kv.put("skill:o/r/live", b'{"name": "live", "withdrawn": false}')
    await any_env.kv.put("skill:o/r/gone", b'{"name": "gone", "withdrawn": true}')
    assert [s.name for s in await run_with_worker_env(any_env, enumerate_published_skills)] == ["live"]


async def test_iterating_finds_the_readers_skills_and_no_others(any_env):
    """15-decisions 3: pages are cut in the query, so that they have no holes."""
    for number in range(30):
        audience = ("public", "ns:a", "ns:b")[number % 3]
        await any_env.kv.put(f"skill:o/r/s{number:02}", b'{"audience": "%b"}' % audience.encode())

    async def names(*audiences: str) -> list[int]:
        skills = iter_published_skills(page=4, audiences=frozenset(audiences))
        return [int(skill.slug[-2:]) async for skill in skills]

    assert await run_with_worker_env(any_env, lambda: names("public")) == list(range(0, 30, 3))
    both = [number for number in range(30) if number % 3 != 2]
    assert await run_with_worker_env(any_env, lambda: names("public", "ns:a", "ns:z")) == both
    assert await run_with_worker_env(any_env, names) == []


async def test_iterating_reaches_the_end_in_pages_of_any_size(any_env):
    for number in range(25):
        await any_env.kv.put(f"skill:o/r/s{number:02}", b"{}")

    async def names() -> list[str]:
        return [skill.slug async for skill in iter_published_skills(page=10, audiences=EVERYTHING)]

    assert await run_with_worker_env(any_env, names) == [f"o/r/s{number:02}" for number in range(25)]


# The other reads.


async def test_AC_US3_04_outside_of_a_context_the_store_names_its_binding():
    with pytest.raises(NoEnvironment, match="kv"):
        await get_stuck_submissions()


async def test_counts_are_one_definition_and_know_what_they_cannot_read(any_env):
    for number in range(3):
        await any_env.kv.put(f"sub:sub_{number}", stuck_record(f"s{number}"))
    await any_env.kv.put("sub:sub_p", stored(in_state(State.PUBLISHED, "p", NOW)))
    await any_env.kv.put("sub:sub_odd", b'{"state": "WISHED"}')
    await any_env.kv.put("sub:sub_broken", b"?")
    counts = await run_with_worker_env(any_env, partial(count_submissions, audiences=EVERYTHING))
    assert counts.by_state[State.RECEIVED] == 3 and counts.by_state[State.PUBLISHED] == 1
    assert (counts.active, counts.unreadable, counts.total) == (3, 2, 6)


async def test_lists_page_by_last_change_or_by_creation(any_env):
    for number in range(5):
        record = submission(f"s{number}", at=NOW + number)
        await any_env.kv.put(record.key, stored(record))

    async def read(states: tuple[State, ...]) -> list[str]:
        names: list[str] = []
        after: str | None = None
        while True:
            order = Order.UPDATED if states else Order.CREATED
            page = await find_submissions(
                states=states, order=order, after=after, limit=2, audiences=EVERYTHING
            )
            names += [record.skill_name for record in page.items]
            after = page.after
            if after is None:
                return names

    newest_first = [f"s{number}" for number in range(4, -1, -1)]
    assert await run_with_worker_env(any_env, lambda: read(())) == newest_first
    assert await run_with_worker_env(any_env, lambda: read((State.RECEIVED, State.PUBLISHED))) == newest_first


async def test_one_submission_is_found_missing_or_malformed_and_these_differ(any_env):
    record = submission("demo")
    await any_env.kv.put(record.key, stored(record))
    await any_env.kv.put("sub:sub_bad", b'{"id": 1}')
    assert await run_with_worker_env(any_env, lambda: get_submission(record.id)) == record
    with pytest.raises(NotFound):
        await run_with_worker_env(any_env, lambda: get_submission("sub_none"))
    with pytest.raises(RecordMalformed, match="sub:sub_bad"):
        await run_with_worker_env(any_env, lambda: get_submission("sub_bad"))


async def test_earlier_runs_can_be_read(any_env):
    current = submission("demo", run=2)
    await any_env.kv.put(current.key, stored(current))
    await any_env.kv.put(f"subrun:{current.id}:1", stored(submission("demo", state=State.REJECTED)))
    assert (await run_with_worker_env(any_env, lambda: get_run(current.id, 1))).state is State.REJECTED
    assert (await run_with_worker_env(any_env, lambda: get_run(current.id, 2))).run == 2
    with pytest.raises(NotFound):
        await run_with_worker_env(any_env, lambda: get_run(current.id, 9))


def test_a_reason_is_never_empty():
    with pytest.raises(InvalidInput, match="reason"):
        require_reason("  ")
    assert require_reason("spam") == "spam"
