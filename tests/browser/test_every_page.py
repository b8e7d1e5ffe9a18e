"""What holds for every main page: it fits a phone, and no serious barrier is found, in both themes."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import DESK, PHONE
from tests.browser.places import PUBLIC

pytestmark = pytest.mark.browser

#: WCAG 2.1 A and AA, and what is good practice anyway.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]


@pytest.fixture(scope="module")
def phone(chromium, server):
    with chromium.new_context(viewport=PHONE, base_url=server.address) as context:
        yield context.new_page()


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_it_fits_a_phone_without_scrolling_sideways(phone, name):
    phone.goto(PUBLIC[name])
    assert phone.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_it_fits_with_large_text(phone, name):
    """A reader who sets larger letters than usual still gets every page in one column."""
    phone.goto(PUBLIC[name])
    phone.evaluate("document.documentElement.style.fontSize = '130%'")
    assert phone.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    phone.evaluate("document.documentElement.style.fontSize = ''")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", ["desk", "phone"])
def test_no_serious_barrier_is_found(opened, axe, theme, size):
    page = opened(theme=theme, viewport=DESK if size == "desk" else PHONE)
    found = {}
    for name, path in PUBLIC.items():
        page.goto(path)
        page.evaluate(axe)
        report = page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)
        bad = [_told(one) for one in report["violations"] if one["impact"] in ("serious", "critical")]
        if bad:
            found[name] = bad
    assert found == {}


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_what_can_be_touched_is_large_enough_on_a_phone(phone, name):
    """Buttons and fields are 44 pixels high; links within a text are as high as their line."""
    phone.goto(PUBLIC[name])
    small = phone.evaluate(
        """() => [...document.querySelectorAll('.button:not(.button--small), input:not([type=hidden], [type=checkbox]), select')]
            .filter(one => one.getClientRects().length && one.getBoundingClientRect().height < 43.5)
            .map(one => `${one.tagName} ${one.className} ${one.getBoundingClientRect().height}`)"""
    )
    assert small == []


def test_a_report_is_printed_without_the_furniture_of_the_page(opened):
    """On paper: the findings, no menus, what was folded away opened, and times that still mean something next year."""
    page = opened()
    page.goto(PUBLIC["security"])
    page.emulate_media(media="print")
    expect(page.get_by_role("heading", name="Findings")).to_be_visible()
    for furniture in (".top", ".foot", ".skill-tabs"):
        expect(page.locator(furniture)).to_be_hidden()
    told = page.locator("time[data-relative]").first.evaluate(
        "one => getComputedStyle(one, '::after').content"
    )
    assert "UTC" in told


def test_a_description_runs_as_its_own_script_does(opened):
    """Arabic in an English page: the full stop stands at its left end, not in front of the text."""
    page = opened()
    page.goto("/skills")
    text = page.locator(".card__text").first
    assert text.evaluate("one => one.matches(':dir(ltr)')")
    assert text.evaluate("one => { one.textContent = 'مرحبا بالعالم.'; return one.matches(':dir(rtl)') }")


def test_the_results_come_before_the_filters_on_a_phone(phone):
    """Whoever has chosen a filter wants to see what it left, not the list of filters again."""
    phone.goto(PUBLIC["filtered"])
    expect(phone.locator(".facets__groups")).to_be_hidden()
    assert phone.locator("#results .card").first.bounding_box()["y"] < PHONE["height"]


def _told(violation) -> str:
    places = [node["target"] for node in violation["nodes"]][:3]
    return f"{violation['id']}: {violation['help']} {places}"
