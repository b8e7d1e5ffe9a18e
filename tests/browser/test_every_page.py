"""What holds for every page: it fits a phone, nothing on it moves while it loads, it is small, and no barrier is found,
in both themes."""

import gzip
import re
from functools import partial

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import DESK, PHONE, WATCH_SHIFTS, find_barriers, new_context
from tests.browser.places import PUBLIC, SIGNED_IN
from vskill_platform.web.door.compression import LEVEL

pytestmark = pytest.mark.browser

#: How much of a page may move without a hand on it, as browsers measure it; below 0.1 counts as good.
MOST_SHIFT = 0.05
#: Bytes of compressed HTML.
MOST_HTML = 30_000
UNTIL_PAINTED = """
    () => new Promise(done => new PerformanceObserver(() => done()).observe({ type: "paint", buffered: true }))
"""


@pytest.fixture(scope="module")
def phone(chromium, server):
    with new_context(chromium, viewport=PHONE, base_url=server.address) as context:
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


@pytest.fixture(params=["visitor", "admin"])
def every_page(request, opened, found_places):
    """Every page that a visitor or an admin sees, and how to open it."""
    if request.param == "visitor":
        return opened, {**PUBLIC, **found_places}
    signed_in = request.getfixturevalue("signed_in")
    review = found_places["submission review"].replace("/submissions/", "/admin/review/")
    places = {**SIGNED_IN, "evidence": review, "own skill": PUBLIC["skill"], "submit": "/submit"}
    return partial(opened, storage_state=signed_in), places


@pytest.mark.parametrize(("theme", "size"), [("light", "desk"), ("dark", "phone")])
def test_no_barrier_is_found(every_page, axe, theme, size):
    make, places = every_page
    page = make(theme=theme, viewport=DESK if size == "desk" else PHONE)
    found = {}
    for name, path in places.items():
        page.goto(path)
        if barriers := find_barriers(page, axe):
            found[name] = [_told(one) for one in barriers]
    assert found == {}


@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_nothing_moves_while_a_page_loads(every_page, width):
    """Scripts and fonts that come only after the first paint move nothing that is seen already."""
    make, places = every_page
    page = make(viewport={"width": width, "height": 844})
    page.add_init_script(WATCH_SHIFTS)
    page.route(re.compile(r"/static/.*\.(js|woff2)$"), _answer_after_the_first_paint)
    moved = {}
    for name, path in places.items():
        page.goto(path)
        page.evaluate("document.fonts.ready")
        if page.locator("[data-live]").count():
            expect(page.get_by_text("Updates by itself", exact=True)).to_be_visible()
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        shift, what = page.evaluate("[window.shifts, window.shifted]")
        if shift >= MOST_SHIFT:
            moved[name] = (round(shift, 3), what[:6])
    page.unroute_all(behavior="wait")
    assert moved == {}


def _answer_after_the_first_paint(route) -> None:
    """Hold back what does not keep the page from being painted; `early.js` does, and comes at once."""
    if "/early.js" not in route.request.url:
        route.request.frame.evaluate(UNTIL_PAINTED)
    route.continue_()


def test_every_page_is_small(every_page):
    """The HTML of every page but the API's is below 30 KB compressed. What shows the secret of a form is sent as it is."""
    make, places = every_page
    page = make()
    sizes = {
        name: len(gzip.compress(page.goto(path).body(), LEVEL))
        for name, path in places.items()
        if path != "/docs/api"
    }
    large = {name: size for name, size in sizes.items() if size >= MOST_HTML}
    assert large == {}


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_what_can_be_touched_is_large_enough_on_a_phone(phone, name):
    """Buttons and fields are 44 pixels high; links within a text are as high as their line. Of a choice that is not
    seen itself, its label is touched."""
    phone.goto(PUBLIC[name])
    small = phone.evaluate(
        """() => [...document.querySelectorAll('.button:not(.button--small), input:not([type=hidden], [type=checkbox]), select')]
            .map(one => one.matches('.visually-hidden') ? one.labels[0] : one)
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


def test_an_id_is_drawn_letter_by_letter(opened):
    """Inter turns the x of `5x5` into a sign of multiplication, unless it is told not to."""
    page = opened()
    page.goto("/")
    widths = page.evaluate(
        """async () => {
            await document.fonts.load("16px Inter");
            const width = (text) => {
                const one = document.createElement("span");
                one.style = "position: absolute; font-family: Inter; font-kerning: none";
                one.textContent = text;
                document.body.append(one);
                return one.getBoundingClientRect().width;
            };
            return [width("5x5"), width("5") + width("x") + width("5")];
        }"""
    )
    assert widths[0] == pytest.approx(widths[1], abs=0.1)
    # Where the font comes too late for this page, the widths say nothing.
    assert page.evaluate("getComputedStyle(document.body).fontVariantLigatures") == "no-contextual"


def test_a_name_in_a_table_of_a_document_is_not_broken(opened):
    page = opened()
    page.goto("/docs/docs/reference/settings.md")
    name = page.get_by_role("cell").get_by_text("VSKILL_DATA_DIR", exact=True)
    assert name.bounding_box()["height"] < 30


def test_the_results_come_before_the_filters_on_a_phone(phone):
    """Whoever has chosen a filter wants to see what it left, not the list of filters again."""
    phone.goto(PUBLIC["filtered"])
    expect(phone.locator(".facets__groups")).to_be_hidden()
    assert phone.locator("#results .card").first.bounding_box()["y"] < PHONE["height"]


def _told(violation) -> str:
    places = [node["target"] for node in violation["nodes"]][:3]
    return f"{violation['id']}: {violation['help']} {places}"
