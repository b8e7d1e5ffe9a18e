"""Social cards: a picture of what can be installed, whatever its texts hold, and nothing of what cannot."""

import pytest

from tests.support.acting import take_down
from tests.support.site import open_site
from vskill_platform.web.social_cards import CardFacts, CardPainter, draw_card

pytestmark = pytest.mark.anyio

FACTS = CardFacts("csv-cleaner", "acme", "Cleans files.", "Scanned", "1.0.0", "skills.example.org")
PNG = b"\x89PNG\r\n\x1a\n"
#: Characters of a whole, a broken and an endless name.
HOSTILE = (
    "<script>&\"'",
    "\u202e\x00\x1b",
    "\u65e5\u672c\u8a9e",
    "\U0001f600",
    "a" * 5_000,
    "a " * 5_000,
    "",
)


async def test_a_skill_has_a_card_that_its_page_names(tmp_path):
    async with open_site("memory", tmp_path) as site:
        canonical = await site.publish("csv-cleaner")
        page = await site.page(f"/skills/{canonical}")
        named = {one.get("property"): one["content"] for one in page.all("meta") if "property" in one}
        assert named["og:title"].startswith("csv-cleaner by ")
        address = named["og:image"].removeprefix("http://platform.test")
        card = await site.get(address)
        assert (card.status_code, card.headers["content-type"]) == (200, "image/png")
        assert card.content.startswith(PNG) and len(card.content) < 200_000
        again = await site.get(address, headers={"if-none-match": card.headers["etag"]})
        assert again.status_code == 304


async def test_what_cannot_be_installed_has_no_card(tmp_path):
    async with open_site("memory", tmp_path) as site:
        canonical = await site.publish("csv-cleaner")
        await take_down(canonical, by="system", reason="a test")
        assert (await site.get(f"/skills/{canonical}/card.png")).status_code == 404
        assert "og:image" not in (await site.get(f"/skills/{canonical}")).text


@pytest.mark.parametrize("text", HOSTILE)
async def test_foreign_text_becomes_a_picture_and_nothing_else(text):
    painter = CardPainter()
    facts = CardFacts(text, text, text, "Scanned", text, "skills.example.org")
    drawing = draw_card(facts)
    assert "<script" not in drawing and len(drawing) < 8_000
    assert (await painter.paint(facts)).startswith(PNG)


async def test_the_same_facts_give_the_same_picture_drawn_once():
    painter = CardPainter()
    first = await painter.paint(FACTS)
    assert await painter.paint(FACTS) is first
    assert await CardPainter().paint(FACTS) == first
