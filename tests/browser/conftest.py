"""A real server with the bundled examples and a real Chromium. Every test also proves two things by itself: the browser
had nothing to complain about, and it asked nobody but our own server.

Without a Chromium these tests are skipped, and under `CI=true` that is a failure.
"""

import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser.places import TOUR
from tests.support.patience import PATIENCE_S
from tools.browsing import MISSING, find_chromium, make_admin, open_browser, serving

DESK = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 780}
VENDOR = Path(__file__).parent / "vendor"
#: What every wait of a browser is given; only a guard against hanging.
PATIENCE_MS = PATIENCE_S * 1000
expect.set_options(timeout=PATIENCE_MS)
#: WCAG 2.1 A and AA, and what is good practice anyway.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
#: A browser that loses its server says so in the console, whatever the page does about it.
LOST_CONNECTION = "net::ERR_"
#: So does one that leaves a page while that asks for something.
LEFT_WHILE_ASKING = "AbortError: The user aborted a request."
#: Adds up what moves without a click or a key, and names it.
WATCH_SHIFTS = """
    window.shifts = 0;
    window.shifted = [];
    new PerformanceObserver(list => {
        for (const entry of list.getEntries()) {
            if (entry.hadRecentInput) continue;
            window.shifts += entry.value;
            for (const { node } of entry.sources) {
                const one = node?.nodeType === 1 ? node : node?.parentElement;
                if (one) window.shifted.push(`${one.tagName}.${one.className}#${one.id} ${entry.value.toFixed(3)}`);
            }
        }
    }).observe({ type: "layout-shift", buffered: true });
"""


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


@pytest.fixture(scope="session")
def signed_in(chromium, server, password):
    """The cookies of the admin `ada`."""
    with new_context(chromium, base_url=server.address) as context:
        sign_in(context.new_page(), "ada", password)
        return context.storage_state()


def new_context(chromium: Browser, **options) -> BrowserContext:
    """A window of its own, with the patience of the tests."""
    context = chromium.new_context(**options)
    context.set_default_timeout(PATIENCE_MS)
    return context


def sign_in(page: Page, name: str, password: str, path: str = "/account") -> None:
    """By keyboard, and to the page at this path. The form's address names the path too, so the whole address counts."""
    page.goto(f"/signin?next={path}")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password", exact=True).fill(password)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(rf"^[^?]+{re.escape(path)}$"))


@pytest.fixture
def person(opened, registry, passwords):
    """Opens a page as somebody; `registry` and `passwords` are those of the file."""

    def open_page(name: str, path: str = "/account", **options) -> Page:
        page: Page = opened(base_url=registry.address, **options)
        sign_in(page, name, passwords[name], path)
        return page

    return open_page


@pytest.fixture(scope="session")
def found_places(server) -> dict[str, str]:
    """Pages whose addresses the server gives: a submission of each fate, what waits for a reviewer, a hand-in."""
    found: dict[str, str] = {}
    for category in ("published", "failed", "review"):
        listed = server.json(f"/api/v1/submissions?category={category}&limit=1")["submissions"]
        found |= {f"submission {category}": f"/submissions/{one['id']}" for one in listed}
    found["hand-in"] = submit_many(server, [(TOUR, "no/such"), (TOUR, "skills/tour-of-a-skill")])
    return found


def submit_many(server, places) -> str:
    """Submit places together; the path of the page that follows them."""
    body = {"submissions": [{"repoUrl": repo, "skillPath": path} for repo, path in places]}
    request = Request(
        f"{server.address}/api/v1/submissions/bulk",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    with urlopen(request, timeout=PATIENCE_S) as answer:
        page: str = json.load(answer)["page"]
        return page


@pytest.fixture
def opened(chromium, server):
    """Makes pages, and at the end says what any of them had to complain about."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def make(*, expected: tuple[int | str, ...] = (), others=(), viewport=None, theme="light", **options):
        """`others` are sites that a person is led to."""
        context = new_context(
            chromium,
            viewport=viewport or DESK,
            color_scheme=theme,
            base_url=options.pop("base_url", server.address),
            **options,
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: _note_console(complaints, message, expected, others))
        page.on("pageerror", lambda error: complaints.append(f"script error: {error}"))
        page.on("request", lambda request: _note_request(complaints, request, server, others))
        return page

    yield make
    for context in contexts:
        context.close()
    assert complaints == []


def _note_console(complaints, message, expected, others):
    if message.type not in ("error", "warning") or LEFT_WHILE_ASKING in message.text:
        return
    if others and (message.location.get("url") or "").startswith(others):
        return
    if any(
        one in message.text if isinstance(one, str) else f"status of {one}" in message.text
        for one in expected
    ):
        return
    complaints.append(f"{message.type}: {message.text} ({message.location.get('url')})")


def _note_request(complaints, request, server, others):
    host = server.address.rpartition(":")[0]
    if not request.url.startswith((host, "data:", "blob:", *others)):
        complaints.append(f"a request left the host: {request.url}")


@pytest.fixture(scope="session")
def axe() -> str:
    """The accessibility checker, if its bytes are the recorded ones."""
    recorded = json.loads((VENDOR / "VENDORED.json").read_text())[0]["files"]["axe.min.js"]
    script = gzip.decompress((VENDOR / recorded["keptAs"]).read_bytes())
    assert hashlib.sha256(script).hexdigest() == recorded["sha256"]
    return script.decode()


def find_barriers(page: Page, axe: str) -> list[dict[str, Any]]:
    """What it complains about on a page. What it is content with is neither collected nor sent over."""
    page.evaluate(axe)
    found: list[dict[str, Any]] = page.evaluate(
        "rules => axe.run(document, {runOnly: rules, resultTypes: ['violations']}).then(done => done.violations)",
        RULES,
    )
    return found


def serious_barriers(page: Page, axe: str) -> list[str]:
    return [
        f"{one['id']} {[node['target'] for node in one['nodes']][:3]}"
        for one in find_barriers(page, axe)
        if one["impact"] in ("serious", "critical")
    ]
