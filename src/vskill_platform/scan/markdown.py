"""Cuts markdown into pieces: front matter, headings, paragraphs, lists, fences, inline code, block quotes, tables and
what HTML hides. `outline` tells where they are; this module gives them their role and polarity, once somebody asks.

A block's polarity comes from its own sentences, from the line that leads it, and from the headings above it.
"""

from bisect import bisect_left
from collections.abc import Callable
from functools import cached_property

import re2

from vskill_platform.scan import polarity
from vskill_platform.scan.languages import fence_role
from vskill_platform.scan.model import Fact, Layer, Piece, Role
from vskill_platform.scan.outline import LOADED, Outline
from vskill_platform.scan.overlay import Stretch, overlay
from vskill_platform.scan.polarity import Title

_SPEECH = re2.compile(rb'"[^"\n]{8,300}"')
_ADMONITION = re2.compile(
    rb"(?i)^>\s*(?:\[!|\*\*|__|[^\x00-\x7f]|(?:note|important|warning|caution|tip|prerequisites?|required|"
    rb"requirements?|before|setup|install)\b)"
)
_INDICATORS = re2.compile(
    rb"(?i)\b(?:patterns?|indicators?|signatures?|attacks?|threats?|severity|risks?|detect\w*|malicious|"
    rb"red flags?|bad|avoid|dangerous)\b"
)
_UNSEEN = re2.compile(
    rb"(?i)<([a-z][a-z0-9]{0,12})(?:\s[^<>]{0,400})?(?:\shidden|\s[^<>]{0,400}(?:display\s*:\s*none|visibility\s*:\s*hidden"
    rb"|font-size\s*:\s*0|opacity\s*:\s*0(?:[^.0-9]|\.0)|(?:width|height)\s*:\s*0(?:px)?\s*[;\"']|color\s*:\s*"
    rb"(?:white|#fff(?:fff)?|transparent|rgba?\(255,\s*255,\s*255)))(?:[\s;\"'=),][^<>]{0,400})?>"
)
#: How far the end of an unseen element is looked for.
_UNSEEN_REACH = 20_000
MOST_FACTS = 20
LONGEST_LEAD = 200
_REFERENCE_COMMENT = re2.compile(
    rb"(?m)^\[(?://|comment|_metadata_[^\]]{0,40})\]:\s*(?:#|<>)?\s*[(\"'][^\n]*$"
)


def cut_markdown(path: str, text: bytes) -> Layer:
    outline = Outline(text)
    unseen = _unseen(text)
    hidden = [Fact("hidden", start, end - start, {"how": how}) for start, end, how in unseen[:MOST_FACTS]]
    roles = set(_ROLES)
    if outline.loads:
        roles.add(Role.LOAD)
    if outline.facts or unseen:
        roles.add(Role.HIDDEN)
    return Layer(
        path,
        text,
        lambda: _pieces(outline, unseen),
        outline.blocks,
        [*outline.facts, *hidden],
        bytes(outline.flowing),
        roles=frozenset(roles),
    )


#: What there may be in any prose; what is hidden, or runs at load time, can be told from the outline.
_ROLES = frozenset(Role) - {Role.LOAD, Role.HIDDEN, Role.TEST}
Unseen = tuple[int, int, str]


def _pieces(outline: Outline, unseen: list[Unseen]) -> list[Piece]:
    cutter = _Cutter(outline)
    cutter.run()
    return overlay(cutter.pieces, (Stretch(start, end, Role.HIDDEN) for start, end, _ in unseen))


def _unseen(text: bytes) -> list[Unseen]:
    """What style or markdown's own tricks keep from the rendered page."""
    found = []
    if b"<" in text:
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
        return self._warning and polarity.speaks_about(self._last)

    @cached_property
    def asks(self) -> bool:
        return self._warning and polarity.asks(self._last)

    @cached_property
    def example(self) -> bool:
        return polarity.gives_example(self._last)

    @cached_property
    def _last(self) -> bytes:
        """The end of it, unless that is a long sentence which leads to nothing."""
        last = polarity.last_sentence(self.text)
        leads = len(last) < LONGEST_LEAD or last.endswith((b":", b":**", b":*", b"`:"))
        return last if leads else b""


class _Cutter:
    """The state between blocks."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self.text = outline.text
        self.pieces: list[Piece] = []
        self.segment = 0
        self.section = 0
        #: level of the headings above, and what they say
        self.headings: list[tuple[int, Title]] = []
        self.title = Title.PLAIN
        self.lead = Lead()
        #: where words of warning begin: found in one pass over the whole text
        self.warnings = list(polarity.warnings(outline.text))

    def run(self) -> None:
        for kind, start, end, said in self.outline.parts:
            if kind == "item":
                # A list is one segment, and so is the line that leads it; each of its items is read by itself.
                self._prose(start, end, Role.FOLLOW, warns=self.headings_warn or self.lead.warns)
                continue
            if kind != "front":
                self.segment += 1
            _PARTS[kind](self, start, end, said)
        if not self.pieces:
            self.pieces.append(Piece(0, len(self.text), Role.FOLLOW, 0))

    @property
    def headings_warn(self) -> bool:
        return self.title is not Title.PLAIN

    def on_front(self, start: int, end: int, _: str) -> None:
        self.pieces.append(Piece(start, end, Role.CONFIG, 0))
        self.segment += 1

    def on_heading(self, start: int, stop: int, said: str) -> None:
        text = self.text[start:stop]
        level = int(said)
        self.section += 1
        # The title names the skill's subject; if it could warn, a title would switch the rules off for the whole file.
        says = polarity.title_says(text) if level > 1 else Title.PLAIN
        self.headings = [one for one in self.headings if one[0] < level]
        self.headings.append((level, says))
        self.title = max(says for _, says in self.headings)
        self.lead = Lead(text, warning=False)
        self._add(start, stop, Role.FOLLOW, start if self.headings_warn else -1)

    def on_paragraph(self, start: int, end: int, _: str) -> None:
        warns = self.headings_warn and not polarity.asks(self.text[start:end])
        self._prose(start, end, Role.FOLLOW, warns=warns)
        self.lead = Lead(self.text[start:end])

    def on_quote(self, start: int, end: int, _: str) -> None:
        asks = _ADMONITION.match(self.text[start:end]) is not None and not self.lead.example
        role = Role.FOLLOW if asks else Role.QUOTE
        self._prose(start, end, role, warns=self.headings_warn or self.lead.warns)

    def on_table(self, start: int, end: int, _: str) -> None:
        head = self.text[start : self.text.find(b"\n", start, end) % (end + 1)]
        warns = self.headings_warn or self.lead.warns
        role = Role.QUOTE if warns or _INDICATORS.search(head) else Role.FOLLOW
        at = start
        while at < end:
            stop = self.text.find(b"\n", at, end) % (end + 1)
            self._prose(at, stop, role, warns=warns)
            at = stop + 1

    # What cannot be seen, and code.

    def on_comment(self, start: int, end: int, _: str) -> None:
        self._add(start, end, Role.HIDDEN, -1)

    def on_text_fence(self, start: int, end: int, _: str) -> None:
        role = Role.QUOTE if self.lead.example else Role.FOLLOW
        self._prose(start, end, role, warns=self.headings_warn or self.lead.warns)
        self.lead = Lead(self.lead.text, warning=False)

    def on_fence(self, start: int, end: int, language: str) -> None:
        role = Role.LOAD if language == LOADED else fence_role(language)
        warns = self._excused(role)
        first = len(self.pieces)
        self._add(start, end, role, start if warns else -1)
        if not warns:
            marked = polarity.marked_lines(self.text, start, end)
            self._overlay_from(first, [Stretch(begin, stop, warns=True) for begin, stop in marked])
        self.lead = Lead(self.lead.text, warning=False)

    def _excused(self, role: Role) -> bool:
        """Whether code is shown to warn of it. What runs at load time runs whatever is said about it."""
        if role is Role.LOAD:
            return False
        return self.lead.warns or (self.title is Title.SUBJECT and not self.lead.asks)

    # Prose.

    def _prose(self, start: int, end: int, role: Role, *, warns: bool) -> None:
        if end <= start:
            return
        first = len(self.pieces)
        stretch = self.text[start:end]
        if warns or not self._speaks_about(start, end):
            self._add(start, end, role, start if warns else -1)
        else:
            self._sentences(start, end, role)
        if b"`" in stretch:
            self._code_spans(first, start, end)
        if b'"' in stretch and role is Role.FOLLOW and polarity.gives_example(stretch):
            speech = _SPEECH.finditer(self.text, start, end)
            self._overlay_from(first, [Stretch(one.start(), one.end(), Role.QUOTE) for one in speech])

    def _speaks_about(self, start: int, end: int) -> bool:
        """Whether a word of warning begins in this stretch."""
        following = bisect_left(self.warnings, start)
        return following < len(self.warnings) and self.warnings[following] < end

    def _sentences(self, start: int, end: int, role: Role) -> None:
        for begin, stop in polarity.sentences(self.text, start, end):
            about = (begin, stop) if polarity.is_about(self.text, begin, stop) else (-1, -1)
            for low, high, denied_from in polarity.warned(self.text, begin, stop):
                self.pieces.append(Piece(low, high, role, self.segment, self.section, denied_from, *about))

    def _code_spans(self, first: int, start: int, end: int) -> None:
        commands = self.outline.commands
        inside = commands[bisect_left(commands, (start,)) : bisect_left(commands, (end,))]
        self._overlay_from(
            first, [Stretch(low, high, Role.LOAD if loads else Role.COMMAND) for low, high, loads in inside]
        )

    def _overlay_from(self, first: int, stretches: list[Stretch]) -> None:
        if stretches:
            self.pieces[first:] = overlay(self.pieces[first:], stretches)

    def _add(self, start: int, end: int, role: Role, warns_from: int) -> None:
        if end > start:
            self.pieces.append(Piece(start, end, role, self.segment, self.section, warns_from))


_PARTS: dict[str, Callable[[_Cutter, int, int, str], None]] = {
    "front": _Cutter.on_front,
    "heading": _Cutter.on_heading,
    "paragraph": _Cutter.on_paragraph,
    "quote": _Cutter.on_quote,
    "table": _Cutter.on_table,
    "comment": _Cutter.on_comment,
    "prose": _Cutter.on_text_fence,
    "fence": _Cutter.on_fence,
}
