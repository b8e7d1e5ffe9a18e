"""Webhooks and mail tell what their account may read when they are sent, not when they were asked for."""

import json
from typing import Any

import pytest

from tests.support.acting import set_disabled, set_role
from tests.support.envs import open_test_env, run_until_quiet, submit_skill
from tests.support.namespaces import manage, set_mode
from tests.support.receiver import receiver
from tests.support.smtp_server import smtp_server
from vskill_platform.domain.people.namespace import EVERYTHING, RegistryMode, Visibility
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.notifications.deliveries import DELIVERY, find_notices
from vskill_platform.notifications.notices import notices_of
from vskill_platform.notifications.signature import new_secret
from vskill_platform.store.people.accounts import Role, create_user
from vskill_platform.store.people.readers import OPERATOR
from vskill_platform.store.tasks import read_task
from vskill_platform.store.telling.notifications import MAIL
from vskill_platform.store.telling.webhooks import Webhook, add_webhook
from vskill_platform.submission_store import get_submission

pytestmark = pytest.mark.anyio

DECIDED = ("submission.decided",)


@pytest.fixture
def inbox():
    with receiver() as state:
        yield state


@pytest.fixture
async def env(tmp_path, inbox):
    async with open_test_env("sqlite", tmp_path, allowed_private_hosts=(inbox.address,)) as opened:
        await manage(opened, "upload~acme", Visibility.TEAM, "user:ann")
        for name in ("ann", "bob"):
            await create_user(name, Role.ADMIN, by="system", reason="a test")
        yield opened


async def decide(env, name: str = "canary", namespace: str = "acme"):
    """A decision that nobody was told of yet."""
    submitted = await submit_skill(name, namespace=namespace, by=SubmittedBy("ann", EVERYTHING))
    assert submitted.submission is not None
    await run_until_quiet(env)
    return await get_submission(submitted.submission.id, audiences=EVERYTHING)


async def outcome_of(hook: Webhook, record) -> str:
    notice = next(iter(notices_of(record)))
    task, _ = await read_task(DELIVERY, f"{hook.id}:{notice.id}")
    assert task is not None
    return task.outcome


async def test_a_webhook_gets_what_its_account_may_read_when_it_is_delivered(env, inbox):
    """An admin reads everything, and a member its namespace. Who is neither any more gets what is public."""
    hook = await add_webhook(inbox.url, new_secret(), DECIDED, by="admin:bob")
    cursor = await find_notices(None)
    first = await decide(env, "first")
    cursor = await find_notices(cursor)
    await run_until_quiet(env)
    assert "delivered" in await outcome_of(hook, first) and len(inbox.posts) == 1
    second, shown = await decide(env, "second"), await decide(env, "open", "tests")
    await find_notices(cursor)
    await set_role("bob", Role.AUTHOR, by="system", reason="a test")
    await run_until_quiet(env)
    assert await outcome_of(hook, second) == f"not delivered: There is no submission {second.id}."
    assert "delivered: 200" in await outcome_of(hook, shown)
    told = [json.loads(body)["data"]["skillName"] for _, body in inbox.posts]
    assert told == ["first", "open"]


@pytest.mark.parametrize("member", [True, False])
async def test_a_webhook_of_a_former_admin_follows_its_memberships(env, inbox, member):
    hook = await add_webhook(inbox.url, new_secret(), DECIDED, by="admin:ann")
    await set_role("ann", Role.AUTHOR, by="system", reason="a test")
    cursor = await find_notices(None)
    record = await decide(env)
    await find_notices(cursor)
    if not member:
        await manage(env, "upload~acme", Visibility.TEAM)
    await run_until_quiet(env)
    assert (await outcome_of(hook, record)).startswith("delivered") is member
    assert len(inbox.posts) == member


async def test_a_webhook_of_an_account_that_is_gone_gets_what_anybody_may_read(env, inbox):
    hooks = [
        await add_webhook(inbox.url, new_secret(), DECIDED, by=by) for by in ("admin:bob", "admin:nobody", "")
    ]
    await set_disabled("bob", disabled=True, by="system", reason="a test")
    cursor = await find_notices(None)
    hidden, shown = await decide(env), await decide(env, "open", "tests")
    await find_notices(cursor)
    await run_until_quiet(env)
    for hook in hooks:
        assert (await outcome_of(hook, hidden)).startswith("not delivered")
        assert (await outcome_of(hook, shown)).startswith("delivered")
    await set_mode(env, RegistryMode.INTERNAL)
    cursor = await find_notices(None)
    inside = await decide(env, "inside", "tests")
    await find_notices(cursor)
    await run_until_quiet(env)
    for hook in hooks:
        assert (await outcome_of(hook, inside)).startswith("not delivered")


async def test_a_webhook_of_the_operator_gets_everything(env, inbox):
    hook = await add_webhook(inbox.url, new_secret(), DECIDED, by=OPERATOR)
    cursor = await find_notices(None)
    record = await decide(env)
    await find_notices(cursor)
    await run_until_quiet(env)
    assert (await outcome_of(hook, record)).startswith("delivered")


async def test_mail_goes_to_the_operator_and_to_a_submitter_who_may_read_it(tmp_path):
    with smtp_server() as room:
        addresses = {"mail_from": "registry@example.org", "mail_to": "ops@example.org"}
        settings: dict[str, Any] = {"smtp_url": room.url, **addresses}
        async with open_test_env("sqlite", tmp_path, **settings) as env:
            await manage(env, "upload~acme", Visibility.TEAM, "user:ann")
            cursor = await find_notices(None)
            told = []
            for number, submitter in enumerate((None, "ann@example.org")):
                by = SubmittedBy(submitter, EVERYTHING)
                for name, namespace in (("canary", "acme"), ("open", "tests")):
                    submitted = await submit_skill(f"{name}-{number}", namespace=namespace, by=by)
                    assert submitted.submission is not None
                    await run_until_quiet(env)
                    told.append(await get_submission(submitted.submission.id, audiences=EVERYTHING))
            await find_notices(cursor)
            await run_until_quiet(env)
            outcomes = []
            for record in told:
                task, _ = await read_task(MAIL, next(iter(notices_of(record))).id)
                assert task is not None
                outcomes.append((task.subject["to"], task.outcome.partition(":")[0]))
            assert outcomes == [
                ("ops@example.org", "sent"),
                ("ops@example.org", "sent"),
                ("ann@example.org", "not sent"),
                ("ann@example.org", "sent"),
            ]
