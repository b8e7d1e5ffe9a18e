"""Every decision reaches whoever subscribed, signed, once to a receiver that answers, and never inside our network."""

import asyncio
import base64
import hashlib
import hmac
import json

import pytest

from tests.support.acting import take_down
from tests.support.envs import active_env, open_test_env, run_until_quiet
from tests.support.faults import HookedKV, dying_once
from tests.support.plugins import files_of, hooks, manifest
from tests.support.receiver import receiver
from tests.support.skills import skill_files
from tests.support.system_reads import get_submission
from vskill_core.errors import InvalidInput, NotFound, SourceUnavailable
from vskill_platform.domain.operation.task import TaskState
from vskill_platform.domain.submissions.states import State
from vskill_platform.intake.submit import submit_upload
from vskill_platform.notifications.deliveries import DELIVERY, find_notices, find_recalls
from vskill_platform.notifications.notices import NoticeType, notices_of
from vskill_platform.notifications.post import check_url, post
from vskill_platform.notifications.signature import new_secret, sign
from vskill_platform.notifications.subscriptions import subscribe
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.tasks import read_task
from vskill_platform.store.telling.webhooks import MOST_WEBHOOKS, add_webhook, list_webhooks, remove_webhook

pytestmark = pytest.mark.anyio

ALL = tuple(kind.value for kind in NoticeType)


@pytest.fixture
def inbox():
    with receiver() as state:
        yield state


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path, inbox):
    async with open_test_env(request.param, tmp_path, allowed_private_hosts=(inbox.address,)) as env:
        yield env


async def published(env, slug: str = "demo", body: str = ""):
    submitted = await submit_upload(skill_files(slug, body), namespace="tests", slug=slug)
    assert submitted.submission is not None
    await run_until_quiet(env)
    record = await get_submission(submitted.submission.id)
    assert record.state is State.PUBLISHED
    return record


async def look_and_deliver(env, cursor: str | None) -> str:
    after = await find_notices(cursor)
    await run_until_quiet(env)
    return after


async def test_a_decision_is_delivered_signed_and_once(env, inbox):
    secret = new_secret()
    await add_webhook(inbox.url, secret, ALL, by="admin:me")
    cursor = await find_notices(None)
    record = await published(env)
    after = await look_and_deliver(env, cursor)
    await look_and_deliver(env, cursor)
    assert after != cursor
    kinds = sorted(json.loads(body)["type"] for _, body in inbox.posts)
    assert kinds == ["skill.published", "submission.decided"]
    headers, body = inbox.posts[0]
    notice = json.loads(body)
    assert notice["data"]["submissionId"] == record.id
    assert notice["data"]["skill"] == "upload~tests/skills/demo" and notice["data"]["version"] == "1.0.0"
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert headers["webhook-id"] == notice["id"]
    assert headers["host"] == inbox.address


async def test_a_plugin_is_told_of_as_a_skill_is(env, inbox):
    """Also that its update gained a hook, and waits."""
    await add_webhook(inbox.url, new_secret(), ALL, by="admin:me")
    cursor, serial = await find_notices(None), await find_recalls(None)
    files = {"plugin.json": manifest("kit"), "skills/a/SKILL.md": skill_files("a")[0].data}
    for more in ({}, {"hooks/hooks.json": hooks()}):
        await submit_upload(files_of({**files, **more}), namespace="tests", slug="kit")
        await run_until_quiet(env)
    await take_down("upload~tests/skills/kit", by="admin:me", reason="it steals")
    await find_recalls(serial)
    await look_and_deliver(env, cursor)
    told = {one["type"]: one["data"] for one in (json.loads(body) for _, body in inbox.posts)}
    assert set(told) == {"skill.published", "submission.decided", "review.waiting", "skill.withdrawn"}
    assert told["skill.published"]["skill"] == told["skill.withdrawn"]["skill"] == "upload~tests/skills/kit"
    assert "hook" in told["review.waiting"]["reason"]


async def test_only_what_was_asked_for_and_only_from_then_on(env, inbox):
    cursor = await find_notices(None)
    await published(env, "before")
    env.clock.advance(1)
    await add_webhook(inbox.url, new_secret(), ("skill.published",), by="admin:me")
    await published(env, "after")
    await look_and_deliver(env, cursor)
    (post_,) = inbox.posts
    assert json.loads(post_[1])["data"]["skillName"] == "after"


async def test_a_decision_of_a_run_that_has_been_followed_by_another_is_delivered_too(env, inbox):
    await add_webhook(inbox.url, new_secret(), ("submission.decided",), by="admin:me")
    cursor = await find_notices(None)
    await published(env, body="one")
    await published(env, body="two")
    await look_and_deliver(env, cursor)
    assert sorted(json.loads(body)["data"]["run"] for _, body in inbox.posts) == [1, 2]


async def test_a_receiver_that_fails_is_tried_again_and_410_ends_it(env, inbox):
    hook = await add_webhook(inbox.url, new_secret(), ("submission.decided",), by="admin:me")
    cursor = await find_notices(None)
    record = await published(env)
    inbox.statuses = [500, 302, 200]
    await look_and_deliver(env, cursor)
    (notice, _) = tuple(notices_of(record))
    task, _ = await read_task(DELIVERY, f"{hook.id}:{notice.id}")
    assert task is not None and task.state is TaskState.ACTIVE and "500" in task.outcome
    for delay in (5_000, 300_000):
        env.clock.advance(delay)
        await run_until_quiet(env)
    task, _ = await read_task(DELIVERY, f"{hook.id}:{notice.id}")
    assert task is not None and (task.state, task.outcome) == (TaskState.DONE, "delivered: 200")
    inbox.statuses = [410]
    await submit_upload(skill_files("other"), namespace="tests", slug="other")
    await run_until_quiet(env)
    await look_and_deliver(env, await find_notices(cursor))
    assert len(inbox.posts) == 4


async def test_a_webhook_that_was_removed_gets_nothing_more(env, inbox):
    hook = await add_webhook(inbox.url, new_secret(), ALL, by="admin:me")
    cursor = await find_notices(None)
    await published(env)
    await find_notices(cursor)
    await remove_webhook(hook.id, by="admin:me")
    await run_until_quiet(env)
    assert inbox.posts == []
    assert await list_webhooks() == []
    with pytest.raises(NotFound):
        await remove_webhook(hook.id, by="admin:me")


async def test_a_receiver_that_is_down_is_waited_for(env, inbox):
    gone = "127.0.0.1:9"
    with pytest.raises(SourceUnavailable):
        await post(f"http://{gone}/", b"{}", {}, (gone,))


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "http://localhost/x", "http://[::1]/", "http://169.254.1.1/"]
)
async def test_nothing_is_posted_inside_our_network(env, url):
    with pytest.raises(InvalidInput, match="public"):
        await post(url, b"{}", {})


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/x", "https://localhost/x", "http://10.1.2.3/"])
async def test_a_webhook_inside_our_network_is_refused_when_it_is_added(env, url):
    with pytest.raises(InvalidInput, match="not a public address") as caught:
        await subscribe(url, ALL, by="admin:me")
    assert caught.value.field == "url" and "VSKILL_ALLOWED_PRIVATE_HOSTS" in caught.value.fix
    assert await list_webhooks() == []


async def test_a_host_that_has_no_address_yet_may_be_added(env):
    hook = await subscribe("https://hooks.invalid/x", ALL, by="admin:me")
    assert await list_webhooks() == [hook]


@pytest.mark.parametrize("rule", ["http://{}", "http://{}/", "{}", "127.0.0.1"])
async def test_every_documented_form_of_a_private_host_lets_its_webhook_in(tmp_path, inbox, rule):
    rules = (rule.format(inbox.address),)
    async with open_test_env("memory", tmp_path, allowed_private_hosts=rules) as env:
        cursor = await find_notices(None)
        await subscribe(inbox.url, ("skill.published",), by="admin:me")
        await published(env)
        await look_and_deliver(env, cursor)
    assert len(inbox.posts) == 1


async def test_a_host_in_other_letters_is_the_one_that_is_checked_connected_to_and_named(env, inbox):
    url = inbox.url.replace(".", "\N{IDEOGRAPHIC FULL STOP}")
    assert check_url("https://\N{LATIN SMALL LETTER E WITH ACUTE}.example/x")
    with pytest.raises(InvalidInput, match=r"127\.0\.0\.1 is not a public address"):
        await post(url, b"{}", {})
    assert await post(url, b"{}", {}, (inbox.address,)) == 200
    ((headers, _),) = inbox.posts
    assert headers["host"] == inbox.address


NO_ADDRESSES = [
    "ftp://host/", "https://", "https://user@host/", "file:///etc/passwd", "nonsense", "http://[x", "http://host:x/",
    "http://host:99999/", "http://host:0/", "http://ho st/", "http://host/\x00",
    "https://:pw@example.org/", "https://@host/", "http://host\\@other/", "http://a..b/", f"http://{'a' * 64}.example/",
]  # fmt: skip


@pytest.mark.parametrize("url", NO_ADDRESSES)
def test_what_is_no_address_is_refused(url):
    with pytest.raises(InvalidInput, match="address"):
        check_url(url)


@pytest.mark.parametrize("url", NO_ADDRESSES)
async def test_no_door_takes_what_is_no_address(env, url):
    with pytest.raises(InvalidInput, match="address"):
        await subscribe(url, ALL, by="admin:me")
    assert await list_webhooks() == []


async def test_the_audit_says_who_added_and_who_removed_a_webhook(env, inbox):
    hook = await subscribe(inbox.url, [*ALL, *ALL], by="admin:me")
    await remove_webhook(hook.id, by="admin:you")
    with pytest.raises(NotFound):
        await remove_webhook(hook.id, by="admin:you")
    assert hook.events == ALL and await list_webhooks() == []
    said = [(one.action, one.target, one.by) for one in (await list_audit()).items]
    assert said == [("webhook removed", hook.id, "admin:you"), ("webhook added", hook.id, "admin:me")]


async def test_a_webhook_and_its_audit_are_one_commit(env, inbox):
    hooked = HookedKV(env.kv)
    with active_env(env, kv=hooked):
        hook = await subscribe(inbox.url, ALL, by="admin:me")
        await remove_webhook(hook.id, by="admin:you")
    kinds = [[getattr(one, "key", "").partition(":")[0] for one in commit] for commit in hooked.commits]
    assert kinds == [["webhook", "audit"], ["webhook", "audit"]]


async def test_an_unknown_outcome_adds_one_webhook_whose_secret_is_shown_and_removes_it_once(env, inbox):
    with active_env(env, kv=dying_once(env.kv)):
        hook = await subscribe(inbox.url, ALL, by="admin:me")
    assert await list_webhooks() == [hook]
    with active_env(env, kv=dying_once(env.kv)):
        await remove_webhook(hook.id, by="admin:me")
    assert await list_webhooks() == []
    assert [one.action for one in (await list_audit()).items] == ["webhook removed", "webhook added"]


async def test_webhooks_are_bounded_and_need_an_event(env, inbox):
    with pytest.raises(InvalidInput, match="event"):
        await add_webhook(inbox.url, new_secret(), (), by="admin:me")
    await asyncio.gather(*(add_webhook(inbox.url, new_secret(), ALL, by="x") for _ in range(MOST_WEBHOOKS)))
    with pytest.raises(InvalidInput, match="already"):
        await add_webhook(inbox.url, new_secret(), ALL, by="admin:me")


def test_a_secret_that_is_no_secret_is_refused():
    with pytest.raises(InvalidInput, match="base64"):
        sign("whsec_!!", "id", 1, b"")
