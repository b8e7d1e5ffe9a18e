"""Accounts are told what concerns them, once, and are shown only what they may read when they look."""

import json

import pytest

from tests.support.acting import set_disabled, set_role, take_down
from tests.support.envs import make_submission, open_test_env, put_record, run_until_quiet, submit_skill
from tests.support.namespaces import manage
from tests.support.receiver import receiver
from vskill_client.wire.base import NoParameters
from vskill_core.errors import InvalidInput, NotFound
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.telling.notifications import (
    ADD_WATCH,
    LIST_NOTIFICATIONS,
    READ_NOTIFICATIONS,
    REMOVE_WATCH,
    ListNotifications,
    NotificationsAnswer,
    WatchTarget,
)
from vskill_platform.domain.people.namespace import EVERYTHING, Visibility
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.telling.notification import KEPT_MS, MOST_WATCHED, Notification, Topic
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.notifications.deliveries import (
    find_notices,
    find_recalls,
    find_reports,
)
from vskill_platform.notifications.signature import new_secret
from vskill_platform.store.people.accounts import Role, create_user, get_user
from vskill_platform.store.review.reports import ReportStatus, decide_report, file_report
from vskill_platform.store.telling.notifications import MOST_COUNTED, MOST_PAGES, tell, watch
from vskill_platform.store.telling.webhooks import add_webhook

pytestmark = pytest.mark.anyio

LINT = "upload~tests/skills/lint"


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as opened:
        for name, role in (("ann", Role.AUTHOR), ("rae", Role.REVIEWER), ("eve", Role.ADMIN)):
            await create_user(name, role, by="system", reason="a test")
        yield opened


async def who(account: str) -> Principal:
    """The account as it is now."""
    return Principal(account, (await get_user(account)).role)


async def publish(env, name: str = "lint", body: str = "", namespace: str = "tests", by: str | None = None):
    submitted = await submit_skill(name, body, namespace=namespace, by=SubmittedBy(by, EVERYTHING))
    assert submitted.submission is not None
    await run_until_quiet(env)
    return submitted.submission.id


async def listed(env, account: str) -> list[tuple[str, str, bool]]:
    """Why, what, and whether it is unread."""
    found = await LIST_NOTIFICATIONS(env, await who(account), ListNotifications())
    assert found.unread == sum(one.unread for one in found.notifications)
    return [(one.topic.value, one.text, one.unread) for one in found.notifications]


async def test_a_submitter_hears_of_the_decision_once(env):
    cursor = await find_notices(None)
    await publish(env, by="ann")
    await find_notices(cursor)
    await find_notices(cursor)
    ((topic, text, unread),) = await listed(env, "ann")
    assert (topic, unread) == ("own", True) and text.startswith("lint: ")
    assert await listed(env, "rae") == await listed(env, "eve") == []
    await READ_NOTIFICATIONS(env, await who("ann"), NoParameters())
    assert [unread for _, _, unread in await listed(env, "ann")] == [False]


async def test_what_is_told_late_is_unread_though_all_was_marked_as_read_since_it_happened(env):
    cursor = await find_notices(None)
    await publish(env, by="ann")
    env.clock.advance(1_000)
    await READ_NOTIFICATIONS(env, await who("ann"), NoParameters())
    env.clock.advance(1_000)
    await find_notices(cursor)
    assert [unread for _, _, unread in await listed(env, "ann")] == [True]
    env.clock.advance(1_000)
    await READ_NOTIFICATIONS(env, await who("ann"), NoParameters())
    await find_notices(cursor)
    assert [unread for _, _, unread in await listed(env, "ann")] == [False]


async def test_watchers_of_a_skill_or_its_namespace_hear_of_it_from_then_on(env):
    cursor, serial = await find_notices(None), await find_recalls(None)
    await publish(env)
    env.clock.advance(1)
    await ADD_WATCH(env, await who("ann"), WatchTarget(skill="lint"))
    await ADD_WATCH(env, await who("rae"), WatchTarget(namespace="upload~tests"))
    cursor = await find_notices(cursor)
    assert await listed(env, "ann") == []
    await publish(env, body="Another version.")
    await publish(env, "other")
    await find_notices(cursor)
    assert [text for _, text, _ in await listed(env, "ann")] == [f"{LINT} 1.0.1 was published."]
    assert len(await listed(env, "rae")) == 2
    env.clock.advance(1)
    await take_down(LINT, by="admin:eve", reason="It is broken.")
    await find_recalls(serial)
    topic, text, _ = (await listed(env, "ann"))[0]
    assert topic == "watched" and text.startswith(LINT) and "was withdrawn. " in text
    left = await REMOVE_WATCH(env, await who("ann"), WatchTarget(skill=LINT))
    assert left.skills == left.namespaces == ()


async def test_a_watcher_is_not_shown_what_it_may_not_read_any_more(env):
    await watch("ann", "upload~acme")
    await manage(env, "upload~acme", Visibility.TEAM, "user:ann")
    cursor = await find_notices(None)
    await publish(env, "canary", namespace="acme")
    await find_notices(cursor)
    assert len(await listed(env, "ann")) == 1
    await manage(env, "upload~acme", Visibility.TEAM)
    assert await listed(env, "ann") == []


async def all_pages(env, account: str, limit: int) -> list[NotificationsAnswer]:
    pages: list[NotificationsAnswer] = []
    while not pages or pages[-1].after is not None:
        after = pages[-1].after if pages else None
        asked = ListNotifications(after=after, limit=limit)
        pages.append(await LIST_NOTIFICATIONS(env, await who(account), asked))
    return pages


async def test_no_page_tells_of_what_one_may_not_read(env):
    """Neither by its cursor, nor by its length, nor by whether another one follows."""
    await manage(env, "upload~acme", Visibility.TEAM)
    await create_user("zoe", Role.AUTHOR, by="system", reason="a test")
    await watch("zoe", "upload~tests")
    for name in ("upload~tests", "upload~acme"):
        await watch("ann", name)
    cursor = await find_notices(None)
    for name in ("acme-1", "tests-1", "acme-2", "tests-2", "acme-3"):
        env.clock.advance(1_000)
        await publish(env, name, namespace=name.partition("-")[0])
    while (after := await find_notices(cursor)) != cursor:
        cursor = after
    for limit in (1, 2, 3):
        assert await all_pages(env, "ann", limit) == await all_pages(env, "zoe", limit)
    assert len(await listed(env, "ann")) == 2


async def test_behind_very_many_that_one_may_not_read_the_list_ends(env):
    """Rather than tell of them by a cursor, or read on for ever."""
    at = env.kv.now()
    gone = [
        Notification(f"e{n}", Topic.WATCHED, "skill.published", at, "secret", skill="gone/a/b")
        for n in range(MOST_PAGES * MOST_COUNTED + 1)
    ]
    await tell(("ann", one) for one in gone)
    (page,) = await all_pages(env, "ann", 1)
    assert (page.notifications, page.after) == ((), None)


async def test_who_may_not_read_a_skill_cannot_watch_it_and_a_namespace_says_nothing(env):
    await manage(env, "upload~acme", Visibility.TEAM)
    await publish(env, "canary", namespace="acme")
    for name in ("upload~acme/skills/canary", "upload~acme/skills/nothing"):
        with pytest.raises(NotFound):
            await ADD_WATCH(env, await who("ann"), WatchTarget(skill=name))
    cursor = await find_notices(None)
    for name in ("upload~acme", "upload~nothing"):
        assert name in (await ADD_WATCH(env, await who("ann"), WatchTarget(namespace=name))).namespaces
    await publish(env, "canary", "Another version.", namespace="acme")
    await find_notices(cursor)
    assert await listed(env, "ann") == []


async def test_reviewers_hear_of_what_waits_until_it_is_decided(env):
    cursor = await find_notices(None)
    await put_record(env, make_submission(state=State.NEEDS_REVIEW, at=env.kv.now()))
    after = await find_notices(cursor)
    for account in ("rae", "eve"):
        ((topic, text, _),) = await listed(env, account)
        assert topic == "reviews" and "waits for a reviewer" in text
    assert await listed(env, "ann") == []
    await create_user("new", Role.REVIEWER, by="system", reason="a test")
    await put_record(env, make_submission(state=State.REJECTED, at=env.kv.now()))
    await find_notices(after)
    assert await listed(env, "new") == []


async def test_reviewers_hear_of_a_report_and_lose_it_with_their_role(env):
    await publish(env)
    cursor = await find_reports(None)
    await file_report(LINT, reporter="user:ann", reason="It lies.", audiences=EVERYTHING)
    await find_reports(await find_reports(cursor))
    for account in ("rae", "eve"):
        assert await listed(env, account) == [("reports", f"Somebody reported {LINT}: other.", True)]
    await set_role("rae", Role.AUTHOR, by="system", reason="a test")
    assert await listed(env, "rae") == await listed(env, "ann") == []


@pytest.mark.parametrize("status", [ReportStatus.UPHELD, ReportStatus.DISMISSED])
async def test_a_decision_about_a_report_is_told_to_its_reporter_and_upheld_to_the_maintainers(env, status):
    """Neither hears who the other is, nor what a reviewer wrote for the audit."""
    for name in ("tests", "mia"):
        await create_user(name, Role.AUTHOR, by="system", reason="a test")
    await publish(env)
    cursor = await find_reports(None)
    filed = await file_report(LINT, reporter="user:ann", reason="It lies.", audiences=EVERYTHING)
    anonymous = await file_report(LINT, reporter="user:203.0.113.7", reason="Me too.", audiences=EVERYTHING)
    cursor = await find_reports(cursor)
    assert await listed(env, "ann") == await listed(env, "tests") == []
    await decide_report(filed.report.id, status, by="admin:rae", reason="secret")
    await find_reports(cursor)
    assert await listed(env, "ann") == [("own", f"A reviewer {status.value} your report about {LINT}.", True)]
    upheld = ("own", f"A reviewer upheld a report about {LINT}, which you maintain: other.", True)
    assert await listed(env, "tests") == ([upheld] if status is ReportStatus.UPHELD else [])
    assert await listed(env, "mia") == []
    assert anonymous.report.status is ReportStatus.OPEN


async def test_who_may_not_read_a_reported_skill_any_more_is_shown_no_decision(env):
    await manage(env, "upload~acme", Visibility.TEAM, "user:ann")
    await publish(env, "canary", namespace="acme")
    cursor = await find_reports(None)
    canary = "upload~acme/skills/canary"
    filed = await file_report(canary, reporter="user:ann", reason="It lies.", audiences=EVERYTHING)
    await decide_report(filed.report.id, ReportStatus.UPHELD, by="admin:rae", reason="It does.")
    await find_reports(cursor)
    assert len(await listed(env, "ann")) == 1
    await manage(env, "upload~acme", Visibility.TEAM)
    assert await listed(env, "ann") == []


async def test_old_news_are_not_told_again_and_pages_follow_each_other(env):
    cursor = await find_notices(None)
    submission = await publish(env, by="ann")
    for name in ("one", "two"):
        env.clock.advance(1_000)
        await publish(env, name, by="ann")
    await find_notices(cursor)
    texts, after = [], None
    while True:
        found = await LIST_NOTIFICATIONS(env, await who("ann"), ListNotifications(after=after, limit=2))
        texts += [one.text.partition(":")[0] for one in found.notifications]
        if (after := found.after) is None:
            break
    assert texts == ["two", "one", "lint"]
    env.clock.advance(KEPT_MS + 1)
    await env.kv.put(f"sub:{submission}", (await env.kv.get(f"sub:{submission}")).value)
    await find_notices(await find_notices(None))
    assert await listed(env, "ann") == []


async def test_one_thing_is_watched_at_a_time_and_not_too_many(env):
    for given in ({}, {"skill": LINT, "namespace": "x"}):
        with pytest.raises(InvalidInput, match="Name one thing"):
            await ADD_WATCH(env, await who("ann"), WatchTarget(**given))
    for number in range(MOST_WATCHED):
        await watch("ann", f"owner-{number}")
    with pytest.raises(InvalidInput, match="already"):
        await watch("ann", "one-more")
    assert (await watch("ann", "owner-1")).watched.count("owner-1") == 1


async def test_a_webhook_gets_reviews_and_reports_while_its_account_is_an_admin(tmp_path):
    with receiver() as inbox:
        async with open_test_env("sqlite", tmp_path, allowed_private_hosts=(inbox.address,)) as env:
            for name in ("ada", "eve"):
                await create_user(name, Role.ADMIN, by="system", reason="a test")
            events = ("review.waiting", "report.filed")
            await add_webhook(inbox.url, new_secret(), events, by="admin:eve")
            await publish(env)
            cursors = await find_notices(None), await find_reports(None)
            await put_record(env, make_submission(state=State.NEEDS_REVIEW, at=env.kv.now()))
            await file_report(LINT, reporter="user:ann", reason="It lies.", audiences=EVERYTHING)
            await find_notices(cursors[0])
            await find_reports(cursors[1])
            await run_until_quiet(env)
            told = {json.loads(body)["type"]: json.loads(body)["data"] for _, body in inbox.posts}
            assert set(told) == set(events)
            assert told["report.filed"]["skill"] == LINT and "reporter" not in told["report.filed"]
            await set_disabled("eve", disabled=True, by="system", reason="a test")
            await file_report(LINT, reporter="user:bob", reason="It lies.", audiences=EVERYTHING)
            await find_reports(cursors[1])
            await run_until_quiet(env)
            assert len(inbox.posts) == len(events)
