"""Cuts markdown into pieces: front matter, headings, paragraphs, lists, fences, inline code, block quotes, tables and
what HTML hides. One pass over the lines, so it takes time linear in the text however odd the markdown is.

A block's polarity comes from its own sentences, from the line that leads it, and from the headings above it.
"""

from bisect import bisect_left
from functools import cached_property

import re2

from vskill_platform.scan import polarity
from vskill_platform.scan.languages import PARSED, fence_language, fence_role
from vskill_platform.scan.model import CodeBlock, Fact, Layer, Piece, Role
from vskill_platform.scan.overlay import Stretch, overlay
from vskill_platform.scan.polarity import Title

#: A word that begins a shell command.
COMMANDS = frozenset(
    b". source bash sh zsh dash sudo doas curl wget npm npx pnpm yarn bun bunx deno node pip pip3 pipx uv "
    b"uvx python python3 "
    b"git gh chmod chown rm mv cp cat echo printf export eval exec brew apt apt-get yum dnf apk pacman "
    b"snap docker podman "
    b"kubectl powershell powershell.exe pwsh iex iwr irm invoke-webrequest invoke-expression start-process "
    b"certutil msiexec "
    b"rundll32 regsvr32 mshta bitsadmin reg schtasks osascript launchctl crontab systemctl nc ncat netcat "
    b"socat ssh scp sftp "
    b"rsync tar unzip 7z gunzip base64 xxd openssl gpg env printenv security cd mkdir touch ln find grep "
    b"sed awk xargs tee "
    b"perl ruby php go cargo gem make cmake claude openclaw clawhub codex gcloud aws az terraform nohup "
    b"screen tmux open xattr "
    b"xdg-open start cmd cmd.exe at kill pkill dd mkfs shred set unset if for while test".split()
)
_MARKS = frozenset((b"-", b"*", b"+"))
DEEPEST_ITEM = 12
_FENCE = re2.compile(rb"^[ \t>]{0,12}(?:[-*+]\s+)?(`{3,}|~{3,})[ \t]*([^`\n]*)$")
_CODE_SPAN = re2.compile(rb"``[^\n]+?``|`[^`\n]+`")
_PROMPT = re2.compile(rb"(?m)^[ \t]*[$%>] ")
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
    cutter = _Cutter(text)
    cutter.run()
    layer = Layer(path, text, cutter.pieces, cutter.blocks, cutter.facts, bytes(cutter.flowing))
    unseen = _unseen(text)
    layer.pieces = overlay(layer.pieces, (Stretch(start, end, Role.HIDDEN) for start, end, _ in unseen))
    layer.facts.extend(
        Fact("hidden", start, end - start, {"how": how}) for start, end, how in unseen[:MOST_FACTS]
    )
    return layer


def _unseen(text: bytes) -> list[tuple[int, int, str]]:
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
    """The state between lines."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.flowing = bytearray(text)
        self.pieces: list[Piece] = []
        self.blocks: list[CodeBlock] = []
        self.facts: list[Fact] = []
        self.segment = 0
        self.section = 0
        #: level of the headings above, and what they say
        self.headings: list[tuple[int, Title]] = []
        self.title = Title.PLAIN
        self.lead = Lead()
        #: kind and start of the block being read; "" between blocks
        self.kind = ""
        self.start = 0
        self.last_closing = text.rfind(b"-->")
        #: where words of warning begin, and inline code: found in one pass over the whole text
        self.warnings = list(polarity.warnings(text))
        self.spans = [(match.start(), match.end()) for match in _CODE_SPAN.finditer(text)]

    def run(self) -> None:
        at = self._front_matter()
        size = len(self.text)
        while at < size:
            stop = self.text.find(b"\n", at)
            stop = size if stop < 0 else stop
            at = self._line(at, stop)
        self._flush(size)
        if not self.pieces:
            self.pieces.append(Piece(0, size, Role.FOLLOW, 0))

    def _front_matter(self) -> int:
        if not self.text.startswith(b"---"):
            return 0
        end = self.text.find(b"\n---", 3)
        if end < 0:
            return 0
        stop = self.text.find(b"\n", end + 1)
        stop = len(self.text) if stop < 0 else stop
        self.pieces.append(Piece(0, stop, Role.CONFIG, 0))
        self.segment += 1
        return stop + 1

    def _line(self, at: int, stop: int) -> int:
        """One line, or a fence or comment that begins on it; where the next line begins."""
        line = self.text[at:stop]
        stripped = line.lstrip()
        if not stripped:
            self._flush(at)
            return stop + 1
        first = stripped[:1]
        if b"<!--" in line and (begin := self._comment_start(at, stop)) >= 0:
            return self._comment(at, begin)
        if (b"```" in stripped[:14] or b"~~~" in stripped[:14]) and (match := _FENCE.match(line)):
            return self._fence(at, stop, match)
        if first == b"#" and (level := heading_level(line)):
            self._flush(at)
            self._heading(at, stop, level)
        elif first == b">":
            self._continue("quote", at)
        elif first == b"|":
            self._continue("table", at)
        elif first in b"-*+0123456789" and is_item(line):
            self._item(at)
        elif first in b"=-" and self.kind == "paragraph" and not stripped.strip(b"=- "):
            self._underlined(at)
        elif self.kind not in {"paragraph", "item"}:
            self._flush(at)
            self._begin("paragraph", at)
        return stop + 1

    # Blocks that begin and end.

    @property
    def headings_warn(self) -> bool:
        return self.title is not Title.PLAIN

    def _begin(self, kind: str, at: int) -> None:
        self.kind, self.start = kind, at

    def _continue(self, kind: str, at: int) -> None:
        if self.kind != kind:
            self._flush(at)
            self._begin(kind, at)

    def _item(self, at: int) -> None:
        """A list is one segment, and so is the line that leads it; each of its items is read by itself."""
        self._flush(at)
        self._begin("item", at)

    def _underlined(self, at: int) -> None:
        """What looked like a paragraph was a heading."""
        start = self.start
        self.kind = ""
        self._heading(start, at, 2)

    def _heading(self, start: int, stop: int, level: int) -> None:
        text = self.text[start:stop]
        self.section += 1
        self.segment += 1
        # The title names the skill's subject; if it could warn, a title would switch the rules off for the whole file.
        says = polarity.title_says(text) if level > 1 else Title.PLAIN
        self.headings = [one for one in self.headings if one[0] < level]
        self.headings.append((level, says))
        self.title = max(says for _, says in self.headings)
        self.lead = Lead(text, warning=False)
        self._add(start, stop, Role.FOLLOW, start if self.headings_warn else -1)

    def _flush(self, end: int) -> None:
        kind, start = self.kind, self.start
        self.kind = ""
        if not kind:
            return
        if kind == "paragraph":
            self._paragraph(start, end)
        elif kind == "item":
            self._prose(start, end, Role.FOLLOW, warns=self.headings_warn or self.lead.warns)
        elif kind == "quote":
            self._quote(start, end)
        else:
            self._table(start, end)

    def _paragraph(self, start: int, end: int) -> None:
        self.segment += 1
        warns = self.headings_warn and not polarity.asks(self.text[start:end])
        self._prose(start, end, Role.FOLLOW, warns=warns)
        self.lead = Lead(self.text[start:end])

    def _quote(self, start: int, end: int) -> None:
        self.segment += 1
        stretch = self.text[start:end]
        asks = _ADMONITION.match(stretch) is not None and not self.lead.example
        self.flowing[start:end] = (b"\n" + stretch).replace(b"\n>", b"\n ")[1:]
        self._prose(
            start, end, Role.FOLLOW if asks else Role.QUOTE, warns=self.headings_warn or self.lead.warns
        )

    def _table(self, start: int, end: int) -> None:
        self.segment += 1
        head = self.text[start : self.text.find(b"\n", start, end) % (end + 1)]
        role = (
            Role.QUOTE if self.headings_warn or self.lead.warns or _INDICATORS.search(head) else Role.FOLLOW
        )
        at = start
        while at < end:
            stop = self.text.find(b"\n", at, end) % (end + 1)
            self._prose(at, stop, role, warns=self.headings_warn or self.lead.warns)
            at = stop + 1

    # What cannot be seen, and code.

    def _comment_start(self, at: int, stop: int) -> int:
        """Where on the line a comment begins; -1 where it only seems so: in inline code, or never closed."""
        begin = self.text.index(b"<!--", at, stop)
        before = self.text[at:begin]
        if before.count(b"`") % 2:
            return -1
        if self.last_closing < begin and before.strip():
            return -1
        return begin

    def _comment(self, at: int, begin: int) -> int:
        """An HTML comment, with what stands before and after it on its lines."""
        if self.kind == "" and self.text[at:begin].strip():
            self._begin("paragraph", at)
        self._flush(begin)
        end = self.text.find(b"-->", begin) if self.last_closing >= begin else -1
        end = len(self.text) if end < 0 else end + 3
        self.segment += 1
        self._add(begin, end, Role.HIDDEN, -1)
        self.facts.append(Fact("hidden", begin, end - begin, {"how": "comment"}))
        after = self.text.find(b"\n", end)
        after = len(self.text) if after < 0 else after
        if not self.text[end:after].strip():
            return after + 1
        if b"<!--" in self.text[end:after]:
            return end
        self._begin("paragraph", end)
        return after + 1

    def _fence(self, at: int, stop: int, opening: "re2._Match") -> int:
        self._flush(at)
        self.segment += 1
        mark, info = opening.group(1), opening.group(2).decode("utf-8", "replace")
        body = min(stop + 1, len(self.text))
        end, after = self._fence_end(body, mark)
        if info.startswith("!"):
            self._code(body, end, "bash", Role.LOAD)
        else:
            self._fenced(body, end, fence_language(info))
        self.lead = Lead(self.lead.text, warning=False)
        return after

    def _fence_end(self, body: int, mark: bytes) -> tuple[int, int]:
        at = body
        while at < len(self.text):
            stop = self.text.find(b"\n", at)
            stop = len(self.text) if stop < 0 else stop
            line = self.text[at:stop].strip(b" \t>")
            if line.startswith(mark) and not line.strip(mark[:1]):
                return at, stop + 1
            at = stop + 1
        return len(self.text), len(self.text)

    def _fenced(self, start: int, end: int, language: str) -> None:
        if not language:
            language = "bash" if looks_like_shell(self.text[start:end]) else "prose"
        if language == "prose":
            role = Role.QUOTE if self.lead.example else Role.FOLLOW
            self._prose(start, end, role, warns=self.headings_warn or self.lead.warns, flows=False)
            return
        self._code(start, end, language, fence_role(language))

    def _code(self, start: int, end: int, language: str, role: Role) -> None:
        warns = self._excused(role)
        first = len(self.pieces)
        self._add(start, end, role, start if warns else -1)
        if language == "bash":
            for prompt in _PROMPT.finditer(self.text, start, end):
                self.flowing[prompt.start() : prompt.end()] = b" " * (prompt.end() - prompt.start())
        if language in PARSED:
            self.blocks.append(CodeBlock(start, end, language))
        if not warns:
            marked = polarity.marked_lines(self.text, start, end)
            self._overlay_from(first, [Stretch(begin, stop, warns=True) for begin, stop in marked])

    def _excused(self, role: Role) -> bool:
        """Whether code is shown to warn of it. What runs at load time runs whatever is said about it."""
        if role is Role.LOAD:
            return False
        return self.lead.warns or (self.title is Title.SUBJECT and not self.lead.asks)

    # Prose.

    def _prose(self, start: int, end: int, role: Role, *, warns: bool, flows: bool = True) -> None:
        if end <= start:
            return
        if flows:
            self._join_lines(start, end)
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

    def _join_lines(self, start: int, end: int) -> None:
        stretch = self.text[start:end].rstrip()
        if b"\n" in stretch:
            flowing = self.flowing[start : start + len(stretch)].replace(b"\n", b" ")
            self.flowing[start : start + len(stretch)] = flowing

    def _code_spans(self, first: int, start: int, end: int) -> None:
        stretches = []
        for low, high in self.spans[bisect_left(self.spans, (start, 0)) : bisect_left(self.spans, (end, 0))]:
            span = self.text[low : min(high, end)]
            inner = span.strip(b"`")
            loads = self.text[low - 1 : low] == b"!" and self._loads(low - 1)
            if not loads and not is_command(inner):
                continue
            begin = low + (len(span) - len(span.lstrip(b"`")))
            stretches.append(Stretch(begin, begin + len(inner), Role.LOAD if loads else Role.COMMAND))
            self.blocks.append(CodeBlock(begin, begin + len(inner), "bash"))
        self._overlay_from(first, stretches)

    def _loads(self, mark: int) -> bool:
        """The mark must begin a word: `Great!` before a code span is only joy."""
        return mark == 0 or self.text[mark - 1 : mark] in b" \t\n:-*("

    def _overlay_from(self, first: int, stretches: list[Stretch]) -> None:
        if stretches:
            self.pieces[first:] = overlay(self.pieces[first:], stretches)

    def _add(self, start: int, end: int, role: Role, warns_from: int) -> None:
        if end > start:
            self.pieces.append(Piece(start, end, role, self.segment, self.section, warns_from))


def heading_level(line: bytes) -> int:
    """How many marks a heading has; 0 for a line that is none."""
    indent = len(line) - len(line.lstrip(b" "))
    marks = len(line) - indent - len(line[indent:].lstrip(b"#"))
    is_heading = indent <= 3 and marks <= 6 and line[indent + marks : indent + marks + 1] in b" \t\r\f\v"
    return marks if is_heading else 0


def is_item(line: bytes) -> bool:
    """Whether an item of a list begins on the line: a mark or a number, and a space."""
    stripped = line.lstrip()
    if len(line) - len(stripped) > DEEPEST_ITEM:
        return False
    mark = stripped.split(None, 1)[0]
    if len(mark) == len(stripped):
        return False
    return mark in _MARKS or (2 <= len(mark) <= 4 and mark[:-1].isdigit() and mark[-1:] in b".)")


def is_command(span: bytes) -> bool:
    """Whether inline code is something to run: a known command with an argument, or a script by its path."""
    words = span.split(None, 2)
    if not words:
        return False
    first = words[0].lower()
    if first in COMMANDS:
        return len(words) > 1
    return first.startswith((b"./", b"~/")) and (len(words) > 1 or first.endswith((b".sh", b".py", b".js")))


def looks_like_shell(text: bytes) -> bool:
    for line in text.split(b"\n", 5)[:5]:
        words = line.split(None, 2)
        if not words or words[0].startswith(b"#"):
            continue
        if words[0] in {b"$", b"%", b">"} and len(words) > 1:
            return True
        return words[0].lower() in COMMANDS and len(words) > 1
    return False
