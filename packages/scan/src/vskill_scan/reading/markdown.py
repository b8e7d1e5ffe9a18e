"""Cuts markdown into pieces: front matter, headings, paragraphs, lists, fences, inline code, block quotes, tables and
what HTML hides. `outline` tells where they are; this module gives them their role and polarity, once somebody asks for
a place in the text.

A block's polarity comes from its own sentences, from the line that leads it, and from the headings above it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import cached_property
from itertools import groupby

import msgspec
import re2

from vskill_scan import polarity
from vskill_scan.model import Fact, Layer, Piece, TextRole
from vskill_scan.polarity import Title
from vskill_scan.reading.languages import fence_role
from vskill_scan.reading.outline import LOADED, Outline
from vskill_scan.reading.overlay import Stretch, overlay

_SPEECH = re2.compile(rb'"[^"\n]{8,300}"')
_ADMONITION = re2.compile(
    rb"(?i)^>\s*(?:\[!|\*\*|__|[^\x00-\x7f]|(?:note|important|warning|caution|tip|prerequisites?|required|"
    rb"requirements?|before|setup|install)\b)"
)
#: A column that holds what to look for. How bad something is ("severity") says nothing of what it is there for.
_INDICATORS = re2.compile(
    rb"(?i)\b(?:patterns?|indicators?|signatures?|attacks?|threats?|malicious|red flags?|dangerous|detect(?:s|ion)?)\b"
)
#: Asks for what a table or block of the same section holds.
_USES_ABOVE = re2.compile(
    rb"(?i)\b(?:run|execute|paste|enter|type|launch|carry out|perform|apply|use|do|follow|work through|go through)\s+"
    rb"(?:\w+\s+){0,4}(?:commands?|lines?|rows?|entries|steps?|table|above|below|list(?:ed)?|each|column|block|them|it|this|these|all)\b"
)
_UNSEEN = re2.compile(
    rb"(?i)<([a-z][a-z0-9]{0,12})(?:\s[^<>]{0,400})?(?:\shidden|\s[^<>]{0,400}(?:display\s*:\s*none|visibility\s*:\s*hidden"
    rb"|font-size\s*:\s*0|opacity\s*:\s*0(?:[^.0-9]|\.0)|(?:width|height)\s*:\s*0(?:px)?\s*[;\"']|color\s*:\s*"
    rb"(?:white|#fff(?:fff)?|transparent|rgba?\(255,\s*255,\s*255)))(?:[\s;\"'=),][^<>]{0,400})?>"
)
#: One of these stands in each of them.
_UNSEEN_WORDS = tuple(b"hidden display visibility font-size opacity width height color".split())
#: How far the end of an unseen element is looked for.
_UNSEEN_REACH = 20_000
MOST_FACTS = 20
LONGEST_LEAD = 200
_REFERENCE_COMMENT = re2.compile(
    rb"(?m)^\[(?:(?://|comment|_metadata_[^\]]{0,40})\]:\s*(?:#|<>)?|[^\]\n]{1,60}\]:\s*(?:#|<>))\s*[(\"'][^\n]*$"
)


def cut_markdown(path: str, text: bytes) -> Layer:
    outline = Outline(text)
    unseen = _unseen(text)
    hidden = [Fact("hidden", start, end - start, {"how": how}) for start, end, how in unseen[:MOST_FACTS]]
    roles = set(_ROLES)
    if outline.loads:
        roles.add(TextRole.LOAD)
    if outline.facts or unseen:
        roles.add(TextRole.HIDDEN)
    return Layer(
        path,
        text,
        _Pieces(outline, unseen),
        outline.blocks,
        [*outline.facts, *hidden],
        bytes(outline.flowing),
        roles=frozenset(roles),
    )


#: What there may be in any prose; what is hidden, or runs at load time, can be told from the outline.
_ROLES = frozenset(TextRole) - {TextRole.LOAD, TextRole.HIDDEN, TextRole.TEST}
Unseen = tuple[int, int, str]


class _Pieces:
    """Cuts the segment around a place, once somebody asks for it."""

    def __init__(self, outline: Outline, unseen: list[Unseen]) -> None:
        self._outline = outline
        self._unseen = [Stretch(start, end, TextRole.HIDDEN) for start, end, _ in unseen]
        self._cut: dict[int, list[Piece]] = {}

    def __call__(self, offset: int) -> list[Piece]:
        at = bisect_right(self._starts, offset) - 1
        if at not in self._cut:
            blocks = self._segments[max(at, 0)] if self._segments else []
            pieces = [piece for block in blocks for piece in cut(self._outline, block, self._warnings)]
            pieces = pieces or [Piece(0, len(self._outline.text), TextRole.FOLLOW, 0)]
            self._cut[at] = overlay(pieces, self._unseen)
        return self._cut[at]

    @cached_property
    def _segments(self) -> list[list["MarkdownBlock"]]:
        blocks = (block for block in blocks_of(self._outline) if block.start < block.end)
        return [list(inside) for _, inside in groupby(blocks, key=lambda block: block.segment)]

    @cached_property
    def _starts(self) -> list[int]:
        return [blocks[0].start for blocks in self._segments]

    @cached_property
    def _warnings(self) -> list[int]:
        # One pass over the whole text finds its words of warning faster than one pass over each block.
        return list(polarity.warnings(self._outline.text))


def _unseen(text: bytes) -> list[Unseen]:
    """What style or markdown's own tricks keep from the rendered page."""
    found = []
    lower = text.lower() if b"<" in text else b""
    if any(word in lower for word in _UNSEEN_WORDS):
        for match in _UNSEEN.finditer(text):
            tag = match.group().lower()
            if b"background" in tag and b"none" not in tag and b"hidden" not in tag:
                continue
            closing = text.find(b"</" + match.group(1), match.end(), match.end() + _UNSEEN_REACH)
            found.append((match.start(), closing if closing > 0 else match.end(), "style"))
    if b"]:" in text:
        found.extend(
            (match.start(), match.end(), "link-comment") for match in _REFERENCE_COMMENT.finditer(text)
        )
    return found


class Lead:
    """What a paragraph or heading says about the block that follows; looked at when there is one."""

    def __init__(self, text: bytes = b"", *, warning: bool = True) -> None:
        self.text = text
        self._warning = warning

    @cached_property
    def warns(self) -> bool:
        return self._warning and polarity.speaks_about(self._last) and not polarity.tells(self._last)

    @cached_property
    def asks(self) -> bool:
        return self._warning and polarity.asks(self._last)

    @cached_property
    def example(self) -> bool:
        return polarity.gives_example(self._last)

    @cached_property
    def quotes_attacks(self) -> bool:
        """Whether it gives examples of what it warns of."""
        return self._warning and self.example and polarity.speaks_about(self.text) and not self.asks

    @cached_property
    def _last(self) -> bytes:
        """The end of it, unless that is a long sentence which leads to nothing."""
        last = polarity.last_sentence(self.text)
        leads = len(last) < LONGEST_LEAD or last.endswith((b":", b":**", b":*", b"`:"))
        return last if leads else b""


class Heading:
    """A heading; what it says is worked out for the blocks below it that somebody asks for."""

    def __init__(self, text: bytes, level: int) -> None:
        self.text = text
        self.level = level

    @cached_property
    def says(self) -> Title:
        # The title names the skill's subject; if it could warn, a title would switch the rules off for the whole file.
        return polarity.title_says(self.text) if self.level > 1 else Title.PLAIN

    @cached_property
    def acts(self) -> bool:
        return polarity.title_acts(self.text)


class Section:
    """The prose between two headings: what it says about the tables and code there."""

    def __init__(self) -> None:
        self.texts: list[bytes] = []

    @cached_property
    def asks(self) -> bool:
        """Whether a sentence asks for what stands in a table or block."""
        sentences = (text[a:b] for text in self.texts for a, b in polarity.sentences(text, 0, len(text)))
        return any(_USES_ABOVE.search(one) and not polarity.speaks_about(one) for one in sentences)

    @cached_property
    def warns(self) -> bool:
        """Whether a sentence speaks about bad things, or denies something."""
        return any(map(polarity.speaks_about, self.texts))


class MarkdownBlock(msgspec.Struct, frozen=True, gc=False):
    """A part of the outline, with everything outside it that decides what it is."""

    kind: str
    start: int
    end: int
    #: its language
    said: str
    segment: int
    section: int
    #: the headings that it stands under
    above: tuple[Heading, ...]
    #: what stood before it
    lead: Lead
    #: what stands around it, before and after
    around: Section

    @property
    def title(self) -> Title:
        return max((heading.says for heading in self.above), default=Title.PLAIN)

    @property
    def title_warns(self) -> bool:
        return self.title is not Title.PLAIN


def blocks_of(outline: Outline) -> list[MarkdownBlock]:
    """The parts in order, each with its place among the others."""
    blocks: list[MarkdownBlock] = []
    segment = section = 0
    above: tuple[Heading, ...] = ()
    lead = Lead()
    around = Section()
    for kind, start, end, said in outline.parts:
        if kind == "heading":
            section += 1
            around = Section()
            heading = Heading(outline.text[start:end], int(said))
            above = (*(one for one in above if one.level < heading.level), heading)
            lead = Lead(heading.text, warning=False)
        # A list is one segment, and so is the line that leads it; each of its items is read by itself.
        segment += kind not in _CONTINUING
        blocks.append(MarkdownBlock(kind, start, end, said, segment, section, above, lead, around))
        if kind == "paragraph":
            lead = Lead(outline.text[start:end])
        if kind in _SPOKEN:
            around.texts.append(outline.text[start:end])
        if kind in _FENCES:
            lead = Lead(lead.text, warning=False)
        segment += kind == "front"
    return blocks


_CONTINUING = frozenset(("item", "front"))
_FENCES = frozenset(("fence", "prose"))
_SPOKEN = frozenset(("paragraph", "item", "quote"))


def cut(outline: Outline, block: MarkdownBlock, warnings: list[int]) -> list[Piece]:
    """The pieces of one block. `warnings` are the places of all words of warning."""
    cutter = _Cutter(outline, block, warnings)
    _PARTS[block.kind](cutter, block.start, block.end)
    return cutter.pieces


class _Cutter:
    """Cuts one block."""

    def __init__(self, outline: Outline, block: MarkdownBlock, warnings: list[int]) -> None:
        self.outline = outline
        self.text = outline.text
        self.block = block
        self.warnings = warnings
        self.pieces: list[Piece] = []

    @cached_property
    def warns(self) -> bool:
        """Whether the headings above or the line before it turn it into a warning."""
        return self.block.title_warns or self.block.lead.warns

    def on_front(self, start: int, end: int) -> None:
        self.pieces.append(Piece(start, end, TextRole.CONFIG, 0))

    def on_heading(self, start: int, end: int) -> None:
        self._add(start, end, TextRole.FOLLOW, start if self.block.title_warns else -1)

    def on_item(self, start: int, end: int) -> None:
        warns = self.warns and not polarity.asks(self.text[start:end])
        self._prose(start, end, TextRole.FOLLOW, warns=warns)

    def on_paragraph(self, start: int, end: int) -> None:
        warns = self.block.title_warns and not polarity.asks(self.text[start:end])
        self._prose(start, end, TextRole.FOLLOW, warns=warns)

    def on_quote(self, start: int, end: int) -> None:
        asks = _ADMONITION.match(self.text[start:end]) is not None and not self.block.lead.example
        self._prose(start, end, TextRole.FOLLOW if asks else TextRole.QUOTE, warns=self.warns)

    def on_table(self, start: int, end: int) -> None:
        head = self.text[start : self.text.find(b"\n", start, end) % (end + 1)]
        asked = self.block.lead.asks or self.block.around.asks
        listed = (self.warns or _INDICATORS.search(head) is not None) and not asked
        at = start
        while at < end:
            stop = self.text.find(b"\n", at, end) % (end + 1)
            # A row that tells to do something is no entry of a list of bad things.
            quoted = listed and not any(map(polarity.tells, self.text[at:stop].split(b"`")[::2]))
            role = TextRole.QUOTE if quoted else TextRole.FOLLOW
            self._prose(at, stop, role, warns=self.warns and quoted)
            at = stop + 1

    # What cannot be seen, and code.

    def on_comment(self, start: int, end: int) -> None:
        self._add(start, end, TextRole.HIDDEN, -1)

    def on_text_fence(self, start: int, end: int) -> None:
        role = TextRole.QUOTE if self.block.lead.example else TextRole.FOLLOW
        self._prose(start, end, role, warns=self.warns)

    def on_fence(self, start: int, end: int) -> None:
        role = TextRole.LOAD if self.block.said == LOADED else fence_role(self.block.said)
        warns = self._is_excused(role)
        self._add(start, end, role, start if warns else -1)
        if not warns and self._may_contrast(start, end):
            marked = polarity.marked_lines(self.text, start, end)
            self._overlay_from(0, [Stretch(begin, stop, warns=True) for begin, stop in marked])

    def _is_excused(self, role: TextRole) -> bool:
        """Whether code is shown to warn of it. What runs at load time runs whatever is said about it."""
        if role is TextRole.LOAD:
            return False
        lead, around = self.block.lead, self.block.around
        titled = self.block.title is Title.SUBJECT and not lead.asks and around.warns and not around.asks
        return lead.warns or titled

    def _may_contrast(self, start: int, end: int) -> bool:
        """Whether comments that call code bad are believed: nobody asks for it, and there is better code beside it or
        a text that speaks about bad things."""
        lead, around = self.block.lead, self.block.around
        if lead.asks or around.asks or any(one.acts for one in self.block.above):
            return False
        contrast = polarity.shows_better(self.text[start:end])
        return contrast or around.warns or self.block.title is not Title.PLAIN

    # Prose.

    def _prose(self, start: int, end: int, role: TextRole, *, warns: bool) -> None:
        if end <= start:
            return
        first = len(self.pieces)
        stretch = self.text[start:end]
        if warns or not self._speaks_about(start, end):
            self._add(start, end, role, start if warns else -1)
        else:
            self._sentences(start, end, role)
        if b"`" in stretch:
            self._code_spans(first, start, end, role)
        if (
            b'"' in stretch
            and role is TextRole.FOLLOW
            and (polarity.gives_example(stretch) or self.block.lead.quotes_attacks)
        ):
            speech = _SPEECH.finditer(self.text, start, end)
            self._overlay_from(first, [Stretch(one.start(), one.end(), TextRole.QUOTE) for one in speech])

    def _speaks_about(self, start: int, end: int) -> bool:
        """Whether a word of warning begins in this stretch."""
        following = bisect_left(self.warnings, start)
        return following < len(self.warnings) and self.warnings[following] < end

    def _sentences(self, start: int, end: int, role: TextRole) -> None:
        segment, section = self.block.segment, self.block.section
        for begin, stop in polarity.sentences(self.text, start, end):
            about = (begin, stop) if polarity.is_about(self.text, begin, stop) else (-1, -1)
            for low, high, denied_from in polarity.warned_stretches(self.text, begin, stop):
                self.pieces.append(Piece(low, high, role, segment, section, denied_from, *about))

    def _code_spans(self, first: int, start: int, end: int, role: TextRole) -> None:
        """What is quoted stays quoted, unless it runs when the text is loaded."""
        commands = self.outline.commands
        inside = commands[bisect_left(commands, (start,)) : bisect_left(commands, (end,))]
        self._overlay_from(
            first,
            [
                Stretch(low, high, TextRole.LOAD if loads else TextRole.COMMAND)
                for low, high, loads in inside
                if loads or role is not TextRole.QUOTE
            ],
        )

    def _overlay_from(self, first: int, stretches: list[Stretch]) -> None:
        if stretches:
            self.pieces[first:] = overlay(self.pieces[first:], stretches)

    def _add(self, start: int, end: int, role: TextRole, warns_from: int) -> None:
        if end > start:
            self.pieces.append(Piece(start, end, role, self.block.segment, self.block.section, warns_from))


_PARTS: dict[str, Callable[[_Cutter, int, int], None]] = {
    "front": _Cutter.on_front,
    "heading": _Cutter.on_heading,
    "item": _Cutter.on_item,
    "paragraph": _Cutter.on_paragraph,
    "quote": _Cutter.on_quote,
    "table": _Cutter.on_table,
    "comment": _Cutter.on_comment,
    "prose": _Cutter.on_text_fence,
    "fence": _Cutter.on_fence,
}
