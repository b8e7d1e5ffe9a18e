"""A registry where people sign in with two issuers on loopback, and how a browser goes there and back."""

from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx2
import msgspec

from tests.support.envs import active_env, open_test_env
from tests.support.issuer import OwnIssuer, configured, own_issuer
from tests.support.manual_clock import ManualClock
from tests.support.namespaces import set_mode
from tests.support.people import ADDRESS, browser, csrf_in, led_to
from vskill_platform.domain.people.namespace import RegistryMode
from vskill_platform.store.people.accounts import User, read_user
from vskill_platform.web.app import create_app
from vskill_platform.web.browser import SESSION_COOKIE
from vskill_platform.worker_context import Env

HTML = {"accept": "text/html"}


class House(msgspec.Struct, frozen=True):
    """A registry with two issuers."""

    env: Env
    acme: OwnIssuer
    other: OwnIssuer

    @property
    def clock(self) -> ManualClock:
        assert isinstance(self.env.clock, ManualClock)
        return self.env.clock

    async def sign_in(
        self, issuer: OwnIssuer | None = None, client: httpx2.AsyncClient | None = None
    ) -> httpx2.Response:
        """What the page answers whoever comes back from an issuer, to `acme` by default."""
        name = "other" if issuer is self.other else "acme"
        async with AsyncExitStack() as stack:
            used: Any = client or await stack.enter_async_context(browser(create_app(self.env)))
            return await come_back(used, name, (issuer or self.acme).authorize(await leave(used, name)))

    async def user(self, name: str) -> User | None:
        with active_env(self.env):
            return (await read_user(name))[0]


async def leave(client: httpx2.AsyncClient, name: str, page: str = "/signin") -> str:
    shown = await client.get(page, headers=HTML)
    sent = {"csrf": csrf_in(shown.text), "next": "/queue"}
    return led_to(await client.post(f"/signin/{name}", data=sent, headers=HTML))


async def come_back(client: httpx2.AsyncClient, name: str, query: dict[str, str]) -> httpx2.Response:
    answer = await client.get(f"/signin/{name}/callback?{urlencode(query)}", headers=HTML)
    assert (answer.status_code == 303) is (f"{SESSION_COOKIE}=" in answer.headers.get("set-cookie", ""))
    return answer


@asynccontextmanager
async def open_house(folder: Path, mode: RegistryMode = RegistryMode.PUBLIC, **rule: Any):
    clock = ManualClock()
    async with own_issuer(clock.now) as acme, own_issuer(clock.now) as other:
        issuers = (configured(acme, "acme", title="Acme", **rule), configured(other, "other"))
        async with open_test_env(
            "memory",
            folder,
            clock=clock,
            active=False,
            issuers=issuers,
            public_url=ADDRESS,
            rate_limits="off",
        ) as env:
            await set_mode(env, mode)
            yield House(env, acme, other)
