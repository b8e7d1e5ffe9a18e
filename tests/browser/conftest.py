"""A real server with the bundled examples and a real Chromium. Every test also proves two things by itself: the browser
had nothing to complain about, and it asked nobody but our own server.

Without a Chromium these tests are skipped, and under `CI=true` that is a failure.
"""

import gzip
import hashlib
import json
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, sync_playwright

from tools.browsing import MISSING, find_chromium, make_admin, open_browser, serving

DESK = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 780}
VENDOR = Path(__file__).parent / "vendor"
#: What a page under test is given to settle.
PATIENCE_MS = 20_000


@pytest.fixture(scope="session")
def chromium():
    program = find_chromium()
    if program is None:
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        browser = open_browser(playwright, program)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory, chromium):
    with serving(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture(scope="session")
def password(server):
    return make_admin(server.data, "ada")


@pytest.fixture
def opened(chromium, server):
    """Makes pages, and at the end says what any of them had to complain about."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def make(*, expected: tuple[int | str, ...] = (), viewport=None, theme="light", **options):
        context = chromium.new_context(
            viewport=viewport or DESK,
            color_scheme=theme,
            base_url=options.pop("base_url", server.address),
            **options,
        )
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: _note_console(complaints, message, expected))
        page.on("pageerror", lambda error: complaints.append(f"script error: {error}"))
        page.on("request", lambda request: _note_request(complaints, request, server))
        return page

    yield make
    for context in contexts:
        context.close()
    assert complaints == []


def _note_console(complaints, message, expected):
    if message.type not in ("error", "warning"):
        return
    if any(
        one in message.text if isinstance(one, str) else f"status of {one}" in message.text
        for one in expected
    ):
        return
    complaints.append(f"{message.type}: {message.text} ({message.location.get('url')})")


def _note_request(complaints, request, server):
    host = server.address.rpartition(":")[0]
    if not request.url.startswith((host, "data:", "blob:")):
        complaints.append(f"a request left the host: {request.url}")


@pytest.fixture(scope="session")
def axe() -> str:
    """The accessibility checker, if its bytes are the recorded ones."""
    recorded = json.loads((VENDOR / "VENDORED.json").read_text())[0]["files"]["axe.min.js"]
    script = gzip.decompress((VENDOR / recorded["keptAs"]).read_bytes())
    assert hashlib.sha256(script).hexdigest() == recorded["sha256"]
    return script.decode()
