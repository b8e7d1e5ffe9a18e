"""People for tests of the web side: an account of each role, signed in without the cost of a password."""

import html
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from starlette.types import ASGIApp

from tests.support.acting import create_token
from vskill_platform.store.people.accounts import Role, create_user, read_user
from vskill_platform.store.people.credentials import open_session
from vskill_platform.web.browser import SESSION_COOKIE, Browser
from vskill_platform.worker_context import Env, run_with_worker_env

ADDRESS = "http://platform.test"
#: Long enough, and nobody's.
PASSWORD = "seven green boats at noon"


class Person:
    """A browser that has signed in."""

    def __init__(self, client: httpx2.AsyncClient, name: str, session: str) -> None:
        self.client = client
        self.name = name
        self.csrf = Browser(session, None).csrf

    async def get(self, path: str, **options) -> httpx2.Response:
        return await self.client.get(path, headers={"accept": "text/html"}, **options)

    async def send(self, path: str, **fields) -> httpx2.Response:
        """A form, with the secret of this browser's pages."""
        return await self.client.post(
            path, data={"csrf": self.csrf, **fields}, headers={"accept": "text/html"}
        )

    async def do(self, path: str, **fields) -> str:
        """A form that must lead to a page; what that page says was done."""
        answer = await self.send(path, **fields)
        assert answer.status_code == 303, (answer.status_code, answer.text[:500])
        page = await self.get(answer.headers["location"])
        assert page.status_code == 200, page.text[:500]
        return told(page.text)


def told(text: str) -> str:
    """The message at the top of a page."""
    begin = text.index('role="status"')
    part = text[begin : text.index("</div></div>", begin)]
    return html.unescape(part[part.rindex("<p>") + 3 : part.rindex("</p>")])


async def make_account(env: Env, name: str, role: Role, password: str | None = None) -> None:
    async def make() -> None:
        if (await read_user(name))[0] is None:
            await create_user(name, role, by="system", reason="for a test", password=password)

    await run_with_worker_env(env, make)


async def session_of(env: Env, name: str) -> str:
    async def begin() -> str:
        user, _ = await read_user(name)
        assert user is not None
        return await open_session(user, "password")

    return await run_with_worker_env(env, begin)


async def token_of(env: Env, name: str, *scopes: str, days: int = 1) -> str:
    made = await run_with_worker_env(env, lambda: create_token(name, "test", scopes, by="system", days=days))
    return made.secret


@asynccontextmanager
async def browser(app: ASGIApp) -> AsyncIterator[httpx2.AsyncClient]:
    """Somebody who has not signed in."""
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url=ADDRESS) as client:
        yield client


@asynccontextmanager
async def signed_in(app: ASGIApp, env: Env, name: str, role: Role) -> AsyncIterator[Person]:
    await make_account(env, name, role)
    session = await session_of(env, name)
    async with browser(app) as client:
        client.cookies.set(SESSION_COOKIE, session)
        yield Person(client, name, session)


def led_to(answer: httpx2.Response) -> str:
    """Where a page leads the browser by itself: to a provider."""
    assert answer.status_code == 200, (answer.status_code, answer.text[:2_000])
    return html.unescape(answer.text.split('content="0;url=')[1].split('"', maxsplit=1)[0])


def csrf_in(page: str) -> str:
    """The secret in a page's form."""
    return page.split('name="csrf" value="')[1].split('"', maxsplit=1)[0]
