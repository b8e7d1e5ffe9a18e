"""The words that the scanner's parts share: the role and polarity of a piece of text, a layer of text to be
searched, a fact about it, and the place where something was found.

`segments` and `flows` produce pieces and facts, `matcher` produces hits, `ruleset` refers to both by name, and
`engine` joins them.
"""

import enum
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate

import msgspec

from vskill_scan.polarity import AboutSpan, tells_before


class TextRole(enum.StrEnum):
    """What a piece of text is there for."""

    #: prose that the agent will follow
    FOLLOW = "follow"
    #: a shell command that the text tells to run
    COMMAND = "command"
    #: a script, or fenced program code
    CODE = "code"
    #: a command that runs when the skill is loaded
    LOAD = "load"
    #: settings, hooks, package manifests, front matter
    CONFIG = "config"
    #: a comment in code
    COMMENT = "comment"
    #: text that a reader cannot see
    HIDDEN = "hidden"
    #: quoted: speech, indicators, examples of attacks, deny-lists
    QUOTE = "quote"
    #: tests, fixtures and samples
    TEST = "test"
    #: any other data
    DATA = "data"


#: Where a rule counts unless it says otherwise: what an agent or a machine acts upon.
ACTING = frozenset(
    {TextRole.FOLLOW, TextRole.COMMAND, TextRole.CODE, TextRole.LOAD, TextRole.CONFIG, TextRole.HIDDEN}
)
ALL_ROLES = frozenset(TextRole)
#: Text that speaks of things, and does none.
SPEAKING = frozenset({TextRole.FOLLOW, TextRole.QUOTE, TextRole.COMMENT, TextRole.TEST})


class Polarity(enum.StrEnum):
    """Whether a text says to do a thing, or speaks about it."""

    NEUTRAL = "neutral"
    WARNING = "warning"


ANY_POLARITY = frozenset(Polarity)


class Unit(enum.StrEnum):
    """Inside what the conditions of a rule must hold together, from small to large."""

    LINE = "line"
    SENTENCE = "sentence"
    SEGMENT = "segment"
    SECTION = "section"
    FILE = "file"


#: Every fact that a rule may name, with the attributes that it may carry.
FACTS: dict[str, tuple[str, ...]] = {
    "secret.read": ("what",),
    "env.dump": (),
    "exec.fetched": ("how", "to"),
    "exec.decoded": ("how",),
    "persist": ("what",),
    "persist.fetched": ("what",),
    "hook.sends": ("what",),
    "delete.broad": ("what",),
    "command.assembled": (),
    "reverse.shell": (),
    "flow": ("from", "to"),
    "key.sent": ("name", "to"),
    "keys.packed": (),
    "net.decoded": (),
    "hidden": ("how",),
    "homoglyph": ("name",),
    "encoded": ("how", "layers"),
}


class Fact(msgspec.Struct, frozen=True, gc=False):
    """Something that is so at one place of a text, whatever its spelling."""

    name: str
    #: in the layer's text
    offset: int
    length: int = 0
    attributes: dict[str, str] = {}


class Piece(msgspec.Struct, gc=False):
    """A stretch of text with one role."""

    start: int
    end: int
    role: TextRole
    #: paragraph, list, fence or script
    segment: int
    #: everything under one heading
    section: int = 0
    #: from this offset on the text warns of what it says; -1 is never
    warns_from: int = -1
    #: the sentence around it, where that speaks about bad things; -1 where it does not
    about_from: int = -1
    about_to: int = -1


class CodeBlock(msgspec.Struct, frozen=True, gc=False):
    """A stretch of a layer in a language that has a reader."""

    start: int
    end: int
    language: str


def _start_of(piece: Piece) -> int:
    return piece.start


#: The pieces in order, or what cuts those of the segment around a place.
Cut = list[Piece] | Callable[[int], list[Piece]]


class Layer(msgspec.Struct):
    """One text to be searched: a file as a reader sees it, or what was decoded out of it."""

    #: as the finding names it; a member of an archive is `archive!member`
    path: str
    #: UTF-8, without what a reader cannot see
    text: bytes
    #: most of most texts holds nothing that depends on them
    cut: Cut
    blocks: list[CodeBlock] = []
    facts: list[Fact] = []
    #: `text` with the line breaks inside paragraphs made spaces: what patterns see
    flowing: bytes = b""
    #: line of the file at which this text starts; decoded text stays on that line
    origin: int = 1
    decoded: bool = False
    #: the file's text as it was written, where `text` differs from it; for columns
    written: str | None = None
    #: why some of its code was not looked at; "" where all was
    unread: str = ""
    #: all that its pieces may have
    roles: frozenset[TextRole] = ALL_ROLES
    #: where its lines begin, and the sentences of a segment, once somebody asks
    lines: list[int] = []
    sentences: dict[int, list[int]] = {}
    #: what the sentence that begins there says about bad things, once somebody asks
    about: dict[int, AboutSpan | None] = {}
    #: whether the sentence that begins there tells to do what follows the second place
    told: dict[tuple[int, int], bool] = {}
    #: by the start of its code, the comments in that, and where else it only says something and does not do it, once
    #: somebody asks
    comments: dict[int, list[tuple[int, int]]] = {}
    spoken: dict[int, list[tuple[int, int, TextRole]]] = {}

    def piece_at(self, offset: int) -> Piece:
        pieces = self._around(offset)
        return pieces[max(0, bisect_right(pieces, offset, key=_start_of) - 1)]

    def segment_around(self, offset: int) -> tuple[int, int]:
        """Where the segment begins and ends that the offset stands in."""
        segment = self.piece_at(offset).segment
        pieces = [piece for piece in self._around(offset) if piece.segment == segment]
        return pieces[0].start, pieces[-1].end

    def _around(self, offset: int) -> list[Piece]:
        return self.cut if isinstance(self.cut, list) else self.cut(offset)

    def about_around(self, piece: Piece) -> AboutSpan | None:
        """The words about bad things in the sentence around a piece; None where it has none."""
        start = piece.about_from
        if start >= 0 and start not in self.about:
            self.about[start] = AboutSpan.of(self.text, start, piece.about_to)
        return self.about.get(start)

    def tells_to_do(self, start: int, end: int) -> bool:
        """Whether what stands between the two places ends by telling to do what follows it."""
        if (start, end) not in self.told:
            self.told[start, end] = tells_before(self.text, start, end)
        return self.told[start, end]

    @property
    def _lines(self) -> list[int]:
        if not self.lines:
            self.lines = [0, *accumulate(len(line) + 1 for line in self.text.split(b"\n"))][:-1]
        return self.lines

    def line_start(self, offset: int) -> int:
        return self._lines[bisect_right(self._lines, offset) - 1]

    def line_at(self, offset: int) -> int:
        return self.origin if self.decoded else bisect_right(self._lines, offset) - 1 + self.origin


class Hit(msgspec.Struct, frozen=True, gc=False):
    """A place where a condition holds."""

    layer: int
    offset: int
    length: int
    segment: int
    section: int
    #: words around it may excuse it: it is spoken of, and neither runs nor is asked for
    excusable: bool = True
    #: it is such a word, and forbids nothing that cannot be excused
    excuses: bool = False
