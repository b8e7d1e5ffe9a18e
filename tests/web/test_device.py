"""Signing a machine in without a browser on it: what the machine asks, and the page on which a person decides."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from tests.support.acting import set_disabled, sign_out_everywhere
from tests.support.envs import open_test_env
from tests.support.manual_clock import ManualClock
from tests.support.people import Person, browser, signed_in, token_of
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.attempts import MOST_PAIR
from vskill_platform.store.people.device_codes import LENGTH, LETTERS, LIFE_MS
from vskill_platform.web.app import create_app
from vskill_platform.worker_context import run_with_worker_env

pytestmark = pytest.mark.anyio

CODE, TOKEN = "/api/cli/device/code", "/api/cli/device/token"


class World:
    """A registry, a machine without a browser, and ann, who has one."""

    def __init__(self, env: Any, machine: httpx2.AsyncClient, ann: Person) -> None:
        self.env, self.machine, self.ann = env, machine, ann

    async def begin(self, label: str = "laptop") -> dict[str, Any]:
        answer = await self.machine.post(CODE, json={"label": label, "scope": "read write", "site_url": "x"})
        assert answer.status_code == 200, answer.text
        asked: dict[str, Any] = answer.json()
        return asked

    async def ask(self, device_code: str) -> tuple[int, dict[str, Any]]:
        answer = await self.machine.post(TOKEN, json={"device_code": device_code})
        return answer.status_code, answer.json()

    async def refused(self, device_code: str) -> str:
        status, told = await self.ask(device_code)
        assert status == 400 and told["error_description"]
        return str(told["error"])

    async def decide(self, code: str, decision: str = "allow", *scopes: str) -> httpx2.Response:
        return await self.ann.send("/device/decide", code=code, decision=decision, scopes=list(scopes))


@pytest.fixture
async def world(tmp_path) -> AsyncIterator[World]:
    async with open_test_env("memory", tmp_path, clock=ManualClock()) as env:
        app = create_app(env)
        async with browser(app) as machine, signed_in(app, env, "ann", Role.AUTHOR) as ann:
            yield World(env, machine, ann)


async def test_a_machine_gets_a_token_once_after_somebody_typed_its_code_and_allowed_it(world):
    asked = await world.begin("vskill-client on laptop")
    code = asked["user_code"].replace("-", "")
    assert len(code) == LENGTH and set(code) <= set(LETTERS)
    assert asked["verification_uri"].endswith("/device") and code not in asked["verification_uri"]
    assert await world.refused(asked["device_code"]) == "authorization_pending"
    page = await world.ann.send("/device", code=f" {asked['user_code'].lower()} ")
    assert page.status_code == 200 and "vskill-client on laptop" in page.text and "ann" in page.text
    assert "do everything my role allows" not in page.text
    done = await world.decide(code, "allow", "read", "submit")
    assert "It is let in" in done.text
    status, made = await world.ask(asked["device_code"])
    assert (status, made["token_type"], made["scope"]) == (200, "bearer", "read submit")
    headers = {"authorization": f"Bearer {made['access_token']}"}
    account = (await world.machine.get("/api/v1/account", headers=headers)).json()
    assert (account["account"], account["scopes"]) == ("ann", ["read", "submit"])
    assert await world.refused(asked["device_code"]) == "expired_token"
    assert (await world.decide(code, "allow", "read")).status_code == 404


async def test_another_grant_is_refused(world):
    answer = await world.machine.post(TOKEN, json={"device_code": "x", "grant_type": "password"})
    assert (answer.status_code, answer.json()["error"]) == (400, "unsupported_grant_type")


async def test_a_refusal_ends_it(world):
    asked = await world.begin()
    assert "is refused" in (await world.decide(asked["user_code"], "refuse", "read")).text
    assert await world.refused(asked["device_code"]) == "access_denied"


async def test_nothing_chosen_is_asked_again_and_what_the_role_lacks_is_not_given(world):
    asked = await world.begin()
    again = await world.decide(asked["user_code"], "allow")
    assert again.status_code == 400 and "Choose what it may do" in again.text
    await world.decide(asked["user_code"], "allow", "read", "admin", "nonsense")
    _, made = await world.ask(asked["device_code"])
    assert made["scope"] == "read"


async def test_a_code_ends_after_ten_minutes_and_so_does_an_answer_that_nobody_fetched(world):
    waiting, allowed = await world.begin(), await world.begin()
    world.env.clock.advance(LIFE_MS // 2)
    await world.decide(allowed["user_code"], "allow", "read")
    world.env.clock.advance(LIFE_MS // 2 + 1)
    assert await world.refused(waiting["device_code"]) == "expired_token"
    assert await world.refused(allowed["device_code"]) == "expired_token"
    assert (await world.ann.send("/device", code=waiting["user_code"])).status_code == 404


@pytest.mark.parametrize("ended", ["disabled", "signed out"])
async def test_an_account_that_has_ended_lets_nobody_in(world, ended):
    asked = await world.begin()
    await world.decide(asked["user_code"], "allow", "read")
    world.env.clock.advance(1)
    if ended == "disabled":
        await run_with_worker_env(
            world.env, lambda: set_disabled("ann", disabled=True, by="admin:eve", reason="left")
        )
    else:
        await run_with_worker_env(world.env, lambda: sign_out_everywhere("ann"))
    assert await world.refused(asked["device_code"]) == "access_denied"


async def test_the_code_alone_is_no_secret_and_a_wrong_one_counts(world):
    asked = await world.begin()
    code = asked["user_code"].replace("-", "")
    await world.decide(code, "allow", "read")
    for wrong in (code, f"{code}.", f"{code}.guess", "", "x" * 199):
        assert await world.refused(wrong) == "expired_token"
    answers = [await world.ann.send("/device", code="BBBB-BBBB") for _ in range(MOST_PAIR + 1)]
    assert [one.status_code for one in answers] == [404] * MOST_PAIR + [429]


async def test_a_token_cannot_let_a_machine_in_and_nobody_without_an_account_can(world):
    asked = await world.begin()
    headers = {"authorization": f"Bearer {await token_of(world.env, 'ann', 'own')}"}
    body = {"code": asked["user_code"], "decision": "allow", "scopes": "own"}
    assert (await world.machine.post("/device/decide", data=body, headers=headers)).status_code == 403
    assert (await world.machine.get("/device", headers={"accept": "text/html"})).status_code in (302, 303)
    assert (await world.machine.post("/device/decide", data=body)).status_code in (401, 403)
    assert await world.refused(asked["device_code"]) == "authorization_pending"


@pytest.mark.parametrize("body", [{"label": "x" * 81}, {"label": "a\u202eb"}, {"label": 3}])
async def test_a_label_that_no_page_should_show_is_refused(world, body):
    answer = await world.machine.post(CODE, json=body)
    assert (answer.status_code, answer.json()["field"]) == (400, "label")
