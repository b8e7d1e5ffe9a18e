"""The palette finds skills, pages and areas, for each reader what is offered to that reader."""

import pytest

from tests.support.people import signed_in
from tests.support.site import open_site
from vskill_platform.store.people.accounts import Role
from vskill_platform.web.app import create_app
from vskill_platform.web.pages.admin_areas import AREAS

pytestmark = pytest.mark.anyio


@pytest.fixture
async def site(tmp_path):
    async with open_site("memory", tmp_path) as opened:
        yield opened


async def test_without_a_word_it_lists_the_pages(site):
    page = await site.page("/palette")
    assert {"/skills", "/submit", "/queue", "/docs/clients", "/signin"} <= set(page.links)
    assert "/admin/review" not in page.links


async def test_a_word_finds_skills_pages_and_documents(site):
    canonical = await site.publish("queue-watcher")
    links = (await site.page("/palette?q=queue")).links
    assert f"/skills/{canonical}" in links and "/queue" in links and "/skills?q=queue" in links
    assert "/docs/docs/glossary.md" in (await site.page("/palette?q=glossary")).links


async def test_a_word_that_nothing_has_leads_to_the_search(site):
    page = await site.page("/palette?q=zebra%22%3E")
    assert "Nothing found" in page.text
    assert "/skills?q=zebra%22%3E" in page.links


async def test_a_search_that_says_a_filter_in_words_offers_it_first(site):
    await site.publish("slides")
    page = await site.page("/palette?q=slides+no+network")
    assert "/skills?q=slides&without=network" in page.links
    assert page.text.index("Filter") < page.text.index("All results")


async def test_a_script_gets_only_the_results(site):
    part = await site.get("/palette?q=queue", headers={"hx-request-type": "partial"})
    assert "<html" not in part.text and 'id="palette-results"' in part.text
    # By this the script knows whether they belong to what stands in the field.
    assert 'data-q="queue"' in part.text
    assert "HX-Request-Type" in part.headers["vary"]


async def test_areas_are_found_by_what_is_done_there_and_only_by_those_who_may(site):
    app = create_app(site.env)
    for role, finds in ((Role.ADMIN, True), (Role.REVIEWER, False), (Role.AUTHOR, False)):
        async with signed_in(app, site.env, role.value, role) as person:
            text = (await person.get("/palette?q=passwords")).text
            assert ('href="/admin/accounts"' in text) is finds, role
            text = (await person.get("/palette?q=add+user")).text
            assert ('href="/admin/accounts"' in text) is finds, role


@pytest.mark.parametrize(
    ("words", "document"),
    [
        ("backup", "docs/how-to/back-up.md"),
        ("upgrade", "docs/how-to/self-host.md"),
        ("restore", "docs/how-to/back-up.md"),
    ],
)
async def test_documents_are_found_by_what_they_say_and_not_by_their_titles_alone(site, words, document):
    assert f"/docs/{document}" in (await site.page(f"/palette?q={words}")).links


async def test_admin_pages_have_one_navigation_with_every_area(site):
    async with signed_in(create_app(site.env), site.env, "root", Role.ADMIN) as person:
        text = (await person.get("/admin/queue")).text
    for group, areas in AREAS.items():
        assert f">{group}</h2>" in text
        for area in areas:
            assert text.count(f'<a href="{area.address}" title=') == 1
    # Of the main navigation, and of the areas.
    assert text.count('aria-current="page"') == 2
