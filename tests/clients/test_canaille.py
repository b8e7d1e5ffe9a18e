"""Canaille, a whole identity provider of others, beside npm's oidc-provider: people sign in through its pages, and it
pushes them to us by SCIM as it does to any application, when they come and when they are locked."""

import asyncio
import html
import re
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.clients.clients import Installed
from tests.clients.real_issuer import RealIssuer
from tests.clients.test_npm_oidc import HTML, WHY, Journeys, ShiftedClock, accounts_of
from tests.support import lifetimes
from tests.support.acting import create_token
from tests.support.envs import active_env
from tests.support.people import ADDRESS, browser, csrf_in, led_to
from tests.support.shelf import Shelf, open_shelf
from tests.support.streams import serving
from tools.files import ROOT
from vskill_platform.actions.people.access import MAKE_SCIM_TOKEN, ScimIssuer
from vskill_platform.actions.principal import OPERATOR
from vskill_platform.domain.people.token import TokenScope
from vskill_platform.setting_issuers import Issuer
from vskill_platform.store.people.accounts import User, read_user
from vskill_platform.web.app import create_app

pytestmark = [pytest.mark.anyio, pytest.mark.node]

PYTHON = ROOT / ".venv" / "canaille" / "bin" / "python"
SCRIPT = Path(__file__).with_name("canaille_issuer.py")
MAIL = "mia@acme.example"
#: Its library takes a secret in `Basic` as it stands there, and does not decode it as RFC 6749 (2.3.1) has it.
CLIENT: dict[str, Any] = {"client_id": "the-registry", "client_secret": "a-secret-without-anything-to-encode"}
_FIELD = re.compile(r'name="csrf_token"[^>]* value="([^"]+)"|value="([^"]+)"[^>]* name="csrf_token"')


class Canaille:
    """Its process, which does what it is told by lines."""

    def __init__(self, process: subprocess.Popen[bytes], issuer: Issuer) -> None:
        self._process = process
        self.issuer = issuer
        self._signed_in_at = 0

    async def tell(self, line: str) -> str:
        """Have something done to somebody; their id there."""
        return await asyncio.to_thread(self._tell, line)

    def _tell(self, line: str) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()
        done, _, identifier = self._process.stdout.readline().decode().partition(" ")
        assert done == "done"
        return identifier.strip()

    async def sign_in(self, here: httpx2.AsyncClient, login: str = "mia") -> httpx2.Response:
        """Through its own pages; what the registry answers whoever comes back. Access tokens that it issues to one person
        within a second are the same, which its own database refuses."""
        while int(time.time()) == self._signed_in_at:  # noqa: ASYNC110 - nobody tells that a second is over
            await asyncio.sleep(0.05)
        page = await here.get("/signin", headers=HTML)
        to = led_to(await here.post("/signin/canaille", data={"csrf": csrf_in(page.text)}, headers=HTML))
        async with httpx2.AsyncClient(base_url=self.issuer.issuer) as there:
            answer = await there.get(to)
            for _ in range(10):
                where = answer.headers.get("location", "")
                if where.startswith(ADDRESS):
                    back = await here.get(where.removeprefix(ADDRESS), headers=HTML)
                    self._signed_in_at = int(time.time())
                    return back
                if where:
                    answer = await there.get(where)
                    continue
                given = _FIELD.search(answer.text)
                assert given, answer.text
                sent = {
                    "csrf_token": html.unescape(given[1] or given[2]),
                    "login": login,
                    "password": "a long password",
                }
                answer = await there.post(str(answer.url), data=sent)
        raise AssertionError(answer.text)


@contextmanager
def canaille(folder: Path, issuer: Issuer, directory: str, token: str) -> Iterator[Canaille]:
    assert PYTHON.exists(), "Canaille is not there: run 'make test-clients' once"
    folder.mkdir()
    port, back = str(urlsplit(issuer.issuer).port), f"{ADDRESS}/signin/canaille/callback"
    command: list[str | Path] = [PYTHON, SCRIPT, folder, port, directory, token, back]
    quiet = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with lifetimes.running(command, **quiet) as process:
        assert process.stdout is not None and process.stdout.readline() == b"listening\n"
        yield Canaille(process, issuer)


class Company:
    """A registry, Canaille as its issuer and directory, and a second issuer."""

    def __init__(self, shelf: Shelf, provider: Canaille, other: RealIssuer) -> None:
        self.shelf = shelf
        self.provider = provider
        self.other = other

    async def user(self, name: str) -> User:
        with active_env(self.shelf.env):
            user, _ = await read_user(name)
        assert user is not None
        return user


@pytest.fixture
async def company(tmp_path, installed: Installed) -> AsyncIterator[Company]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    scopes = ("openid", "profile", "email", "groups")
    issuer = Issuer(name="canaille", issuer=address, scopes=scopes, **CLIENT)
    other = RealIssuer(installed, tmp_path, "other")
    settings: dict[str, Any] = {"public_url": ADDRESS, "rate_limits": "off"}
    async with open_shelf(
        tmp_path / "shelf", clock=ShiftedClock(), issuers=(issuer, other.configured), **settings
    ) as shelf:
        with active_env(shelf.env):
            asked = ScimIssuer(issuer="canaille", reason=WHY)
            token = (await MAKE_SCIM_TOKEN(shelf.env, OPERATOR, asked)).token
        async with serving(shelf.env) as here:
            with canaille(tmp_path / "canaille", issuer, f"{here}/scim/v2/canaille/", token) as provider:
                yield Company(shelf, provider, other)


async def test_it_pushes_who_comes_and_who_is_locked_and_everything_ends_at_once(company):
    shelf, provider = company.shelf, company.provider
    subject = await provider.tell(f"add mia {MAIL}")
    mia = await company.user("mia")
    assert [(one.issuer, one.id) for one in mia.identities] == [(provider.issuer.issuer, subject)]
    assert not mia.disabled and mia.identities[0].directory is not None
    async with browser(create_app(shelf.env)) as here:
        assert (await provider.sign_in(here)).status_code == 303
        assert await accounts_of(shelf) == ["mia"], "the account that was pushed signs in"
        with active_env(shelf.env):
            secret = (await create_token("mia", "x", [TokenScope.READ], by="system", days=30)).secret
        bearer = {"authorization": f"Bearer {secret}"}

        async def seen() -> tuple[int, int]:
            page = await here.get("/account", headers=HTML)
            return page.status_code, (await here.get("/api/v1/account", headers=bearer)).status_code

        assert await seen() == (200, 200)
        await provider.tell("lock mia")
        assert (await company.user("mia")).disabled and await seen() == (303, 401)
        await provider.tell("unlock mia")
        assert not (await company.user("mia")).disabled and await seen() == (303, 401)
        shelf.env.clock.shift += 1_000
        assert (await provider.sign_in(here)).status_code == 303


async def test_the_same_subject_and_address_at_two_issuers_are_two_people(company):
    shelf, provider, other = company.shelf, company.provider, company.other
    subject = await provider.tell(f"add mia {MAIL}")
    claims = {"preferred_username": "mia", "email": MAIL, "email_verified": True}
    other.write_people(**{subject: claims})
    with other.running():
        async with browser(create_app(shelf.env)) as here:
            assert (await provider.sign_in(here)).status_code == 303
        assert (await Journeys(shelf, other, subject).sign_in()).status_code == 303
    names = await accounts_of(shelf)
    assert len(names) == 2 and names[0] == "mia" and names[1].startswith("mia-")
    pairs = [[(one.issuer, one.id) for one in (await company.user(name)).identities] for name in names]
    assert pairs == [[(provider.issuer.issuer, subject)], [(other.address, subject)]]
    await provider.tell("lock mia")
    assert [(await company.user(name)).disabled for name in names] == [True, False]


async def test_signing_out_everywhere_ends_each_session_that_began_there(company):
    shelf, provider = company.shelf, company.provider
    await provider.tell(f"add mia {MAIL}")
    app = create_app(shelf.env)
    async with browser(app) as laptop, browser(app) as phone:
        for client in (laptop, phone):
            assert (await provider.sign_in(client)).status_code == 303
        page = await laptop.get("/account", headers=HTML)
        await laptop.post("/account/sign-out-all", data={"csrf": csrf_in(page.text)}, headers=HTML)
        for client in (laptop, phone):
            assert (await client.get("/account", headers=HTML)).status_code == 303
