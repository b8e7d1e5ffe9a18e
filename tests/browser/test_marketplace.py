"""What people do first: search, open a skill, copy a command, submit one and watch it."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import DESK, PHONE
from tests.browser.places import CSV, TOUR

pytestmark = pytest.mark.browser


def open_skills(page, address: str = "/skills") -> None:
    """The list, once it searches while one types."""
    page.goto(address)
    expect(page.locator("#search[data-htmx-powered]")).to_be_visible()


def test_a_skill_is_found_while_typing_and_opened_with_the_keyboard(opened):
    page = opened()
    open_skills(page)
    page.evaluate("window.stayed = true")
    page.keyboard.press("/")
    page.keyboard.type("csv-cleaner")
    expect(page.locator("[data-item]")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"/skills\?q=csv-cleaner"))
    page.keyboard.press("ArrowDown")
    expect(page.locator("[data-item]")).to_be_focused()
    assert page.evaluate("window.stayed") is True
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("csv-cleaner")


def test_keys_in_the_palette_act_on_what_is_found_for_the_words_in_it(opened):
    """Also where they are pressed before it is found: nobody waits for an answer to press Enter."""
    page = opened()
    page.goto("/skills")
    page.keyboard.press("Control+k")
    field = page.locator("#palette [data-search-here]")
    expect(page.locator("#palette [data-item]").first).to_be_visible()
    # As while letters are put together: it chooses among them, and nothing is followed.
    field.dispatch_event("keydown", {"key": "Enter", "isComposing": True})
    page.keyboard.type("csv-cl")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#palette-results[data-q=csv-cl]")).to_be_visible()
    expect(page.locator("#palette [data-item]").last).to_be_focused()
    page.keyboard.press("Backspace")
    expect(field).to_be_focused()
    expect(field).to_have_value("csv-c")
    page.keyboard.type("leaner")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("csv-cleaner")


def test_enter_twice_in_the_palette_goes_on_where_no_answer_comes(opened):
    page = opened()
    page.goto("/skills")
    page.keyboard.press("Control+k")
    expect(page.locator("#palette [data-item]").first).to_be_visible()
    # Without the event that asks, as where the registry does not answer.
    page.locator("#palette [data-search-here]").evaluate("one => { one.value = 'csv-cl'; }")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/palette\?q=csv-cl$"))


def test_new_results_in_the_palette_leave_the_focus_where_one_types_on(opened):
    page = opened()
    page.goto("/skills")
    page.keyboard.press("Control+k")
    expect(page.locator("#palette [data-item]").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#palette [data-item]").first).to_be_focused()
    # What was typed before is answered only now.
    page.locator("#palette [data-search-here]").evaluate(
        "one => { one.value = 'csv-cl'; one.dispatchEvent(new Event('input')); }"
    )
    expect(page.locator("#palette-results[data-q=csv-cl]")).to_be_visible()
    expect(page.locator("#palette [data-search-here]")).to_be_focused()


def test_after_a_filter_the_keyboard_goes_on_at_the_results(opened):
    page = opened()
    page.goto("/skills?q=csv")
    page.get_by_role("link", name=re.compile("^No network found")).press("Enter")
    expect(page).to_have_url(re.compile("without=network"))
    for name in (re.compile("Remove the filter"), "Clear all", "csv-cleaner"):
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name=name)).to_be_focused()


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_two_skills_of_an_owner_are_compared_by_a_click(opened, size):
    page = opened(viewport=size)
    page.goto(CSV)
    page.get_by_role("link", name=re.compile("^Compare with")).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Compare")


def test_the_list_comes_back_when_the_search_is_emptied(opened):
    page = opened()
    open_skills(page, "/skills?q=csv-cleaner")
    expect(page.locator("[data-item]")).to_have_count(1)
    page.get_by_role("searchbox").fill("")
    expect(page.locator("[data-item]").nth(5)).to_be_visible()


def test_a_command_is_copied_and_the_client_is_remembered(opened, server):
    page = opened(permissions=["clipboard-read", "clipboard-write"])
    page.goto(CSV)
    page.get_by_role("radio", name="skills", exact=True).focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("radio", name="skills", exact=True)).not_to_be_checked()
    page.locator("label[for=client-curl]").click()
    page.get_by_role("button", name="Copy the command for curl").first.click()
    expect(page.locator("#announce")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert (
        copied
        == f"curl -fsSL -o csv-cleaner.zip {server.address}/api/v1/skills{CSV.removeprefix('/skills')}/archive"
    )
    page.reload()
    expect(page.get_by_role("radio", name="curl")).to_be_checked()
    expect(page.locator("#way-curl")).to_be_visible()
    expect(page.locator("#way-skills")).to_be_hidden()


def test_what_the_curl_tab_says_downloads_the_skill(opened, server):
    page = opened()
    page.goto(CSV)
    page.locator("label[for=client-curl]").click()
    command = page.locator("#way-curl code").first.inner_text()
    answer = page.request.get(command.split()[-1])
    assert answer.ok
    assert answer.body()[:2] == b"PK"


def test_the_theme_is_chosen_and_kept(opened):
    page = opened(theme="light")
    page.goto("/")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    button = page.locator("#theme")
    button.click()
    button.click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    button.click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == light


def test_times_are_said_as_people_say_them(opened):
    page = opened()
    page.goto("/skills")
    shown = page.locator("time[data-relative]").first
    expect(shown).to_have_text(re.compile("ago|now"))
    assert "UTC" in shown.get_attribute("title")


def test_a_submission_is_watched_to_its_end_without_a_reload(opened):
    page = opened()
    page.goto("/submit")
    page.get_by_label("Address").fill(TOUR)
    page.get_by_role("button", name="Find skills").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("found")
    page.get_by_label("All", exact=True).uncheck()
    page.get_by_label("meeting-minutes").check()
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile(r"/submissions/sub_"))
    page.evaluate("window.stayed = true")
    expect(page.get_by_text("Published", exact=True).first).to_be_visible()
    assert page.evaluate("window.stayed") is True


def test_a_finding_leads_to_its_line(opened):
    page = opened()
    page.goto(f"{CSV}/files/SKILL.md#L3")
    expect(page.locator("#L3")).to_be_visible()
    background = page.locator("#L3").evaluate("one => getComputedStyle(one).backgroundColor")
    assert background != page.locator("#L2").evaluate("one => getComputedStyle(one).backgroundColor")


def test_an_unknown_address_is_a_page_with_a_way_out(opened):
    page = opened(expected=(404,))
    page.goto("/no/such/page")
    page.get_by_role("link", name="Find a skill").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Skills")
