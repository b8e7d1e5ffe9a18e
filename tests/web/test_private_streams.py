"""Streams ask again who may read at every batch: a reader who loses a right gets nothing of what is committed after it,
live or by coming back with an old cursor, and the cursor itself tells nothing."""

import json

import msgspec
import pytest

from tests.support.acting import create_token, revoke_own_token, set_disabled, set_role
from tests.support.envs import make_submission, open_test_env, put_record
from tests.support.faults import HookedKV
from tests.support.namespaces import manage
from tests.support.streams import Events, listening, sealed_cursor, serving, store_cursor
from vskill_core.errors import InvalidInput
from vskill_core.identity import normalise
from vskill_platform.actions.principal import ANYBODY, Principal, Viewer
from vskill_platform.domain.people.namespace import Visibility
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.store.people.accounts import Role, create_user
from vskill_platform.web.streams.follower import Hub
from vskill_platform.web.streams.live import Submissions
from vskill_platform.web.streams.stream import MOST_CURSOR, Cursors
from vskill_platform.worker_context import Env

pytestmark = pytest.mark.anyio

STREAM = "/api/v1/submissions/stream"


@pytest.fixture
async def env(tmp_path):
    async with open_test_env("sqlite", tmp_path, clock=SystemClock(), rate_limits="off") as opened:
        await manage(opened, "acme", Visibility.TEAM, "user:ann")
        yield opened


async def reader(name: str, role: Role = Role.AUTHOR) -> tuple[dict[str, str], str]:
    """A new account's header, and the id of its token."""
    await create_user(name, role, by="system", reason="a test")
    scopes = ["read", *(["review"] if role is Role.REVIEWER else [])]
    made = await create_token(name, "test", scopes, by="system")
    return {"authorization": f"Bearer {made.secret}"}, made.token.id


def hidden(name: str, env: Env, **changes) -> Submission:
    place = normalise("https://github.com/acme/tools", name)
    return make_submission(name, identity=place, at=env.kv.now(), audience="ns:acme", **changes)


def shown(name: str, env: Env, **changes) -> Submission:
    return make_submission(name, at=env.kv.now(), **changes)


async def names_until(events: Events, last: str) -> list[str]:
    """The skills that are told, up to one."""
    told: list[str] = []
    while last not in told:
        frame = await events.next("submission")
        told.append(frame.data["skillName"])
    return told


async def test_a_stream_holds_only_what_its_reader_may_read(env: Env):
    ann, _ = await reader("ann")
    bob, _ = await reader("bob")
    eve, _ = await reader("eve", Role.REVIEWER)
    canary, told = hidden("canary", env), shown("open", env)
    async with serving(env) as address:
        for path in (STREAM, f"{STREAM}?ids={canary.id},{told.id}", "/queue/live"):
            for headers, expected in (({}, False), (bob, False), (ann, True), (eve, True)):
                async with listening(address + path, headers) as events:
                    await events.until_connected()
                    await put_record(env, canary)
                    await put_record(env, told)
                    seen = ""
                    while told.id not in seen:
                        seen += json.dumps((await events.next()).data)
                    assert (canary.id in seen) is expected, path


async def test_a_reader_who_loses_the_namespace_gets_nothing_that_comes_after(env: Env):
    ann, _ = await reader("ann")
    async with serving(env) as address, listening(address + STREAM, ann) as events:
        await events.until_connected()
        await put_record(env, hidden("before", env))
        assert await names_until(events, "before") == ["before"]
        old = events.last_id
        await manage(env, "acme", Visibility.TEAM)
        await put_record(env, hidden("canary", env))
        await put_record(env, shown("open", env))
        told = [await events.next()]
        while told[-1].event != "submission":
            told.append(await events.next())
        assert told[0].event == "reset"
        assert "canary" not in json.dumps([one.data for one in told])
        async with listening(address + STREAM, {**ann, "last-event-id": old}) as again:
            assert await names_until(again, "open") == ["open"], "nor with the cursor from before"


async def test_who_wins_a_right_is_told_to_load_again_and_then_everything(env: Env):
    bob, _ = await reader("bob")
    async with serving(env) as address, listening(address + STREAM, bob) as events:
        await events.until_connected()
        await manage(env, "acme", Visibility.TEAM, "user:bob")
        assert (await events.next()).event == "reset"
        await put_record(env, hidden("canary", env))
        assert await names_until(events, "canary") == ["canary"]


class FlippingKV(HookedKV):
    """Takes the namespace from its members, and changes a hidden record, just before a batch's records are read."""

    def __init__(self, inner, env: Env) -> None:
        super().__init__(inner)
        self._env = env
        self.armed = False

    async def get_many(self, keys):
        wanted = tuple(keys)
        if self.armed and any(key.startswith("sub:") for key in wanted):
            self.armed = False
            await manage(self._env, "acme", Visibility.TEAM)
            await put_record(self._env, hidden("before", self._env, declared_name="canary"))
        return await super().get_many(wanted)


async def test_a_flip_in_the_middle_of_a_batch_is_obeyed(env: Env):
    """The change was committed while ann could read it, and is read after she could not."""
    ann, _ = await reader("ann")
    kv = FlippingKV(env.kv, env)
    async with serving(msgspec.structs.replace(env, kv=kv)) as address:
        async with listening(address + STREAM, ann) as events:
            await events.until_connected()
            kv.armed = True
            await put_record(env, hidden("before", env))
            await put_record(env, shown("open", env))
            told = [await events.next()]
            while told[-1].event != "submission":
                told.append(await events.next())
        assert not kv.armed
        assert "before" not in json.dumps([one.data for one in told])


@pytest.mark.parametrize("how", ["disabled", "revoked", "demoted"])
async def test_a_stream_ends_when_its_account_or_token_is_not_what_it_was(env: Env, how: str):
    eve, token_id = await reader("eve", Role.REVIEWER)
    async with serving(env) as address, listening(address + STREAM, eve) as events:
        await events.until_connected()
        await put_record(env, hidden("before", env))
        assert await names_until(events, "before") == ["before"]
        if how == "disabled":
            await set_disabled("eve", disabled=True, by="system", reason="a test")
        elif how == "revoked":
            await revoke_own_token("eve", token_id)
        else:
            await set_role("eve", Role.AUTHOR, by="system", reason="a test")
        await put_record(env, hidden("canary", env))
        assert "canary" not in json.dumps([frame.data for frame in await events.rest()])


async def test_counts_are_of_what_the_reader_may_read_and_are_not_told_for_the_rest(env: Env):
    ann, _ = await reader("ann")
    async with (
        serving(env) as address,
        listening(address + "/queue/live") as nobody,
        listening(address + "/queue/live", ann) as member,
    ):
        await nobody.until_connected()
        await member.until_connected()
        await put_record(env, shown("first", env))
        assert (await nobody.next("counts")).data["all"] == 1
        assert (await member.next("counts")).data["all"] == 1
        await put_record(env, hidden("canary", env))
        assert (await member.next("counts")).data["all"] == 2
        await put_record(env, shown("second", env, state=State.NEEDS_REVIEW))
        row = await nobody.next()
        assert (row.event, "second" in row.data["html"]) == ("row", True), "nothing came in between"
        assert (await nobody.next("counts")).data["all"] == 2


async def test_a_record_that_no_stream_may_read_is_not_decoded(env: Env):
    """One that cannot be decoded would be reported."""
    async with serving(env) as address, listening(address + STREAM) as events:
        await events.until_connected()
        await env.kv.put(hidden("canary", env).key, b'{"audience":"ns:acme","id":7}')
        await put_record(env, shown("open", env))
        assert await names_until(events, "open") == ["open"]
        skipped = env.metrics.registry.get_sample_value
        labels = {"operation": "live", "reason": "malformed"}
        assert skipped("vskill_records_skipped_total", labels) is None
        ann, _ = await reader("ann")
        async with listening(address + STREAM, ann) as member:
            await member.until_connected()
            await env.kv.put(hidden("canary", env).key, b'{"audience":"ns:acme","id":8}')
            await put_record(env, shown("open", env))
            assert await names_until(member, "open") == ["open"]
        assert skipped("vskill_records_skipped_total", labels) == 1


class CountedChannel(msgspec.Struct, frozen=True):
    """A channel that notes what it was asked to write."""

    written: list = msgspec.field(default_factory=list)
    shows_counts: bool = False

    def write(self, batch) -> bytes:
        self.written.append(batch)
        return b"x"

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CountedChannel)


async def test_equal_channels_of_readers_with_equal_audiences_share_their_bytes(env: Env):
    hub, channel = Hub(env), CountedChannel()
    await manage(env, "inner", Visibility.INTERNAL)
    readers = [ANYBODY, ANYBODY, Principal("bob", Role.AUTHOR), Principal("ann", Role.AUTHOR)]
    streams = [await hub.join(str(number), who, channel, None) for number, who in enumerate(readers)]
    for stream in streams:
        assert b"connected" in (await stream.next() or b"")
    channel.written.clear()
    await put_record(env, hidden("canary", env))
    assert await streams[3].next() == b"x"
    assert len(channel.written) == 3, "nobody, an account and a member"
    assert sorted(len(batch.updates) for batch in channel.written) == [0, 0, 1]
    hub.close()


# Cursors.


async def test_a_cursor_tells_nothing_and_can_be_given_back(env: Env):
    position = await env.kv.change_cursor()
    first, second = [await sealed_cursor(env, position) for _ in range(2)]
    assert first != second, "nor whether anything was written in between"
    assert await store_cursor(env, first) == await store_cursor(env, second) == position
    assert len(first) == len(await sealed_cursor(env, "1" * 40)) <= MOST_CURSOR
    async with serving(env) as address, listening(address + STREAM) as events:
        await events.until_connected()
        await put_record(env, shown("open", env))
        seen = (await events.next()).id
        async with listening(address + STREAM, {"last-event-id": first}) as again:
            assert (await again.next()).id == seen, "an event has one id, whichever stream tells it"


def test_a_cursor_of_another_registry_is_none():
    own, other = Cursors(b"a" * 64), Cursors(b"b" * 64)
    for foreign in (other.of_now("7"), other.of_event("7"), "7", "", "é", own.of_event("7")[:-3] + "AAA"):
        with pytest.raises(InvalidInput):
            own.position(foreign)


async def test_a_store_that_cannot_be_written_is_followed_all_the_same(env: Env):
    kv = HookedKV(env.kv)
    kv.failing = {"commit"}
    hub = Hub(msgspec.structs.replace(env, kv=kv))
    stream = await hub.join("here", ANYBODY, Submissions(Viewer()), None)
    assert b"connected" in (await stream.next() or b"")
    hub.close()
