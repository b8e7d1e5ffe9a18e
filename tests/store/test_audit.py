"""The audit: every action of a person is accounted for by the same commit that does it, and listed latest first."""

from collections.abc import Awaitable, Callable

import pytest

from tests.support.acting import approve, cancel, reject
from tests.support.envs import (
    active_env,
    make_submission,
    open_test_env,
    put_record,
    run_until_quiet,
    submit_skill,
)
from tests.support.faults import HookedKV
from tests.support.system_reads import get_submission
from vskill_core.errors import Conflict, InvalidInput, NotFound, StoreUnavailable, TransitionError
from vskill_core.findings import Severity
from vskill_platform.domain import keys
from vskill_platform.domain.blocklist import BlockEntry, name_target
from vskill_platform.domain.submissions.states import State
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.ledger.kv.contract import PAGE
from vskill_platform.ledger.kv.entries import Delete
from vskill_platform.store.by_time import newest_keys
from vskill_platform.store.people.audit import (
    MOST_DETAIL,
    MOST_DETAILS,
    MOST_TEXT,
    AuditEntry,
    AuditNote,
    commit_audited,
    list_audit,
    record_audit,
    was_audited,
)
from vskill_platform.store.recall.blocklist import add_block, remove_block
from vskill_platform.store.verdicts.suppressions import add_suppression, remove_suppression

pytestmark = pytest.mark.anyio

HOUR_MS = 3_600_000


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as opened:
        yield opened


async def waiting(env, name: str, state: State):
    record = make_submission(name, state=state, at=env.kv.now(), digest="d" * 64)
    await put_record(env, record)
    return record


async def entries() -> tuple[AuditEntry, ...]:
    return (await list_audit()).items


@pytest.mark.parametrize(
    ("act", "state", "action"),
    [
        (cancel, State.RECEIVED, "cancel"),
        (reject, State.NEEDS_REVIEW, "reject"),
        (approve, State.NEEDS_REVIEW, "approve"),
    ],
)
async def test_what_a_person_does_to_a_submission_is_one_commit_with_its_entry(env, act, state, action):
    record = await waiting(env, "demo", state)
    hooked = HookedKV(env.kv)
    with active_env(env, kv=hooked):
        done = await act(record.id, by="admin:eve", reason="because")
    (entry,) = await entries()
    assert (entry.by, entry.action, entry.target, entry.reason) == ("admin:eve", action, record.id, "because")
    assert entry.id == done.history[-1].id
    assert (entry.details["run"], entry.details["state"]) == ("1", state.value)
    written = [{getattr(one, "key", None) for one in commit} for commit in hooked.commits]
    # That its files are not there is noted in commits of their own.
    (commit,) = [one for one in written if record.key in one]
    assert keys.audit(entry.id) in commit


async def test_what_is_refused_leaves_no_entry(env):
    record = await waiting(env, "demo", State.REJECTED)
    for act in (cancel, approve):
        with pytest.raises(TransitionError):
            await act(record.id, by="admin:eve", reason="because")
    with pytest.raises(InvalidInput):
        await cancel(record.id, by="admin:eve", reason=" ")
    assert await entries() == ()


async def test_blocks_and_suppressions_are_audited(env):
    target = name_target("evil")
    await add_block(BlockEntry(target, Severity.HIGH, "steals keys", "admin:eve", env.kv.now()))
    assert await remove_block(target, by="admin:bob", reason="a mistake")
    await add_suppression("d" * 64, "X-001", by="admin:eve", reason="an example")
    await add_suppression("d" * 64, "X-001", by="admin:eve", reason="an example")
    await remove_suppression("d" * 64, "X-001", by="admin:bob", reason="it was true")
    told = [(one.action, one.target, one.by, one.reason) for one in reversed(await entries())]
    assert told == [
        ("block", "name evil", "admin:eve", "steals keys"),
        ("unblock", "name evil", "admin:bob", "a mistake"),
        ("suppress", "X-001", "admin:eve", "an example"),
        ("unsuppress", "X-001", "admin:bob", "it was true"),
    ]


async def test_lifting_what_is_not_there_leaves_no_entry(env):
    assert not await remove_block(name_target("evil"), by="admin:bob", reason="a mistake")
    assert await entries() == ()


@pytest.mark.parametrize("action", ["block", "unblock", "cancel", "suppress"])
async def test_an_unknown_outcome_is_accounted_for_once(env, action):
    """The commit is applied and the connection dies: the second try finds its own entry."""
    target = name_target("evil")
    entry = BlockEntry(target, Severity.HIGH, "steals keys", "admin:eve", env.kv.now())
    record = await waiting(env, "demo", State.RECEIVED)
    if action == "unblock":
        await add_block(entry)
    before = len(await entries())
    hooked = HookedKV(env.kv)
    left = [1]

    async def die(_operations):
        if left.pop() if left else 0:
            raise StoreUnavailable("the connection died")

    hooked.after_commit = die
    acts: dict[str, Callable[[], Awaitable[object]]] = {
        "block": lambda: add_block(entry),
        "unblock": lambda: remove_block(target, by="admin:bob", reason="a mistake"),
        "cancel": lambda: cancel(record.id, by="admin:eve", reason="because"),
        "suppress": lambda: add_suppression("d" * 64, "X-1", by="admin:eve", reason="false"),
    }
    with active_env(env, kv=hooked):
        assert await acts[action]() is not False
    assert not left
    assert [one.action for one in (await entries())[: len(await entries()) - before]] == [action]


async def test_a_block_by_the_pipeline_is_audited_too(tmp_path):
    async with open_test_env("memory", tmp_path) as env:
        first = (await submit_skill("demo")).submission
        assert first is not None
        digest = first.upload
    async with open_test_env("memory", tmp_path, known_bad_digests=(digest,)) as env:
        record = (await submit_skill("demo")).submission
        assert record is not None
        await run_until_quiet(env)
        assert (await get_submission(record.id)).state is State.BLOCKED
        (entry,) = await entries()
        assert entry.action == "block" and entry.by.startswith("worker:")


async def test_texts_are_cut_and_never_refused(env):
    put = record_audit(
        "note",
        "t" * 5_000,
        by="system",
        reason="r" * 5_000,
        details={f"k{n:03}": "v" * 5_000 for n in range(100)},
    )
    await env.kv.commit(put)
    (entry,) = await entries()
    assert (len(entry.target), len(entry.reason)) == (MOST_DETAIL, MOST_TEXT)
    assert len(entry.details) == MOST_DETAILS and len(entry.details["k000"]) == MOST_DETAIL


async def test_an_entry_is_written_once(env):
    put = record_audit("note", "x", by="system", reason="r", entry_id="0" * 26)
    await env.kv.commit(put)
    assert await was_audited("0" * 26) and not await was_audited("1" * 26)
    with pytest.raises(Conflict):
        await env.kv.commit(put)


# Listing.


async def note(env, text: str) -> None:
    await env.kv.commit(record_audit("note", text, by="system", reason="r"))


async def test_a_busy_hour_is_listed_whole_however_many_pages_the_store_gives(env):
    """More entries within one stretch of time than the store lists at once."""
    texts = [f"n{number:04}" for number in range(PAGE + 20)]
    await env.kv.commit(
        [one for text in texts for one in record_audit("note", text, by="system", reason="r")]
    )
    assert await walked(500) == texts[::-1]


async def walked(limit: int) -> list[str]:
    found, before, pages = [], None, 0
    while True:
        page = await list_audit(before=before, limit=limit)
        assert len(page.items) <= limit
        found += [one.target for one in page.items]
        before, pages = page.before, pages + 1
        assert pages < 50
        if before is None:
            return found


@pytest.mark.parametrize("limit", [1, 3, 7, 100])
async def test_the_latest_come_first_page_by_page_over_years(env, limit):
    """Bursts, gaps and the edges of the stretches that are looked at."""
    wanted = []
    for number, pause in enumerate((0, 0, 1, HOUR_MS, HOUR_MS - 1, 5, 900 * HOUR_MS, 0, 9_000 * HOUR_MS, 2)):
        env.clock.advance(pause)
        await note(env, f"n{number}")
        wanted.append(f"n{number}")
    env.clock.advance(3 * HOUR_MS)
    assert await walked(limit) == wanted[::-1]


async def test_an_empty_list_and_a_foreign_cursor(env):
    assert (await list_audit()).items == ()
    await note(env, "x")
    assert (await list_audit(before="0" * 26)).items == ()
    for cursor in ("", "x", "audit:" + "0" * 26, "u" * 26, "0" * 27):
        with pytest.raises(InvalidInput, match="cursor"):
            await list_audit(before=cursor)


async def test_an_entry_of_a_clock_that_is_ahead_is_listed(env):
    env.clock.advance(10 * HOUR_MS)
    await note(env, "ahead")
    env.clock.advance(-10 * HOUR_MS)
    await note(env, "now")
    assert [one.target for one in await entries()] == ["ahead", "now"]


async def test_a_malformed_entry_is_skipped_and_counted(env):
    await note(env, "x")
    await env.kv.put(keys.audit(SystemClock().new_id()), b"nonsense")
    page = await list_audit()
    assert ([one.target for one in page.items], page.skipped) == (["x"], 1)


async def test_a_failed_read_is_not_an_empty_list(env):
    await note(env, "x")
    hooked = HookedKV(env.kv)
    hooked.failing.add("list")
    with active_env(env, kv=hooked), pytest.raises(StoreUnavailable):
        await list_audit()


async def test_keys_without_a_time_are_reached(env):
    await env.kv.put("report:~odd", b"{}")
    await note(env, "x")
    assert (await newest_keys("report:")).keys == ("report:~odd",)


# A change and its entry.

NOTE = AuditNote("removed", "hook", "admin:eve", "not needed")


def failing_once(env, moment: str) -> HookedKV:
    """The first commit fails before or after it was applied."""
    hooked = HookedKV(env.kv)

    async def fail(_operations):
        setattr(hooked, moment, None)
        raise StoreUnavailable("the connection died")

    setattr(hooked, moment, fail)
    return hooked


@pytest.mark.parametrize("moment", ["before_commit", "after_commit"])
async def test_a_change_with_an_unknown_outcome_is_made_and_accounted_for_once(env, moment):
    """Also where what it would change is no longer there, because it was changed already."""
    await env.kv.put("webhook:hook", b"{}")
    with active_env(env, kv=failing_once(env, moment)) as played:

        async def remove():
            entry = await played.kv.get("webhook:hook")
            if entry is None:
                raise NotFound("There is no such webhook.")
            return "removed", [Delete(entry.key, entry.version)]

        assert await commit_audited(NOTE, remove) == "removed"
        with pytest.raises(NotFound):
            await commit_audited(NOTE, remove)
    assert [one.action for one in await entries()] == ["removed"]


async def test_a_change_that_finds_itself_done_says_what_it_did(env):
    await env.kv.put("webhook:hook", b"{}")
    with active_env(env, kv=failing_once(env, "after_commit")) as played:

        async def remove():
            entry = await played.kv.get("webhook:hook")
            return entry is not None, [] if entry is None else [Delete(entry.key, entry.version)]

        assert await commit_audited(NOTE, remove) is True
        assert await commit_audited(NOTE, remove) is False
    assert len(await entries()) == 1, "nothing is accounted for where nothing is written"


async def test_a_change_without_a_reason_is_refused_before_anything_is_read(env):
    async def decide():
        raise AssertionError

    with pytest.raises(InvalidInput):
        await commit_audited(AuditNote("removed", "hook", "admin:eve", " "), decide)
