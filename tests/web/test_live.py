"""Event streams over real sockets: from the store, across processes, resumable, and only what each may see (E6)."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path

import httpx2
import msgspec
import pytest

from tests.support.acting import cancel
from tests.support.envs import (
    make_submission,
    open_test_env,
    put_record,
    run_until_quiet,
    submit_skill,
)
from tests.support.faults import HookedKV
from tests.support.lifetimes import running
from tests.support.patience import NEVER_MS, PATIENCE_S
from tests.support.streams import Events, listening, sealed_cursor, serving, store_cursor
from vskill_core.errors import RateLimited, StoreUnavailable
from vskill_platform.actions.principal import ANYBODY, Viewer
from vskill_platform.domain.submissions.states import State
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.ledger.kv.entries import Put, Settled
from vskill_platform.web.streams.follower import Hub
from vskill_platform.web.streams.live import Skills, Submissions, submission_event
from vskill_platform.web.streams.stream import DEFAULT_LIMITS, StreamLimits, Subscription
from vskill_platform.worker_context import Env

pytestmark = pytest.mark.anyio

STREAM = "/api/v1/submissions/stream"
SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
async def env(tmp_path):
    async with open_test_env("sqlite", tmp_path, clock=SystemClock()) as opened:
        yield opened


async def test_a_change_is_told_with_its_cursor(env: Env):
    async with serving(env) as address, listening(address + STREAM) as events:
        assert events.response.headers["content-type"].startswith("text/event-stream")
        assert events.response.headers["cache-control"] == "no-store"
        began = await events.until_connected()
        position = await store_cursor(env, began)
        assert (position, events.retry_ms) == (await env.kv.change_cursor(), 2000)
        submitted = await submit_skill("told")
        frame = await events.next()
        assert submitted.submission is not None
        assert (frame.event, frame.data["id"], frame.data["state"]) == (
            "submission",
            submitted.submission.id,
            "RECEIVED",
        )
        assert int(await store_cursor(env, frame.id)) > int(position)
        await run_until_quiet(env)
        decided = await events.next("submission_decision")
        assert (decided.data["state"], decided.data["category"]) == ("PUBLISHED", "published")
        assert decided.data["publishedSkill"] == "upload~tests/skills/told"


@contextmanager
def web_process(data_dir: Path, **variables: str):
    """`serve --web-only` as a process of its own."""
    environment = {
        **os.environ,
        **variables,
        "PYTHONPATH": str(SOURCE),
        "VSKILL_DATA_DIR": str(data_dir),
        "VSKILL_STORE": f"sqlite:{data_dir / 'vskill.db'}",
        "PYTHONUNBUFFERED": "1",
    }
    command = [sys.executable, "-m", "vskill_platform", "serve", "--web-only", "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with running(command, env=environment, **pipes) as process:
        assert process.stdout is not None
        address = next(line.split()[2] for line in process.stdout if "Address" in line)
        yield process, address


@pytest.mark.slow
async def test_E6_an_event_reaches_the_clients_of_every_process(tmp_path: Path):
    """Two servers on one file: what a third process writes is told by both."""
    async with open_test_env("sqlite", tmp_path, clock=SystemClock()) as env:
        with web_process(tmp_path) as (_, one), web_process(tmp_path) as (_, two):
            async with listening(one + STREAM) as first, listening(two + STREAM) as second:
                await first.until_connected()
                await second.until_connected()
                submitted = (await submit_skill("everywhere")).submission
                assert submitted is not None
                told = [await first.next(), await second.next()]
                assert {frame.data["id"] for frame in told} == {submitted.id}
                assert told[0].id == told[1].id
                await cancel(submitted.id, by="user:ann", reason="never mind")
                assert [(await one.next("submission_decision")).data["state"] for one in (first, second)] == [
                    "DEQUEUED",
                    "DEQUEUED",
                ]
    assert env.kv.engine == "sqlite"


@pytest.mark.slow
async def test_E6_a_stream_holds_up_no_stop_and_its_client_resumes_without_loss(tmp_path: Path):
    """The server is stopped by a signal while streams are open: it ends at once. What happens while it is away is
    told to the client that comes back, once."""
    async with open_test_env("sqlite", tmp_path, clock=SystemClock()):
        with web_process(tmp_path, VSKILL_SHUTDOWN_GRACE_MS=str(NEVER_MS)) as (process, address):
            async with listening(address + STREAM) as events:
                await events.until_connected()
                before = (await submit_skill("before")).submission
                assert before is not None
                seen = await events.next()
                process.terminate()
                assert await events.ended()
            assert await asyncio.to_thread(process.wait, PATIENCE_S) == 0
        missed = [(await submit_skill(f"meanwhile-{number}")).submission for number in range(3)]
        with web_process(tmp_path) as (_, address):
            async with listening(address + STREAM, {"last-event-id": seen.id}) as events:
                told = [await events.next() for _ in range(3)]
                assert [frame.data["id"] for frame in told] == [one.id for one in missed if one]
                live = (await submit_skill("live")).submission
                assert live is not None
                assert (await events.next()).data["id"] == live.id, "and nothing twice"


async def test_the_cursor_of_the_first_paint_can_stand_in_the_address(env: Env):
    """A page that was just loaded misses nothing that happened before its stream was open."""
    painted = await sealed_cursor(env, await env.kv.change_cursor())
    submitted = (await submit_skill("in-between")).submission
    assert submitted is not None
    async with serving(env) as address, listening(f"{address}{STREAM}?after={painted}") as events:
        assert (await events.next()).data["id"] == submitted.id


@pytest.mark.parametrize("cursor", ["0", "999999999", "not-a-cursor"], ids=["old", "future", "nonsense"])
async def test_a_cursor_that_is_not_kept_is_answered_with_a_reset(env: Env, cursor: str):
    """The page loads itself again, and the stream goes on from now."""
    await submit_skill("old")
    await env.kv.sweep(changes_before=env.kv.now() + 1)
    await submit_skill("newer")
    if cursor.isdigit():
        cursor = await sealed_cursor(env, cursor)
    async with serving(env) as address, listening(address + STREAM, {"last-event-id": cursor}) as events:
        reset = await events.next()
        assert reset.event == "reset"
        assert await store_cursor(env, reset.id) == await env.kv.change_cursor()
        live = (await submit_skill("after")).submission
        assert live is not None
        assert (await events.next()).data["id"] == live.id


class OnceBrokenKV(HookedKV):
    """A store whose next bulk read breaks in a way that nobody foresaw."""

    broken = True

    async def get_many(self, keys: Iterable[str]) -> Settled:
        if self.broken:
            self.broken = False
            raise ValueError("planted")
        return await super().get_many(keys)


async def test_changes_that_cannot_be_told_are_passed_over_with_a_reset(env: Env):
    """Whatever is wrong with one batch, every page loads itself again and what comes after it is told."""
    once_broken = msgspec.structs.replace(env, kv=OnceBrokenKV(env.kv))
    async with serving(once_broken) as address, listening(address + STREAM) as events:
        await events.until_connected()
        await submit_skill("poison")
        assert (await events.next()).event == "reset"
        after = (await submit_skill("after")).submission
        assert after is not None
        assert (await events.next()).data["id"] == after.id


async def test_who_missed_too_much_is_told_to_load_again(env: Env):
    start = await sealed_cursor(env, await env.kv.change_cursor())
    for number in range(6):
        await put_record(env, make_submission(f"many-{number}", at=env.kv.now()))
    async with (
        serving(env, limits=StreamLimits(most_replayed=5)) as address,
        listening(address + STREAM, {"last-event-id": start}) as events,
    ):
        assert (await events.next()).event == "reset"


async def test_a_client_that_joins_during_a_storm_misses_nothing(env: Env):
    """Replay and live meet: every change after the cursor is told, whichever side tells it."""
    start = await sealed_cursor(env, await env.kv.change_cursor())
    ids = [make_submission(f"storm-{number}", at=env.kv.now()) for number in range(120)]

    async def storm() -> None:
        for record in ids:
            await put_record(env, record)

    async with serving(env) as address, listening(address + STREAM):
        writing = asyncio.create_task(storm())
        await asyncio.sleep(0.02)
        async with listening(address + STREAM, {"last-event-id": start}) as events:
            told: set[str] = set()
            while len(told) < len(ids):
                told.add((await events.next()).data["id"])
        await writing
    assert told == {record.id for record in ids}


async def test_several_changes_of_one_record_are_told_as_what_it_is_now(env: Env):
    start = await sealed_cursor(env, await env.kv.change_cursor())
    submitted = (await submit_skill("moved")).submission
    assert submitted is not None
    await cancel(submitted.id, by="user:ann", reason="never mind")
    async with serving(env) as address, listening(f"{address}{STREAM}?after={start}") as events:
        first, second = await events.next(), await events.next()
        assert (first.event, second.event) == ("submission", "submission_decision")
        assert first.data == second.data
        assert first.data["state"] == "DEQUEUED"
        positions = [int(await store_cursor(env, frame.id)) for frame in (first, second)]
        assert positions[0] < positions[1], "a break between the two loses neither"


# Who sees what.


async def test_E6_nobody_else_learns_who_submitted(env: Env):
    """Neither the stream, nor its replay, nor a skill's stream holds the submitter's name."""
    start = await sealed_cursor(env, await env.kv.change_cursor())
    await submit_skill("private", submitter="ann@example.org")
    await run_until_quiet(env)
    async with serving(env) as address:
        for path in (STREAM, "/api/v1/skills/stream"):
            async with listening(f"{address}{path}?after={start}") as events:
                frame = await events.next("submission_decision")
                assert "ann" not in json.dumps(frame.data)
                assert "claim" not in frame.data and "token" not in json.dumps(frame.data)


def test_E6_the_submitter_and_reviewers_may_know():
    record = make_submission("private", submitter="ann@example.org")
    assert "submitter" not in submission_event(record, Viewer())
    assert "submitter" not in submission_event(record, Viewer("bob"))
    assert submission_event(record, Viewer("ann@example.org"))["submitter"] == "ann@example.org"
    assert submission_event(record, Viewer("eve", reviewer=True))["submitter"] == "ann@example.org"


def test_actors_are_named_only_to_those_who_may_know():
    assert Viewer().actor("user:ann@example.org") == "its submitter"
    assert Viewer().actor("admin:eve") == "a reviewer"
    assert Viewer().actor("worker:host-1-ab") == "a worker"
    assert Viewer().actor("system") == "system"
    assert Viewer("ann").actor("user:ann") == "user:ann"
    assert Viewer("ann").actor("user:bob") == "its submitter"
    assert Viewer("eve", reviewer=True).actor("worker:host-1-ab") == "worker:host-1-ab"


async def test_ones_own_needs_an_account(env: Env):
    async with serving(env) as address, httpx2.AsyncClient() as client:
        assert (await client.get(f"{address}{STREAM}?mine=true")).status_code == 401


async def test_E4_an_unknown_parameter_is_refused(env: Env):
    async with serving(env) as address, httpx2.AsyncClient() as client:
        answer = await client.get(f"{address}{STREAM}?skill=x")
        assert answer.status_code == 400
        assert "skill" in answer.json()["detail"]


async def test_only_the_asked_ids_are_told(env: Env):
    async with serving(env) as address:
        wanted = make_submission("wanted", at=env.kv.now())
        async with listening(f"{address}{STREAM}?ids={wanted.id}") as events:
            await events.until_connected()
            await put_record(env, make_submission("other", at=env.kv.now()))
            await put_record(env, wanted)
            assert (await events.next()).data["id"] == wanted.id


async def test_a_skills_stream_has_plain_messages_for_the_skills_asked_for(env: Env):
    async with (
        serving(env) as address,
        listening(f"{address}/api/v1/skills/stream?skills=upload~tests/skills/wanted") as events,
    ):
        await events.until_connected()
        await submit_skill("unwanted")
        await submit_skill("wanted")
        await run_until_quiet(env)
        frames = [await events.next(), await events.next()]
        by_event = {frame.event: frame.data for frame in frames}
        assert by_event["message"]["type"] == "skill.updated"
        assert by_event["message"]["skillId"] == "upload~tests/skills/wanted"
        assert by_event["message"]["version"] == "1.0.0"
        assert by_event["submission_decision"]["skillName"] == "wanted"


# Limits, slowness, failures.


async def test_an_address_has_a_limit_of_streams(tmp_path: Path):
    async with (
        open_test_env("sqlite", tmp_path, clock=SystemClock(), max_streams_per_address=2) as env,
        serving(env) as address,
        listening(address + STREAM) as first,
        httpx2.AsyncClient() as client,
    ):
        async with listening(address + STREAM) as second:
            await first.until_connected()
            await second.until_connected()
            refused = await client.get(address + STREAM)
            assert refused.status_code == 429
            assert "2 open streams" in refused.json()["detail"]
        for _ in range(100):
            if env.metrics.streams_open._value.get() == 1:
                break
            await asyncio.sleep(0.05)
        async with listening(address + STREAM) as third:
            assert await third.until_connected()


async def test_a_head_request_is_answered_at_once(env: Env):
    async with serving(env) as address, httpx2.AsyncClient() as client:
        answer = await client.head(address + STREAM)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")


async def test_heartbeats_keep_a_stream_open_and_move_its_cursor(env: Env):
    async with (
        serving(env, limits=StreamLimits(heartbeat_s=0.1)) as address,
        listening(f"{address}{STREAM}?ids=none") as events,
    ):
        began = await events.until_connected()
        await submit_skill("elsewhere")
        for _ in range(50):
            await events.until_connected()
            if await store_cursor(env, events.last_id) != await store_cursor(env, began):
                break
        assert await store_cursor(env, events.last_id) == await env.kv.change_cursor()


async def test_a_store_that_fails_is_told_and_nothing_is_lost(env: Env):
    """E9: the stream stays open, says that the store is unreachable, and catches up when it is back."""
    kv = HookedKV(env.kv)
    changed = msgspec.structs.replace(env, kv=kv)
    async with (
        serving(changed, limits=StreamLimits(pause_s=0.05)) as address,
        listening(address + STREAM) as events,
    ):
        await events.until_connected()
        kv.failing = {"get_many"}
        submitted = (await submit_skill("during")).submission
        assert submitted is not None
        assert (await events.next()).data == {"store": "unreachable"}
        kv.failing = set()
        assert (await events.next()).data["id"] == submitted.id
        assert (await events.next()).data == {"store": "reachable"}


async def test_C4_a_stream_cannot_be_opened_without_the_store(env: Env):
    kv = HookedKV(env.kv)
    kv.failing = {"change_cursor"}
    async with (
        serving(msgspec.structs.replace(env, kv=kv)) as address,
        httpx2.AsyncClient() as client,
    ):
        answer = await client.get(address + STREAM)
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0


async def test_what_waits_for_a_slow_client_is_bounded():
    stream = Subscription("here", ANYBODY, Submissions(Viewer()))
    chunk = b"x" * 1000
    pushed = 0
    while stream.push(chunk):
        pushed += 1
    assert pushed * len(chunk) <= DEFAULT_LIMITS.most_waiting_bytes
    stream.drop()
    assert await stream.next() is None


@pytest.mark.slow
async def test_a_slow_client_is_dropped_and_nobody_else(env: Env):
    """It reads nothing while much is told: it is let go; one that reads gets everything."""
    limits = StreamLimits(most_waiting_bytes=20_000, gather_s=0.0)
    async with serving(env, limits=limits) as address, listening(address + STREAM) as reader:
        await reader.until_connected()
        host, port = address.removeprefix("http://").split(":")
        slow = await asyncio.open_connection(host, int(port), limit=1024)
        slow[1].get_extra_info("socket").setsockopt(1, 8, 2048)
        slow[1].write(f"GET {STREAM} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        dropped = env.metrics.registry
        for number in range(4000):
            records = [
                make_submission(f"n-{number}-{part}", at=env.kv.now(), declared_name="x" * 500)
                for part in range(20)
            ]
            await env.kv.commit([Put(one.key, msgspec.json.encode(one)) for one in records])
            # Nothing more comes before it has read this, so on no machine is it the slow one.
            await _read(reader, {one.id for one in records})
            if dropped.get_sample_value("vskill_streams_dropped_total"):
                break
        assert dropped.get_sample_value("vskill_streams_dropped_total") == 1
        slow[1].close()


async def _read(events: Events, ids: set[str]) -> None:
    """Until all of these were told."""
    while ids:
        ids.discard((await events.next()).data.get("id"))


async def test_the_follower_runs_only_while_somebody_watches(env: Env):
    hub = Hub(env)
    stream = await hub.join("here", ANYBODY, Skills(Viewer()), None)
    assert (len(hub._streams), len(hub._tasks)) == (1, 2)
    hub.leave(stream)
    assert (len(hub._streams), hub._tasks) == (0, ())


async def test_a_join_that_fails_leaves_nothing_behind(env: Env):
    kv = HookedKV(env.kv)
    kv.failing = {"change_cursor"}
    hub = Hub(msgspec.structs.replace(env, kv=kv))
    with pytest.raises(StoreUnavailable):
        await hub.join("here", ANYBODY, Skills(Viewer()), None)
    kv.failing = set()
    limited = Hub(
        msgspec.structs.replace(
            env, settings=msgspec.structs.replace(env.settings, max_streams_per_address=1)
        )
    )
    stream = await limited.join("here", ANYBODY, Skills(Viewer()), None)
    with pytest.raises(RateLimited):
        await limited.join("here", ANYBODY, Skills(Viewer()), None)
    other = await limited.join("elsewhere", ANYBODY, Skills(Viewer()), None)
    limited.close()
    assert [await one.next() is not None for one in (stream, other)] == [True, True]
    assert [await one.next() for one in (stream, other)] == [None, None]


async def test_C14_every_state_is_told(env: Env):
    """Live updates forget no state: a record in each of them comes over the stream."""
    async with serving(env) as address, listening(address + STREAM) as events:
        await events.until_connected()
        for state in State:
            await put_record(env, make_submission(state.lower(), state=state, at=env.kv.now()))
        told: dict[str, str] = {}
        while len(told) < len(State):
            frame = await events.next("submission")
            told[frame.data["state"]] = frame.data["category"]
    assert set(told) == {state.value for state in State}


async def test_requests_are_answered_while_streams_are_open(env: Env):
    async with serving(env) as address, listening(address + STREAM) as events, httpx2.AsyncClient() as client:
        await events.until_connected()
        assert (await client.get(f"{address}/healthz")).status_code == 200
        text = (await client.get(f"{address}/metrics")).text
        assert "vskill_streams_open 1.0" in text


def test_every_event_is_documented():
    """docs/reference/events.md names each event and each member that a stream sends."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "events.md").read_text("utf-8")
    record = make_submission("told", submitter="ann")
    members = submission_event(record, Viewer("ann"))
    events = ("submission", "submission_decision", "row", "counts", "reset", "status", "skill.updated")
    for name in (*members, *events):
        assert f"`{name}`" in page, name
