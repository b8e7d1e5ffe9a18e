"""The queue page as it lives: rows and numbers that come by themselves, filters that stand in the address, and a server
that is killed and comes back under an open page. And the pages of submissions that it leads to."""

import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Route, expect

from tests.browser.conftest import DESK, LOST_CONNECTION, PHONE, WATCH_SHIFTS, new_context, serious_barriers
from tests.support.patience import wait_until
from tools.browsing import command, serving

pytestmark = pytest.mark.browser

CATEGORIES = ("waiting", "running", "cooldown", "review", "published", "failed", "cancelled")
ROWS = "#queue-rows tr"


def skill_folder(parent: Path, name: str, body: str = "Read the text and improve it.") -> Path:
    folder = parent / name
    folder.mkdir()
    (folder / "SKILL.md").write_text(
        f"---\nname: {name}\ndescription: Helps with {name}.\n---\n# {name}\n\n{body}\n"
    )
    return folder


def count_on(page, name: str) -> int:
    return int(page.locator(f".stat [data-count={name}]").inner_text().replace(",", ""))


# Filters.


def test_every_card_filters_and_counts_what_it_lists(opened, server):
    """C13: the number on a card, the rows behind it and the API agree, once nothing changes under them: the first check
    of the examples' repository submits some again."""
    page = opened()

    def agree() -> bool:
        page.reload()
        count: int = server.json("/api/v1/submissions/stats")["byCategory"][name]
        listed = page.locator(ROWS).evaluate_all("rows => rows.map(row => row.dataset.category)")
        return bool(count_on(page, name) == count and listed == [name] * min(count, 30))

    page.goto("/queue")
    assert set(server.json("/api/v1/submissions/stats")["byCategory"]) == set(CATEGORIES)
    for name in CATEGORIES:
        page.locator(f"a.stat:has([data-count={name}])").click()
        page.wait_for_url(re.compile(rf"/queue\?category={name}$"))
        expect(page.locator(f"a.stat[aria-current=true] [data-count={name}]")).to_be_visible()
        wait_until(agree, f"{name}: the card, the rows and the API differ")
    page.locator("a.stat:has([data-count=all])").click()
    page.wait_for_url(re.compile("/queue$"))


def test_an_address_is_a_view_that_can_be_shared(opened):
    page = opened()
    page.goto("/queue?state=TIER1_FAILED")
    states = page.locator(ROWS).evaluate_all("rows => rows.map(row => row.dataset.state)")
    assert states
    assert set(states) == {"TIER1_FAILED"}
    page.goto("/queue?category=published&q=csv-cl")
    expect(page.locator(ROWS)).to_have_count(1)
    expect(page.locator("#queue-q")).to_have_value("csv-cl")
    page.get_by_role("link", name="Show all").click()
    expect(page.locator(ROWS).nth(5)).to_be_visible()


def test_a_parameter_that_somebody_added_to_a_link_changes_nothing(opened):
    page = opened()
    page.goto("/queue?utm_source=letter")
    expect(page.locator(ROWS).first).to_be_visible()


# Live.


def test_a_row_and_the_numbers_come_without_a_reload(opened, server, tmp_path):
    """C1, C3: the row comes once, when it is asked for, its state follows, and the cards count it."""
    page, other = opened(), opened()
    for one, address in ((page, "/queue"), (other, "/queue?category=failed")):
        one.goto(address)
        one.evaluate("window.stayed = true")
        expect(one.get_by_text("Updates by itself", exact=True)).to_be_visible()
    before, failed = count_on(page, "all"), other.locator(ROWS).count()
    told = command(server.data, "submit", str(skill_folder(tmp_path, "arrives-live")), "--json")
    assert "arrives-live" in told
    page.get_by_role("button", name="Show 1 new").click()
    row = page.locator(ROWS).filter(has_text="arrives-live")
    expect(row.get_by_text("Published", exact=True)).to_be_visible()
    expect(row).to_have_count(1)
    expect(page.locator(".stat [data-count=all]")).to_have_text(str(before + 1))
    assert page.locator(ROWS).first.get_attribute("id") == row.get_attribute("id")
    expect(other.locator(".stat [data-count=all]")).to_have_text(str(before + 1))
    assert other.locator(ROWS).count() == failed
    assert page.evaluate("window.stayed") is other.evaluate("window.stayed") is True


def test_what_comes_moves_nothing_that_is_being_read(opened, server, tmp_path):
    """A new row waits until somebody asks for it; a row that changes stays as high as it was."""
    page = opened()
    page.goto("/queue")
    expect(page.get_by_text("Updates by itself", exact=True)).to_be_visible()
    page.evaluate(WATCH_SHIFTS.replace("buffered: true", "buffered: false"))
    first = page.locator(ROWS).first.get_attribute("id")
    command(server.data, "submit", str(skill_folder(tmp_path, "comes-quietly")))
    button = page.get_by_role("button", name="Show 1 new")
    expect(button).to_be_visible()
    expect(page.locator(".stat [data-count=all]")).to_have_text(
        str(server.json("/api/v1/submissions/stats")["total"])
    )
    assert page.locator(ROWS).first.get_attribute("id") == first
    moved = page.evaluate("[window.shifts, window.shifted]")
    assert moved[0] < 0.001, moved[1][:6]
    button.press("Enter")
    expect(page.get_by_role("link", name="comes-quietly")).to_be_focused()
    expect(button).to_be_hidden()


def test_a_row_is_opened_and_its_page_tells_the_whole_way(opened, server, tmp_path):
    page = opened()
    page.goto("/queue")
    expect(page.get_by_text("Updates by itself", exact=True)).to_be_visible()
    command(server.data, "submit", str(skill_folder(tmp_path, "tells-its-way")))
    page.get_by_role("button", name="Show 1 new").click()
    page.locator(ROWS).get_by_role("link", name="tells-its-way").click()
    expect(page.get_by_role("link", name=re.compile("See the published skill"))).to_be_visible()
    steps = page.locator(".timeline > li")
    expect(steps.first).to_contain_text("system")
    expect(steps.last).to_contain_text("by a worker")


def test_an_open_page_survives_the_death_of_its_server(chromium, server, tmp_path):
    """The server is killed, a skill is submitted while nobody listens, and a new server gets the same port: the page
    says that it is not connected, comes back by itself and shows what it missed (E6)."""
    complaints: list[str] = []
    with new_context(chromium, viewport=DESK) as context:
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: _note(complaints, message))
        with serving(tmp_path, examples=False) as first:
            page.goto(f"{first.address}/queue")
            page.evaluate("window.stayed = true")
            expect(page.get_by_text("Updates by itself", exact=True)).to_be_visible()
            first.process.kill()
            expect(page.get_by_text("Reconnecting", exact=True)).to_be_visible()
        command(tmp_path, "submit", str(skill_folder(tmp_path, "was-missed")))
        with serving(tmp_path, port=urlsplit(first.address).port or 0, examples=False):
            row = page.locator(ROWS).filter(has_text="was-missed")
            expect(row.get_by_text("Published", exact=True)).to_be_visible()
            expect(row).to_have_count(1)
            expect(page.get_by_text("Updates by itself", exact=True)).to_be_visible()
            expect(page.locator(".stat [data-count=published]")).to_have_text("1")
            assert page.evaluate("window.stayed") is True
            page.close()
    assert complaints == []


def _note(complaints, message):
    if message.type in ("error", "warning") and LOST_CONNECTION not in message.text:
        complaints.append(message.text)


# Without scripts.


def test_without_scripts_the_queue_is_filtered_searched_and_read(opened):
    page = opened(java_script_enabled=False)
    page.goto("/queue")
    page.locator("a.stat:has([data-count=failed])").click()
    expect(page).to_have_url(re.compile("category=failed"))
    page.get_by_role("searchbox").fill("wallet")
    page.get_by_role("button", name="Search").click()
    expect(page).to_have_url(re.compile("q=wallet"))
    expect(page).to_have_url(re.compile("category=failed"))
    expect(page.locator(ROWS)).to_have_count(1)
    expect(page.locator("[data-live-indicator]")).to_be_hidden()
    page.locator(ROWS).get_by_role("link").click()
    expect(page.get_by_role("heading", name="Findings")).to_be_visible()
    expect(page.get_by_text("What to do:").first).to_be_visible()


def test_a_row_that_is_in_the_list_no_more_is_shown_as_one_that_left(opened):
    """It became private, or another state, while nothing was heard."""
    page = opened()
    answers: list[str] = []

    def answer(route: Route) -> None:
        body = route.fetch().text()
        if not answers:
            gone = '<tr id="gone"><td colspan="4">It was here.</td></tr>'
            body = re.sub(r'(<tbody id="queue-rows"[^>]*>)', rf"\1{gone}", body)
        answers.append(body)
        route.fulfill(
            body=re.sub(r'data-refresh-ms="\d+"', 'data-refresh-ms="200"', body), content_type="text/html"
        )

    page.route(re.compile("/queue$"), answer)
    page.goto("/queue")
    expect(page.locator("#gone")).to_have_class(re.compile("is-left"))
    assert len(answers) > 1
    assert page.locator(f"{ROWS}.is-left").count() == 1
    page.unroute_all(behavior="wait")


# What holds for each of these pages.


@pytest.fixture(scope="module")
def places(server) -> dict[str, str]:
    """The queue narrowed down, and a submission of each kind."""
    found = {"by state": "/queue?state=PUBLISHED"}
    for category in ("published", "failed", "review"):
        listed = server.json(f"/api/v1/submissions?category={category}&limit=1")["submissions"]
        found[category] = f"/submissions/{listed[0]['id']}"
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_no_serious_barrier_and_no_sideways_scrolling(opened, axe, places, theme, size):
    page = opened(theme=theme, viewport=size)
    found = {}
    for name, path in places.items():
        page.goto(path)
        bad = serious_barriers(page, axe)
        if page.evaluate("document.documentElement.scrollWidth") > size["width"]:
            bad.append("wider than the window")
        if bad:
            found[name] = bad
    assert found == {}, json.dumps(found, indent=1)
