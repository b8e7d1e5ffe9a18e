"""The page of notifications: what one was told, what is unread, and what one watches."""

import httpx2
import msgspec
import pytest

from tests.support.counting_kv import CountingKV
from tests.support.envs import active_env, make_submission, put_record
from tests.support.namespaces import manage
from tests.support.people import signed_in
from tests.support.shelf import open_shelf
from vskill_core.errors import StoreUnavailable
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import Visibility
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.telling.notification import Notification, Topic
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.telling.notifications import read_choices, tell
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

PAGE = "/account/notifications"
LINT = "acme/tools/lint"


async def test_one_watches_reads_and_stops_watching_on_the_pages(tmp_path):
    async with open_shelf(tmp_path, rate_limits="off", public_url="http://platform.test") as shelf:
        await shelf.publish("lint")
        async with signed_in(create_app(shelf.env), shelf.env, "mia", Role.AUTHOR) as mia:
            assert f'action="{PAGE}/watch"' in (await mia.get(f"/skills/{LINT}")).text
            assert f'href="{PAGE}"' in (await mia.get("/account")).text
            assert "Nothing to tell you" in (await mia.get(PAGE)).text
            assert await mia.do(f"{PAGE}/watch", skill=LINT) == "You watch it from now on."
            assert "Name one thing" in await mia.do(f"{PAGE}/watch")
            with active_env(shelf.env):
                at = shelf.env.kv.now()
                told = Notification("e", Topic.WATCHED, "skill.published", at, "<b>news</b>", skill=LINT)
                await tell([("mia", told)])
            shown = (await mia.get(PAGE)).text
            assert "1 unread" in shown and "&lt;b&gt;news&lt;/b&gt;" in shown and "you watch it" in shown
            assert f"Stop watching {LINT}" in shown
            assert await mia.do(f"{PAGE}/read") == "All notifications are marked as read."
            shown = (await mia.get(PAGE)).text
            assert "unread" not in shown and "news" in shown
            assert await mia.do(f"{PAGE}/unwatch", skill=LINT) == "You do not watch it any more."
            assert "You watch nothing yet" in (await mia.get(PAGE)).text


async def test_what_may_not_be_read_stands_before_nothing_that_may(tmp_path):
    async with open_shelf(tmp_path, rate_limits="off", public_url="http://platform.test") as shelf:
        await shelf.publish("lint")
        async with signed_in(create_app(shelf.env), shelf.env, "mia", Role.AUTHOR) as mia:
            with active_env(shelf.env):
                at = shelf.env.kv.now()
                news = [
                    Notification(
                        f"e{n}", Topic.WATCHED, "skill.published", at - n, "secret", skill="gone/a/b"
                    )
                    for n in range(50)
                ]
                news.append(
                    Notification("old", Topic.WATCHED, "skill.published", at - 99, "older news", skill=LINT)
                )
                await tell(("mia", one) for one in news)
            shown = (await mia.get(PAGE)).text
            assert "older news" in shown and "secret" not in shown
            assert 'rel="next"' not in shown


async def test_one_starts_and_ends_the_daily_mail_on_the_page(tmp_path):
    mail = {"smtp_url": "smtp://127.0.0.1:9", "mail_from": "registry@example.org"}
    async with (
        open_shelf(tmp_path, rate_limits="off", public_url="http://platform.test", **mail) as shelf,
        signed_in(create_app(shelf.env), shelf.env, "mia", Role.AUTHOR) as mia,
    ):
        assert "End the mail" not in (await mia.get(PAGE)).text
        assert "not an e-mail address" in await mia.do(f"{PAGE}/mail", address="mia")
        told = await mia.do(f"{PAGE}/mail", address="mia@example.org")
        assert told == "A code is on its way to mia@example.org."
        assert "Code from the mail to mia@example.org" in (await mia.get(PAGE)).text
        assert "confirms no address" in await mia.do(f"{PAGE}/confirm", code="guessed")
        with active_env(shelf.env):
            proof = (await read_choices("mia"))[0].proof
        assert proof is not None and proof.code not in (await mia.get(PAGE)).text
        told = await mia.do(f"{PAGE}/confirm", code=proof.code)
        assert told == "Mail goes to mia@example.org from now on."
        assert "End the mail" in (await mia.get(PAGE)).text
        assert await mia.do(f"{PAGE}/mail", address="") == "You get no more mail."
        assert "End the mail" not in (await mia.get(PAGE)).text


class InboxKV(CountingKV):
    """Also tells how often inboxes were read."""

    inboxes = 0

    async def scan(self, prefix, **options):
        self.inboxes += prefix.startswith(keys.inbox.prefix)
        return await super().scan(prefix, **options)


async def test_each_page_says_how_many_are_unread_by_one_read_and_none_for_visitors(tmp_path):
    async with open_shelf(tmp_path, rate_limits="off", public_url="http://platform.test") as shelf:
        await shelf.publish("lint")
        kv = InboxKV(shelf.env.kv)
        app = create_app(msgspec.structs.replace(shelf.env, kv=kv))
        async with signed_in(app, shelf.env, "mia", Role.AUTHOR) as mia, client_of(app) as visitor:
            with active_env(shelf.env):
                at = shelf.env.kv.now()
                await tell(
                    ("mia", Notification(f"e{n}", Topic.WATCHED, "skill.published", at, "news", skill=LINT))
                    for n in range(2)
                )
            for path in ("/", "/skills", f"/skills/{LINT}", "/queue", "/account", "/docs"):
                for _ in range(2):
                    kv.inboxes = 0
                    assert "Notifications" not in (await visitor.get(path)).text
                    assert kv.inboxes == 0, path
                    kv.calls.clear()
                    shown = (await mia.get(path)).text
                    assert 'aria-label="Notifications, 2 unread"' in shown, path
                    assert kv.inboxes == 1, path
            kv.inboxes = 0
            partial = {"hx-request": "true", "hx-request-type": "partial"}
            await mia.client.get("/skills?q=lint", headers=partial)
            assert kv.inboxes == 0, "a part of a page has no header"
            await mia.do(f"{PAGE}/read")
            assert 'aria-label="Notifications"' in (await mia.get("/")).text


async def test_the_number_counts_only_what_the_account_may_read_now(tmp_path):
    async with open_shelf(tmp_path, rate_limits="off", public_url="http://platform.test") as shelf:
        env = shelf.env
        with active_env(env):
            await manage(env, "acme", Visibility.TEAM, "user:mia")
            hidden = make_submission(state=State.REJECTED, audience="ns:acme")
            await put_record(env, hidden)
        app = create_app(env)
        async with (
            signed_in(app, env, "mia", Role.AUTHOR) as mia,
            signed_in(app, env, "zoe", Role.AUTHOR) as zoe,
        ):
            at = env.kv.now()
            news = Notification("e", Topic.OWN, "submission.decided", at, "news", submission=hidden.id)
            alert = Notification("a", Topic.ALERTS, "alert.fired", at, "an alert")
            with active_env(env):
                await tell((name, one) for name in ("mia", "zoe") for one in (news, alert))
            assert "Notifications, 1 unread" in (await mia.get("/")).text
            assert "unread" not in (await zoe.get("/")).text
            with active_env(env):
                await manage(env, "acme", Visibility.TEAM)
            assert "unread" not in (await mia.get("/")).text


async def test_a_page_is_shown_though_the_number_cannot_be_read(tmp_path):
    class Broken(InboxKV):
        async def scan(self, prefix, **options):
            if prefix.startswith(keys.inbox.prefix):
                raise StoreUnavailable("away because a test says so")
            return await super().scan(prefix, **options)

    async with open_shelf(tmp_path, rate_limits="off", public_url="http://platform.test") as shelf:
        app = create_app(msgspec.structs.replace(shelf.env, kv=Broken(shelf.env.kv)))
        async with signed_in(app, shelf.env, "mia", Role.AUTHOR) as mia:
            shown = await mia.get("/skills")
            assert shown.status_code == 200 and 'aria-label="Notifications"' in shown.text


def client_of(app) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://platform.test")
