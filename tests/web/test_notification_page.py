"""The page of notifications: what one was told, what is unread, and what one watches."""

import re

import pytest

from tests.support.envs import active_env
from tests.support.people import signed_in
from tests.support.shelf import open_shelf
from vskill_platform.domain.notification import Notification, Topic
from vskill_platform.store.accounts import Role
from vskill_platform.store.notifications import tell
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


async def test_a_page_of_which_nothing_may_be_read_leads_to_older_ones(tmp_path):
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
            assert "secret" not in shown and "Nothing to tell you" not in shown
            (following,) = re.findall(rf'href="({PAGE}[^"]*)" rel="next"', shown)
            assert "older news" in (await mia.get(following)).text
