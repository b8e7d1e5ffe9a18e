"""Pages as a browser without scripts sees them: an in-process client, sessions, and forms."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser

import httpx2

from vskill_platform.store.people.accounts import Role, create_user
from vskill_platform.store.people.credentials import open_session
from vskill_platform.web.app import create_app
from vskill_platform.web.browser import SESSION_COOKIE
from vskill_platform.worker_context import Env


@asynccontextmanager
async def browsing(
    env: Env, account: str | None = None, role: Role = Role.AUTHOR
) -> AsyncIterator[httpx2.AsyncClient]:
    """A browser at this environment's pages, signed in where an account is named (made if need be)."""
    transport = httpx2.ASGITransport(create_app(env))
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://platform.test", headers={"accept": "text/html"}
    ) as client:
        if account is not None:
            user = await create_user(account, role, by="system", reason="for a test")
            client.cookies.set(SESSION_COOKIE, await open_session(user, "a test"), domain="platform.test")
        yield client


class _Page(HTMLParser):
    """The texts of a page by the attribute that marks them."""

    def __init__(self, attribute: str) -> None:
        super().__init__()
        self._attribute = attribute
        self._open: list[tuple[str, str | None]] = []
        self.found: dict[str, str] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        name = dict(attrs).get(self._attribute)
        if name is not None:
            self.found.setdefault(name, "")
        self._open.append((tag, name))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        for _, name in self._open:
            if name is not None:
                self.found[name] += data.strip()


def marked(html: str, attribute: str) -> dict[str, str]:
    """The text inside each element that has this attribute, by its value."""
    page = _Page(attribute)
    page.feed(html)
    return page.found


def tags(html: str) -> list[tuple[str, dict[str, str | None]]]:
    """Every element with its attributes."""
    page = _Page("id")
    page.feed(html)
    return page.tags


def form_fields(html: str, action: str) -> dict[str, str]:
    """The hidden fields of the form that is sent to this address."""
    inside = False
    fields: dict[str, str] = {}
    for tag, attributes in tags(html):
        if tag == "form":
            inside = attributes.get("action") == action
        elif tag == "input" and inside and attributes.get("type") == "hidden":
            fields[attributes.get("name") or ""] = attributes.get("value") or ""
    return fields
