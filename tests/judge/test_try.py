"""The admin's page about judges: the offer where none is configured, and the test of one that is."""

import pytest

from tests.judge.server import Asked, Reply, replies, says
from tests.support.envs import open_test_env
from tests.support.people import signed_in
from vskill_platform.store.people.accounts import Role
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

PAGE, TRY = "/admin/judges", "/admin/judges/try"


async def knows_the_planted_one(asked: Asked) -> Reply | None:
    is_planted = "private keys" in asked.user
    answered = says(score=3, verdict="FAIL") if is_planted else says()
    return await answered(asked)


@pytest.fixture
async def ada(server, tmp_path):
    settings = {"judge_url": server.url, "judge_model": "judge-local", "judge_budget_ms": 3_000}
    async with (
        open_test_env("memory", tmp_path, **settings) as env,
        signed_in(create_app(env), env, "ada", Role.ADMIN) as person,
    ):
        yield person


async def test_without_a_judge_the_page_offers_one_both_ways(tmp_path):
    async with (
        open_test_env("memory", tmp_path) as env,
        signed_in(create_app(env), env, "ada", Role.ADMIN) as ada,
    ):
        page = (await ada.get(PAGE)).text
        refused = await ada.do(TRY)
    assert "No judge reads what is submitted" in page and page.count("VSKILL_JUDGE_URL=") >= 2
    assert "No judge is configured" in refused


async def test_a_judge_that_tells_them_apart_is_right_twice(server, ada):
    server.answer = knows_the_planted_one
    page = (await ada.send(TRY)).text
    assert page.count(">yes<") == 2 and "approves" in page and "rejects" in page
    assert {one.body["model"] for one in server.asked} == {"judge-local"} and len(server.asked) == 2


async def test_one_that_approves_everything_is_wrong_about_the_planted_one(ada):
    page = (await ada.send(TRY)).text
    assert page.count(">yes<") == page.count(">no<") == 1


async def test_one_that_fails_says_why(server, ada):
    server.answer = replies(Reply(b"{}", 503))
    page = (await ada.send(TRY)).text
    assert page.count(">no<") == 2 and "the judge answers with status 503" in page
