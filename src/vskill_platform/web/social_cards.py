"""Pictures of skills for those who share a link: drawn as SVG from facts of the record, and turned into a PNG by resvg.

Everything on a card is foreign text: only characters that the typeface of the product has are drawn, up to a length.
The same facts give the same bytes, so a card is kept by the digest of its drawing.
"""

import asyncio
import hashlib
import textwrap
from pathlib import Path

import msgspec
import resvg_py

from vskill_platform.keeping import MOST_BYTES, Kept
from vskill_platform.web.avatars import avatar_of
from vskill_platform.web.render import environment

FONT = Path(__file__).parent / "static" / "vendor" / "inter-semibold.ttf"
#: A name up to this many characters is written in this size.
SIZES = ((15, 92), (22, 72), (30, 56), (44, 42))
#: Characters of a line of the description, and lines.
LINE, LINES = 52, 3
#: Latin, Greek and Cyrillic; then dashes, quotes and signs.
_DRAWN = ((" ", "\u052f"), ("\u2010", "\u2122"))
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


class CardFacts(msgspec.Struct, frozen=True):
    """What a card tells."""

    name: str
    owner: str
    description: str
    #: As pages write it: Scanned, Verified or Certified.
    certification: str
    version: str
    #: The host of the registry.
    registry: str


class CardPainter:
    """Draws one card at a time, and keeps those that were asked for last."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._kept: Kept[bytes] = Kept(MOST_BYTES // 4)

    async def paint(self, facts: CardFacts) -> bytes:
        """The card as a PNG."""
        drawing = draw_card(facts)
        key = hashlib.sha256(drawing.encode()).digest()
        async with self._turn:
            found = self._kept.get(key)
            if found is None:
                found = await asyncio.to_thread(_rasterise, drawing)
                self._kept.put(key, found, len(found))
            return found


def _rasterise(drawing: str) -> bytes:
    return resvg_py.svg_to_bytes(
        svg_string=drawing, skip_system_fonts=True, font_files=[str(FONT)], font_family="Inter"
    )


def draw_card(facts: CardFacts) -> str:
    """The card as SVG."""
    name = _drawable(facts.name, SIZES[-1][0])
    described = _drawable(facts.description, 400)
    return (
        environment()
        .get_template("social_card.html")
        .render(
            name=name,
            size=next(size for length, size in SIZES if len(name) <= length),
            owner=_drawable(facts.owner, LINE),
            avatar=avatar_of(facts.owner),
            lines=textwrap.wrap(described, LINE, max_lines=LINES, placeholder=f" {ELLIPSIS}"),
            certification=facts.certification,
            version=_drawable(facts.version, 20),
            registry=_drawable(facts.registry, 40),
        )
    )


def _drawable(text: str, most: int) -> str:
    """What can be drawn of a text, in one line and up to a length."""
    drawn = "".join(char if _is_drawn(char) else " " for char in text[: 4 * most])
    kept = " ".join(drawn.split())
    return kept if len(kept) <= most else kept[: most - 1].rstrip() + ELLIPSIS


def _is_drawn(char: str) -> bool:
    return char.isprintable() and any(first <= char <= last for first, last in _DRAWN)
