"""Being told of a report, in a real browser, by keyboard and visible labels: visitors report a skill, the operator sees
that something is unread, opens it and decides; the reporter and the skill's owner hear what they may know."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_owners import make_author, press
from tests.browser.test_queue import skill_folder
from tests.support.patience import wait_until
from tools.browsing import command, make_admin, serving

pytestmark = pytest.mark.browser

NAME = "upload~ann/skills/notes"
#: What only reviewers read.
WRITTEN, DECIDED = "It sends my notes elsewhere.", "The second file posts them to a stranger."


@pytest.fixture(scope="module")
def registry(tmp_path_factory, chromium):
    with serving(tmp_path_factory.mktemp("told"), examples=False) as running:
        yield running


@pytest.fixture(scope="module")
def passwords(registry, tmp_path_factory) -> dict[str, str]:
    """The accounts; ann has published a skill."""
    made = {
        "ada": make_admin(registry.data),
        "ann": make_author(registry, "ann"),
        "zoe": make_author(registry, "zoe"),
    }
    folder = skill_folder(tmp_path_factory.mktemp("skills"), "notes", "Read the notes.")
    command(registry.data, "--as", "ann", "submit", str(folder), "--no-watch")
    wait_until(lambda: registry.json("/api/v1/skills")["skills"], "the skill was not published")
    return made


def report(page: Page, reason: str) -> None:
    press(page, "Report this skill")
    page.get_by_label("Category").select_option("malware")
    page.get_by_label("What is wrong").focus()
    page.keyboard.type(reason)
    press(page, "Send the report")
    expect(page.get_by_role("status").get_by_text("Thank you. A reviewer will look at it.")).to_be_visible()


def open_notifications(page: Page, text: str) -> None:
    """Wait until the header says that something is unread, and open the page where this is told."""
    bell = page.get_by_role("link", name=re.compile(r"^Notifications, \d+ unread$"))

    def is_told() -> bool:
        page.goto("/skills")
        if not bell.count():
            return False
        bell.focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/account/notifications")
        return page.get_by_role("link", name=text).count() > 0

    wait_until(is_told, f"nobody was told: {text}")


def test_a_report_reaches_the_operator_and_its_decision_the_reporter_and_the_owner(person, opened, registry):
    visitor: Page = opened(base_url=registry.address)
    visitor.goto(f"/skills/{NAME}")
    report(visitor, "I have no account, and it is wrong.")
    expect(visitor.get_by_role("link", name=re.compile("Notifications"))).to_have_count(0)
    reporter = person("zoe", f"/skills/{NAME}")
    report(reporter, WRITTEN)

    operator = person("ada", "/admin")
    told = f"Somebody reported {NAME}: malware."
    open_notifications(operator, told)
    operator.get_by_role("link", name=told).first.focus()
    operator.keyboard.press("Enter")
    expect(operator.get_by_role("heading", level=1)).to_have_text("Reports")
    operator.wait_for_load_state()
    of_zoe = operator.get_by_role("article").filter(has_text=WRITTEN)
    of_zoe.locator("summary").filter(has_text="Uphold").press("Enter")
    of_zoe.get_by_label("Reason").first.focus()
    operator.keyboard.type(DECIDED)
    operator.keyboard.press("Enter")
    expect(operator.get_by_role("status").first).to_contain_text(f"The report about {NAME} is upheld.")

    open_notifications(reporter, f"A reviewer upheld your report about {NAME}.")
    owner = person("ann", "/account")
    open_notifications(owner, f"A reviewer upheld a report about {NAME}, which you maintain: malware.")
    for page in (reporter, owner):
        shown = page.locator("main").inner_text()
        assert DECIDED not in shown and WRITTEN not in shown
    assert "zoe" not in owner.locator("main").inner_text()
    press(owner, "Mark all as read")
    expect(owner.get_by_role("link", name="Notifications", exact=True)).to_be_visible()


def test_the_page_says_that_no_mail_is_sent(person):
    page = person("zoe", "/account/notifications")
    expect(page.locator("main")).to_contain_text("This registry does not send mail")
