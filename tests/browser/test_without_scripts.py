"""JavaScript off: everything but live updates works."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.places import CSV, PUBLIC, TOUR

pytestmark = pytest.mark.browser


@pytest.fixture
def page(opened):
    return opened(java_script_enabled=False)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_page_shows_its_content(page, name):
    page.goto(PUBLIC[name])
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_role("navigation", name="Main")).to_be_visible()


def test_a_search_is_a_form(page):
    page.goto("/")
    page.get_by_role("searchbox").fill("csv")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name="csv-cleaner").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("csv-cleaner")


def test_facets_are_links(page):
    page.goto("/skills")
    page.get_by_role("link", name=re.compile("^MIT")).click()
    expect(page).to_have_url(re.compile("licence=MIT"))
    page.get_by_role("link", name=re.compile("Remove the filter")).click()
    expect(page).to_have_url(re.compile("/skills$"))


def test_every_install_command_is_there_by_choosing_its_client(page):
    page.goto(CSV)
    choices = page.locator(".switch > label")
    shown = ""
    for number in range(choices.count()):
        choices.nth(number).click()
        panel = page.locator(".switch__panel:visible")
        expect(panel).to_have_count(1)
        shown += panel.inner_text()
    for words in (
        "npx skills add",
        "npx clawhub",
        "/plugin marketplace add",
        "curl -fsSL",
    ):
        assert words in shown
    expect(page.get_by_role("button", name="Copy")).to_have_count(0)


def test_a_skill_is_submitted_and_its_page_says_where_it_stands(page):
    page.goto("/submit")
    page.get_by_label("Address").fill(TOUR)
    page.get_by_role("button", name="Find skills").click()
    boxes = page.locator("input[name=path]")
    for number in range(1, boxes.count()):
        boxes.nth(number).uncheck()
    page.get_by_role("button", name="Submit").click()
    expect(page).to_have_url(re.compile("/submissions/sub_"))
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_a_report_is_sent(page):
    page.goto("/skills/vskill-quay/operations/log-triage")
    page.get_by_text("Report this skill").click()
    page.get_by_label("What is wrong").fill("A test of the form.")
    page.get_by_role("button", name="Send the report").click()
    expect(page.get_by_text("A reviewer will look at it")).to_be_visible()
