"""The reads of the submission store give the same answers and count the same skips on every engine.

AC-US1-02 and AC-US2-02: a malformed record is skipped, counted, and hides no other. What differs between engines is
only the way: an index, a bulk read, or single reads.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence

import pytest

from tests.support.counting_kv import CountingKV
from tests.support.manual_clock import ManualClock
from tests.support.memory_env import memory_env
from tests.support.records import in_state, stored
from vskill_core.errors import InvalidInput
from vskill_platform.domain.people.namespace import Audiences
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import STUCK_THRESHOLD_MS
from vskill_platform.ledger.kv.contract import KV, PAGE
from vskill_platform.ledger.kv.entries import Capability, EntryPage, JoinedPage
from vskill_platform.ledger.kv.query import Condition
from vskill_platform.submission_store import enumerate_published_skills, get_stuck_submissions
from vskill_platform.worker_context import Env, run_with_worker_env

pytestmark = pytest.mark.anyio


def stuck(**changes: object) -> bytes:
    """A record that the report would name, but for what is changed; None leaves a field out."""
    fields = {"id": "sub_x", "state": "RECEIVED", "updated_at": 5, **changes}
    return json.dumps({name: value for name, value in fields.items() if value is not None}).encode()


MALFORMED = {
    "empty": b"",
    "invalid JSON": b"{not json",
    "cut off": stuck()[:-1],
    "not an object": b'["RECEIVED", 5]',
    "null": b"null",
    "nested too deep": b"[" * 3000,
    "deep inside": stuck()[:-1] + b', "more": ' + b"[" * 3000 + b"]" * 3000 + b"}",
    "half a surrogate pair": stuck().replace(b"sub_x", b"\\ud800"),
    "no id": stuck(id=None),
    "id of another type": stuck(id=7),
    "no state": stuck(state=None),
    "state of another type": stuck(state=7),
    "unknown state": stuck(state="WISHED"),
    "unknown state without a time": stuck(state="WISHED", updated_at=None),
    "state with a NUL": stuck(state="RECEIVED\0"),
    "empty state": stuck(state=""),
    "no time": stuck(updated_at=None),
    "time of another type": stuck(updated_at="5"),
    "time that is true": stuck(updated_at=True),
    "time with a fraction": stuck(updated_at=5.5),
    "time beyond 64 bits": stuck(updated_at=-(2**70)),
    "repository of another type": stuck(repo_url=["x"]),
}
#: Not stuck, or not yet, whatever else is wrong with them: the report does not look at these further.
NOT_STUCK = {
    "ended, without an id": stuck(state="PUBLISHED", id=None),
    "ended, without a time": stuck(state="PUBLISHED", updated_at=None),
    "just changed, without an id": stuck(updated_at=2**53, id=None),
}


@pytest.fixture
def env(kv: KV, clock: ManualClock) -> Env:
    return memory_env(clock, kv=kv)


def skipped(env: Env, operation: str) -> float:
    labels = {"operation": operation, "reason": "malformed"}
    return env.metrics.registry.get_sample_value("vskill_records_skipped_total", labels) or 0


async def put_stuck(env: Env, *slugs: str) -> None:
    for slug in slugs:
        record = in_state(State.RECEIVED, slug, env.kv.now() - STUCK_THRESHOLD_MS)
        await env.kv.put(record.key, stored(record))


@pytest.mark.parametrize("kind", MALFORMED)
async def test_AC_US1_02_every_engine_counts_a_malformed_record_once(env: Env, kind: str):
    await put_stuck(env, "one", "two")
    await env.kv.put("sub:sub_odd", MALFORMED[kind])
    found = await run_with_worker_env(env, get_stuck_submissions)
    assert {one.skill_name for one in found} == {"one", "two"}
    assert skipped(env, "get_stuck_submissions") == 1


async def test_AC_US1_02_every_engine_counts_all_malformed_records_together(env: Env):
    await put_stuck(env, "one", "two")
    for number, value in enumerate(MALFORMED.values()):
        await env.kv.put(f"sub:sub_{number}", value)
    assert len(await run_with_worker_env(env, get_stuck_submissions)) == 2
    assert skipped(env, "get_stuck_submissions") == len(MALFORMED)


@pytest.mark.parametrize("kind", NOT_STUCK)
async def test_AC_US1_03_what_is_not_stuck_is_neither_reported_nor_skipped(env: Env, kind: str):
    await put_stuck(env, "one")
    await env.kv.put("sub:sub_odd", NOT_STUCK[kind])
    assert len(await run_with_worker_env(env, get_stuck_submissions)) == 1
    assert skipped(env, "get_stuck_submissions") == 0


@pytest.mark.parametrize("value", [b'{"state": "RECEIVED\0"}', b'{"state": "\xff"}'])
async def test_a_raw_NUL_and_bad_UTF_8_never_become_a_record(env: Env, value: bytes):
    with pytest.raises(InvalidInput):
        await env.kv.put("sub:sub_odd", value)


async def test_more_malformed_records_than_a_page_holds_are_all_counted(env: Env):
    for number in range(PAGE + 5):
        await env.kv.put(f"sub:sub_{number:05}", b"{")
    assert await run_with_worker_env(env, get_stuck_submissions) == []
    assert skipped(env, "get_stuck_submissions") == PAGE + 5


class ReadsCounted(CountingKV):
    """Counts the entries that questions bring back."""

    entries = 0

    async def select(
        self,
        prefix: str,
        *,
        audiences: Audiences,
        where: Mapping[str, Condition] | None = None,
        order_by: str = "key",
        descending: bool = False,
        after: str | None = None,
        limit: int = PAGE,
        under: str = "",
    ) -> EntryPage:
        page = await super().select(
            prefix,
            audiences=audiences,
            where=where,
            order_by=order_by,
            descending=descending,
            after=after,
            limit=limit,
            under=under,
        )
        self.entries += len(page.items)
        return page


async def test_US_001_the_work_does_not_grow_with_what_is_not_stuck(kv: KV, clock: ManualClock):
    """On engines with indexes; the others say that they lack them, and read everything."""
    costs = []
    for round_number in range(2):
        for number in range(40):
            for state in (State.PUBLISHED, State.RECEIVED):
                record = in_state(state, f"{state.lower()}-{round_number}-{number}", kv.now())
                await kv.put(record.key, stored(record))
        counted = ReadsCounted(kv)
        env = memory_env(clock, kv=counted)
        await put_stuck(env, "one")
        await kv.put("sub:sub_odd", b"{")
        counted.calls.clear()
        assert len(await run_with_worker_env(env, get_stuck_submissions)) == 1
        costs.append((counted.entries, counted.total, counted.calls["scan"]))
    indexed = Capability.INDEXES in kv.capabilities
    assert [scans for _, _, scans in costs] == ([0, 0] if indexed else [1, 1])
    assert not indexed or (costs[0] == costs[1] and costs[0][0] == 2)


# Published skills.


class PublishingKV(CountingKV):
    """Commits something just before a page is read for the second time."""

    def __init__(self, inner: KV, published: dict[str, bytes], removed: Sequence[str] = ()) -> None:
        super().__init__(inner)
        self._published, self._removed = published, removed

    async def scan(
        self, prefix: str, *, after: str | None = None, limit: int = PAGE, exclude: Sequence[str] = ()
    ) -> EntryPage:
        for key, value in self._published.items():
            await self._inner.put(key, value)
        for key in self._removed:
            await self._inner.delete(key)
        return await super().scan(prefix, after=after, limit=limit, exclude=exclude)

    async def joined_pages(
        self, prefix: str, *, exclude: Sequence[str] = (), page: int = PAGE
    ) -> AsyncIterator[JoinedPage]:
        async for joined in self._inner.joined_pages(prefix, exclude=exclude, page=page):
            yield joined


@pytest.mark.parametrize(
    ("published", "removed"),
    [(("b1",), ()), (("b1", "b2", "b3", "b4", "b5", "b6", "b7"), ()), ((), ("b",)), (("b1",), ("c",))],
)
async def test_AC_US2_02_a_publication_during_the_second_read_drops_no_skill(
    kv: KV, clock: ManualClock, published: tuple[str, ...], removed: tuple[str, ...]
):
    """A page with a malformed record is read again by its keys: what moved meanwhile pushes nothing out or in twice."""
    before = ("a", "b", "c", "e", "f", "g", "h")
    for slug in before:
        await kv.put(f"skill:o/r/{slug}", b'{"name": "x"}')
    await kv.put("skill:o/r/d", b"{malformed")
    moving = PublishingKV(
        kv,
        {f"skill:o/r/{slug}": b'{"name": "x"}' for slug in published},
        [f"skill:o/r/{slug}" for slug in removed],
    )
    env = memory_env(clock, kv=moving)

    async def slugs() -> list[str]:
        return [one.slug.removeprefix("o/r/") for one in await enumerate_published_skills(page=5)]

    found = await run_with_worker_env(env, slugs)
    assert found == sorted(set(found))
    assert set(before) - set(removed) <= set(found) <= set(before) | set(published)
    assert skipped(env, "enumerate_published_skills") == 1
