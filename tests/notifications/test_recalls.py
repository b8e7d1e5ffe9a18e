"""What was withdrawn and restored is told to whoever subscribed, by webhook and by stream, and only while they may read
the skill: that is asked when it is delivered."""

import json

import pytest

from tests.support.acting import delete, restore, take_down, yank
from tests.support.envs import open_test_env, run_until_quiet, submit_skill
from tests.support.namespaces import manage
from tests.support.receiver import receiver
from tests.support.streams import listening, serving
from vskill_platform.domain.people.namespace import EVERYTHING, Visibility
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.notifications.deliveries import find_recalls
from vskill_platform.notifications.signature import new_secret
from vskill_platform.store.people.accounts import Role, create_user
from vskill_platform.store.revocations import read_serial
from vskill_platform.store.telling.webhooks import add_webhook

pytestmark = pytest.mark.anyio

DEMO = "upload~ann/skills/demo"
ALL = SubmittedBy("ann", EVERYTHING)
RECALLS = ("skill.withdrawn", "skill.restored", "skill.yanked")


@pytest.fixture
def inbox():
    with receiver() as state:
        yield state


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path, inbox):
    async with open_test_env(request.param, tmp_path, allowed_private_hosts=(inbox.address,)) as opened:
        yield opened


async def publish(env, *bodies: str) -> None:
    for body in bodies:
        await submit_skill("demo", body, namespace="ann", by=ALL)
        await run_until_quiet(env)


async def look_and_deliver(env, serial: int | None) -> int:
    after = await find_recalls(serial)
    await run_until_quiet(env)
    return after


def told(inbox) -> list[tuple[str, list[str], str | None]]:
    bodies = sorted((json.loads(body) for _, body in inbox.posts), key=lambda one: one["data"]["serial"])
    return [
        (one["type"], [each["version"] for each in one["data"]["versions"]], one["data"]["replacement"])
        for one in bodies
    ]


async def test_every_recall_is_delivered_once(env, inbox):
    await add_webhook(inbox.url, new_secret(), RECALLS, by="admin:command line")
    serial = await find_recalls(None)
    await publish(env, "one", "two")
    await yank(DEMO, "1.0.0", account="ann", reason="broken")
    await take_down(DEMO, "1.0.1", by="admin:eve", reason="steals keys")
    await restore(DEMO, "1.0.1", by="admin:eve", reason="a mistake")
    await run_until_quiet(env)
    await delete(DEMO, account="ann", reason="no time")
    after = await look_and_deliver(env, serial)
    assert after == await read_serial()
    await look_and_deliver(env, serial)
    assert told(inbox) == [
        ("skill.yanked", ["1.0.0"], None),
        ("skill.withdrawn", ["1.0.1"], None),
        ("skill.restored", ["1.0.1"], None),
        ("skill.withdrawn", ["1.0.0", "1.0.1"], None),
    ]
    headers, body = inbox.posts[0]
    assert headers["webhook-id"] == json.loads(body)["id"]


async def test_only_what_was_asked_for_and_only_from_then_on(env, inbox):
    await publish(env, "one", "two")
    await yank(DEMO, "1.0.0", account="ann", reason="broken")
    env.clock.advance(1)
    await add_webhook(inbox.url, new_secret(), ("skill.withdrawn",), by="admin:command line")
    await take_down(DEMO, "1.0.0", by="admin:eve", reason="steals keys")
    await look_and_deliver(env, 0)
    assert told(inbox) == [("skill.withdrawn", ["1.0.0"], "1.0.1")]


async def test_whoever_may_not_read_the_skill_any_more_is_not_told(env, inbox):
    """The right is asked for at delivery: it was there when the version was withdrawn."""
    await manage(env, "upload~ann", Visibility.INTERNAL)
    await create_user("zoe", Role.AUTHOR, by="system", reason="a test")
    await add_webhook(inbox.url, new_secret(), RECALLS, by="user:zoe")
    await publish(env, "one", "two")
    serial = await read_serial()
    await take_down(DEMO, "1.0.0", by="admin:eve", reason="steals keys")
    first = await look_and_deliver(env, serial)
    assert len(inbox.posts) == 1
    await take_down(DEMO, "1.0.1", by="admin:eve", reason="steals keys")
    await manage(env, "upload~ann", Visibility.TEAM)
    await look_and_deliver(env, first)
    assert len(inbox.posts) == 1


async def test_a_stream_tells_it_to_those_who_may_read_the_skill(tmp_path):
    async with open_test_env("sqlite", tmp_path, clock=SystemClock(), rate_limits="off") as env:
        await manage(env, "upload~bob", Visibility.TEAM, "user:bob")
        await publish(env, "one", "two")
        async with serving(env) as address, listening(address + "/api/v1/skills/stream") as events:
            await events.until_connected()
            await submit_skill("secret", "one", namespace="bob", by=ALL)
            await run_until_quiet(env)
            await take_down("upload~bob/skills/secret", by="admin:eve", reason="hidden")
            await yank(DEMO, "1.0.0", account="ann", reason="broken")
            frame = await events.next("skill.yanked")
            assert frame.data["skill"] == DEMO
            assert [one["version"] for one in frame.data["versions"]] == ["1.0.0"]
            await take_down(DEMO, "1.0.1", by="admin:eve", reason="steals keys")
            frame = await events.next("skill.withdrawn")
            assert (frame.data["skill"], frame.data["versions"][0]["status"]) == (DEMO, "taken-down")
