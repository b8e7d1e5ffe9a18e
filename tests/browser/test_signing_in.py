"""Signing in as people do it, in a real browser and by keyboard: at a real provider, which is another site, and by the
code that a command line shows where there is no browser. Needs the npm programs, too."""

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import DESK, PHONE, serious_barriers
from tests.browser.test_owners import make_author, picture, press
from tests.clients.clients import NOWHERE, Installed, find_clients
from tests.clients.real_issuer import CLIENT, SCOPES, RealIssuer
from tests.support.pseudo_terminal import Terminal, at_terminal
from tools.browsing import Server, command, environment_of, serving

pytestmark = pytest.mark.browser

PROGRAMS = ("vskill-client", "vskill-platform", "clawhub")
#: One of them looks for its own site first.
NOBODY_ELSE = {"HTTP_PROXY": NOWHERE, "HTTPS_PROXY": NOWHERE, "NO_PROXY": "127.0.0.1,localhost"}
#: Ends the ten minutes of a code.
EXPIRE = """
import sys
from vskill_platform.cli.process import run_in_env
from vskill_platform.domain import keys
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.store.people.device_codes import plain
from vskill_platform.worker_context import require_env

async def expire():
    kv, key = require_env("kv").kv, keys.device(plain(sys.argv[1]))
    entry = await kv.get(key)
    await kv.commit([Put(key, entry.value, entry.version, ttl_ms=1)])

run_in_env(expire)
"""


@pytest.fixture(scope="module")
def installed():
    found = find_clients()
    if found is None:
        pytest.skip("the npm clients are not installed: run `make test-clients`, or `make node` once")
    return found


@pytest.fixture(scope="module")
def port() -> int:
    """Of the registry; the issuer is told where people come back to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
        return number


@pytest.fixture(scope="module")
def issuer(installed, port, tmp_path_factory) -> RealIssuer:
    folder = tmp_path_factory.mktemp("issuer")
    return RealIssuer(installed, folder, "acme", host="localhost", registry=f"http://127.0.0.1:{port}")


@pytest.fixture(scope="module")
def registry(tmp_path_factory, chromium, issuer, port) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("single-sign-on")
    named = {"title": "Acme", "issuer": issuer.address, "scopes": SCOPES, **CLIENT}
    lines = [f"{name} = {json.dumps(value)}" for name, value in named.items()]
    sign_in = folder / "sign-in.toml"
    sign_in.write_text("\n".join(["[acme]", *lines]))
    sign_in.chmod(0o600)
    settings = {"sign_in_file": str(sign_in), "public_url": f"http://127.0.0.1:{port}"}
    with serving(folder, port=port, examples=False, **settings) as running:
        make_author(running, "lee")
        yield running


@pytest.fixture(scope="module")
def server(registry) -> Server:
    """In place of the one with the examples, which takes its time."""
    running: Server = registry
    return running


@pytest.fixture
def provider(issuer) -> Iterator[RealIssuer]:
    with issuer.running():
        yield issuer


@pytest.fixture
def visitor(opened, registry, issuer):
    """Opens a browser in which nobody has signed in anywhere."""

    def open_page(**options) -> Page:
        page: Page = opened(base_url=registry.address, others=(issuer.address,), **options)
        return page

    return open_page


def leave(page: Page, path: str = "/account") -> None:
    """Off to the provider, to come back to this path."""
    page.goto(f"/signin?next={path}")
    press(page, "Sign in with Acme")


def sign_in_there(page: Page, login: str) -> None:
    """On the provider's own pages, up to where it asks whether the registry may know."""
    page.get_by_placeholder("Enter any login").fill(login)
    page.get_by_placeholder("and password").fill("any")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Continue")).to_be_focused()


def arrive(page: Page, path: str) -> None:
    """The sign-in page's address names the path, too, so the whole address counts."""
    page.wait_for_url(re.compile(rf"^[^?]+{re.escape(path)}$"))


def sign_in(page: Page, login: str, path: str = "/account") -> None:
    leave(page, path)
    sign_in_there(page, login)
    page.keyboard.press("Enter")
    arrive(page, path)


def expect_account(page: Page, name: str | re.Pattern[str]) -> None:
    page.goto("/account")
    expect(page.get_by_role("heading", level=1)).to_have_text(name)


def test_somebody_signs_in_at_the_provider_and_out_everywhere(visitor, provider):
    """It is another site than ours: what the browser keeps for the way back must come along from there."""
    laptop, phone = visitor(), visitor(viewport=PHONE)
    for page in (laptop, phone):
        sign_in(page, "mia", "/queue")
        expect_account(page, "mia")
    press(laptop, "Sign out everywhere")
    press(laptop, "End every session and revoke every token")
    arrive(laptop, "/signin")
    for page in (laptop, phone):
        page.goto("/account")
        expect(page).to_have_url(re.compile(r"/signin\?next="))
    # The provider still knows the laptop: it asks for nothing.
    press(laptop, "Sign in with Acme")
    arrive(laptop, "/account")
    press(laptop, "Sign out")
    expect(laptop.get_by_role("heading", name="You are signed out")).to_be_visible()
    picture(laptop, "signed-out")
    laptop.get_by_role("link", name="Sign out at Acme").press("Enter")
    press(laptop, "Yes, sign me out")
    expect(laptop.get_by_text("Sign-out Success")).to_be_visible()
    leave(laptop)
    expect(laptop.get_by_placeholder("Enter any login")).to_be_visible()


def test_the_back_button_and_a_second_tab_end_in_words_and_a_way_on(visitor, provider):
    first = visitor(expected=(401,))
    leave(first)
    expect(first.get_by_placeholder("Enter any login")).to_be_visible()
    first.go_back()
    expect(first.get_by_role("button", name="Sign in with Acme")).to_be_visible()
    press(first, "Sign in with Acme")
    sign_in_there(first, "mia")
    second = first.context.new_page()
    leave(second)
    expect(second.get_by_role("button", name="Continue")).to_be_visible()
    first.keyboard.press("Enter")
    expect(first.get_by_text("That sign-in did not begin here; start again.")).to_be_visible()
    picture(first, "second-tab")
    # The tab that began last ends well, and then the first one is signed in, too.
    press(second, "Continue")
    arrive(second, "/account")
    expect_account(first, "mia")
    # Where it ended badly before, nothing is asked of somebody who is signed in by now.
    first.go_back()
    arrive(first, "/account")


def test_the_provider_goes_away_in_the_middle_and_comes_back(visitor, issuer):
    page = visitor(expected=(503, "net::ERR_"))
    with ExitStack() as until_it_is_down:
        until_it_is_down.enter_context(issuer.running())
        leave(page)
        sign_in_there(page, "mia")
        to = page.locator("form").evaluate("form => form.action")
        back = page.request.post(to, form={"prompt": "consent"}, max_redirects=0)
        while "/callback" not in back.headers["location"]:
            back = page.request.get(back.headers["location"], max_redirects=0)
    page.goto(back.headers["location"])
    expect(page.get_by_role("main")).to_contain_text("Acme cannot be reached at the moment")
    picture(page, "down")
    with issuer.running():
        press(page, "Sign in with Acme")
        sign_in_there(page, "mia")
        page.keyboard.press("Enter")
        arrive(page, "/account")
        expect_account(page, "mia")


@pytest.mark.parametrize("login", ["lee", "ops"])
def test_a_name_that_is_taken_gets_a_suffix_and_nothing_else(visitor, registry, provider, login):
    """By an account, by a team."""
    if login == "ops":
        command(registry.data, "team", "create", "ops", "--reason", "a test")
    provider.write_people(mia={"preferred_username": "mia"}, **{login: {"preferred_username": login}})
    page = visitor()
    sign_in(page, login)
    expect_account(page, re.compile(rf"^{login}-[0-9a-f]{{8}}$"))
    expect(page.get_by_role("main")).to_contain_text("author")
    expect(page.get_by_role("main")).to_contain_text("You control no repository yet")


# A machine without a browser.


class Machine:
    """Somebody's home on a machine without a browser, and the programs that they use there."""

    def __init__(self, installed: Installed, registry: str, home: Path) -> None:
        self._installed = installed
        self._registry = registry
        self._home = home
        self._environment = environment_of(home)
        del self._environment["VSKILL_DATA_DIR"]
        self._environment |= {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), **NOBODY_ELSE}

    def login(self, program: str) -> AbstractContextManager[Terminal]:
        where = () if program == "clawhub" else (self._registry,)
        return self._at_terminal(program, "login", *where)

    def whoami(self, program: str) -> str:
        with self._at_terminal(program, "whoami") as terminal:
            return terminal.read_rest()

    def _at_terminal(self, program: str, *words: str) -> AbstractContextManager[Terminal]:
        command: list[str | Path] = [Path(sys.executable).with_name(program)]
        if program == "clawhub":
            script = self._installed.modules / "clawhub/bin/clawdhub.js"
            command = [self._installed.node, script, "--registry", f"{self._registry}/clawhub"]
        return at_terminal([*command, *words], self._environment, self._home)


@pytest.fixture
def machine(installed, registry, tmp_path) -> Machine:
    return Machine(installed, registry.address, tmp_path)


def shown_code(terminal: Terminal) -> tuple[str, str]:
    """The page and the code that a person reads from the terminal."""
    shown = terminal.read_until("10 minutes")
    page, code = re.search(r"http://\S+/device", shown), re.search(r"\b[A-Z]{4}-[A-Z]{4}\b", shown)
    assert page and code, shown
    return page[0], code[0]


def type_code(page: Page, code: str) -> None:
    expect(page.get_by_label("Code")).to_be_focused()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type(code)
    page.keyboard.press("Enter")


def expect_no_such_code(page: Page) -> None:
    expect(page.get_by_role("main")).to_contain_text("There is no such code, or it has expired")


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_code_that_a_terminal_shows_is_typed_into_the_page_and_lets_it_in_once(
    visitor, provider, machine, program
):
    page = visitor(expected=(404,))
    with machine.login(program) as terminal:
        where, code = shown_code(terminal)
        page.goto(where)
        # Nobody is signed in yet: the way leads over the provider, and back to the page that asks for the code.
        press(page, "Sign in with Acme")
        sign_in_there(page, "mia")
        page.keyboard.press("Enter")
        arrive(page, "/device")
        type_code(page, "BBBB-BBBB")
        expect_no_such_code(page)
        type_code(page, code.lower().replace("-", " "))
        expect(page.get_by_role("main")).to_contain_text("asks to act as mia, from the address 127.0.0.1")
        press(page, "Let it in")
        expect(page.get_by_role("main")).to_contain_text("It is let in")
        said = terminal.read_rest()
    assert "vsk_" not in said
    assert ("Logged in as @mia" if program == "clawhub" else "as mia with the scopes read, submit") in said
    assert "mia" in machine.whoami(program)
    page.goto("/device")
    type_code(page, code)
    expect_no_such_code(page)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_code_that_has_expired_or_is_refused_ends_the_command(
    visitor, registry, provider, machine, program
):
    page = visitor(expected=(404,))
    sign_in(page, "mia", "/device")
    with machine.login(program) as terminal:
        _, code = shown_code(terminal)
        done = [sys.executable, "-c", EXPIRE, code]
        subprocess.run(done, env=environment_of(registry.data), check=True)
        type_code(page, code)
        expect_no_such_code(page)
        assert "expired" in terminal.read_rest(code=1)
    with machine.login(program) as terminal:
        _, code = shown_code(terminal)
        type_code(page, code)
        press(page, "Refuse")
        expect(page.get_by_role("main")).to_contain_text("It gets no token")
        said = terminal.read_rest(code=1)
    assert ("denied" if program == "clawhub" else "refused") in said


@pytest.mark.parametrize(("theme", "size"), [("light", DESK), ("dark", PHONE)], ids=["desk", "phone"])
def test_no_serious_barrier_on_the_way(visitor, provider, machine, axe, theme, size):
    page = visitor(theme=theme, viewport=size, expected=(404,))
    page.goto("/signin?next=/device")

    def look(name: str) -> None:
        picture(page, f"{name}-{theme}-{size['width']}")
        assert serious_barriers(page, axe) == [], name
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], name

    look("sign-in")
    sign_in(page, "mia", "/device")
    type_code(page, "BBBB-BBBB")
    expect_no_such_code(page)
    look("wrong-code")
    with machine.login("vskill-client") as terminal:
        _, code = shown_code(terminal)
        type_code(page, code)
        expect(page.get_by_role("button", name="Let it in")).to_be_visible()
        look("asked")
        press(page, "Let it in")
        expect(page.get_by_role("main")).to_contain_text("It is let in")
        look("let-in")
        terminal.read_rest()
    page.goto("/account")
    look("account")
