"""What operators do: watch the queue, sign in, decide, requeue; live, and through a restart of the server."""

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOST_CONNECTION, PHONE, serious_barriers, sign_in
from tests.browser.places import TOUR
from tools.browsing import command, make_admin, serving

pytestmark = pytest.mark.browser

#: Of the queue's list; its charts have tables too.
ROWS = "#queue-rows tr"


@pytest.fixture
def admin(opened, password):
    def make(**options):
        page = opened(**options)
        sign_in(page, "ada", password)
        return page

    return make


def test_the_queue_is_filtered_by_its_cards_and_by_its_address(opened):
    page = opened()
    page.goto("/queue")
    page.get_by_role("link", name=re.compile("Needs review")).first.click()
    expect(page).to_have_url(re.compile(r"/queue\?"))
    rows = page.locator(ROWS)
    expect(rows.first).to_contain_text("Needs review")
    expect(page.locator("#queue-rows").get_by_text("Published", exact=True)).to_have_count(0)
    page.goto(page.url)
    expect(rows.first).to_contain_text("Needs review")


def test_a_new_submission_appears_in_the_queue_without_a_reload(opened, server):
    page = opened()
    page.goto("/queue")
    page.evaluate("window.stayed = true")
    expect(page.get_by_text("Updates by itself", exact=True)).to_be_visible()
    command(server.data, "submit", TOUR, "--path", "font-installer")
    page.get_by_role("button", name=re.compile(r"Show \d+ new")).click()
    expect(page.locator(ROWS).filter(has_text="font-installer").first).to_be_visible()
    assert page.evaluate("window.stayed") is True


def test_wrong_words_do_not_sign_in_and_the_page_says_so(opened):
    page = opened(expected=(401, 403, 400))
    page.goto("/signin")
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password", exact=True).fill("not this one")
    page.locator("main form button[type=submit]").first.click()
    expect(page.get_by_role("alert")).to_be_visible()


def test_a_reviewer_approves_with_a_reason(admin):
    page = admin()
    page.goto("/admin/review")
    page.get_by_role("link", name="tidy-home").first.click()
    page.get_by_text("Approve", exact=True).first.click()
    page.get_by_role("textbox").locator("visible=true").first.fill(
        "Read it line by line: it deletes only its own cache."
    )
    page.get_by_role("button", name=re.compile("Approve")).click()
    expect(page.get_by_role("status").first).to_contain_text("tidy-home is approved")
    page.goto("/queue?q=tidy-home")
    expect(page.locator(ROWS).first).to_contain_text("Published")


def test_a_reviewer_rejects_with_a_reason_that_its_page_tells(admin):
    page = admin()
    page.goto("/admin/review")
    page.get_by_role("link", name="quick-setup").first.click()
    page.get_by_text("Reject", exact=True).first.click()
    page.get_by_role("textbox").locator("visible=true").first.fill("It pipes a download into a shell.")
    page.get_by_role("button", name=re.compile("Reject")).click()
    expect(page.get_by_role("status").first).to_contain_text("quick-setup is rejected")
    page.goto("/queue?q=quick-setup")
    page.locator(f"{ROWS} a").first.click()
    expect(page.get_by_text("It pipes a download into a shell.").first).to_be_visible()


def test_admin_pages_have_no_serious_barrier_and_fit_a_phone(admin, axe):
    page = admin(viewport=PHONE)
    found = {}
    page.goto("/admin")
    places = {
        urlsplit(one).path
        for one in page.locator("main nav a").evaluate_all("all => all.map(one => one.href)")
    }
    assert len(places) > 5
    for path in sorted({"/account", *places}):
        page.goto(path)
        if page.evaluate("document.documentElement.scrollWidth") > PHONE["width"]:
            found[path] = ["wider than a phone"]
        bad = serious_barriers(page, axe)
        found.update({path: bad} if bad else {})
    assert found == {}


def test_no_word_on_a_button_is_broken_by_a_narrow_column(admin, server):
    """A digest of 64 digits in the first column leaves the button in the last one its width."""
    command(server.data, "block", "add", "digest", "ab" * 32, "--ahead", "--reason", "A long target.")
    page = admin()
    page.goto("/admin/blocklist")
    lift = page.locator("tbody summary", has_text="Lift").first
    assert lift.bounding_box()["height"] < 40
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def test_between_a_phone_and_a_desk_the_top_is_one_line_and_no_table_is_cut(admin):
    page = admin(viewport={"width": 768, "height": 1024})
    page.goto("/admin/audit")
    page.locator(".top__account").evaluate("one => { one.textContent = 'a-very-long-name-of-an-account' }")
    assert page.get_by_role("banner").bounding_box()["height"] < 64
    assert page.evaluate("document.documentElement.scrollWidth") <= 768
    hidden = page.locator("main .card--flush").evaluate_all(
        "all => all.filter(one => one.scrollWidth > one.clientWidth).length"
    )
    assert hidden == 0


def test_on_a_phone_the_areas_are_folded_away_and_the_heading_is_in_sight(admin):
    page = admin(viewport=PHONE)
    page.goto("/admin/review")
    assert page.get_by_role("heading", level=1).bounding_box()["y"] < PHONE["height"] / 3
    areas = page.get_by_role("navigation", name="Admin")
    expect(areas.get_by_role("link", name="Blocklist")).to_be_hidden()
    areas.locator("summary").click()
    areas.get_by_role("link", name="Blocklist").click()
    expect(page).to_have_url(re.compile("/admin/blocklist"))


def test_an_open_queue_page_survives_a_restart_of_the_server(opened, tmp_path):
    """The page says that it is not connected, comes back by itself, and shows what happened meanwhile."""
    with serving(tmp_path, examples=False) as first:
        port = urlsplit(first.address).port or 0
        page = opened(base_url=first.address, expected=(LOST_CONNECTION,))
        page.goto("/queue")
        page.evaluate("window.stayed = true")
        expect(page.get_by_text("Updates by itself", exact=True)).to_be_visible()
    with serving(tmp_path, port=port, examples=False) as second:
        make_admin(second.data, "eve")
        command(second.data, "submit", str(_skill(tmp_path)))
        expect(page.get_by_text("after-restart").first).to_be_visible()
        assert page.evaluate("window.stayed") is True
        page.close()


def _skill(tmp_path):
    folder = tmp_path / "after-restart"
    folder.mkdir()
    (folder / "SKILL.md").write_text(
        "---\nname: after-restart\ndescription: Comes after a restart.\n---\n# After\n"
    )
    return folder
