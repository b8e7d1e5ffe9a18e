"""The outline of markdown: where its blocks begin and end, which of it is code, and the text as patterns see it.

One pass over the lines, so it takes time linear in the text however odd the markdown is. What the blocks say, and with
it the role and polarity of each, is `markdown`'s, and is worked out only for a text in which something was found.
"""

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property

import re2

from vskill_scan.model import CodeBlock, Fact
from vskill_scan.reading.languages import READ, fence_language

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
DEEPEST_ITEM = 12
SHORTEST_FENCE = 3
_MARKS = frozenset((b"-", b"*", b"+"))
_PROMPT = re2.compile(rb"(?m)^[ \t]*[$%>] ")
_PROMPTS = (b"$ ", b"% ", b"> ")
#: What a line begins with that may be more than the text of a paragraph.
_SPECIAL = frozenset(b"#>|-*+0123456789=`~")
_FENCING = frozenset(b"`~>-*+")
_ITEMS = frozenset(b"-*+0123456789")
#: The language of a fence whose commands run when the skill is loaded.
LOADED = "!"
#: The kinds of parts in which inline code may be something to run.
_WITH_COMMANDS = frozenset(("paragraph", "item", "quote", "table", "prose"))

#: Kind, start and end of a block, and its language or level. Kinds: front, heading, paragraph, item, quote, table,
#: comment, prose (a fence with text) and fence (one with code).
Part = tuple[str, int, int, str]
#: Where a command in inline code begins and ends, and whether it runs when the text is loaded.
Command = tuple[int, int, bool]


class Outline:
    """The state between lines, and what came of them."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.flowing = bytearray(text)
        #: in order
        self.parts: list[Part] = []
        self.blocks: list[CodeBlock] = []
        self.facts: list[Fact] = []
        #: kind and start of the block being read; "" between blocks
        self._kind = ""
        self._start = 0
        self._run()
        self.commands = list(self._commands()) if b"`" in text else []
        if self.commands:
            inline = [CodeBlock(start, end, "bash") for start, end, _ in self.commands]
            self.blocks = sorted(self.blocks + inline, key=lambda block: block.start)

    @cached_property
    def _last_closing(self) -> int:
        return self.text.rfind(b"-->")

    @property
    def loads(self) -> bool:
        """Whether anything in it runs when the text is loaded."""
        return any(loads for _, _, loads in self.commands) or any(part[3] == LOADED for part in self.parts)

    def _run(self) -> None:
        text, size = self.text, len(self.text)
        at = self._front_matter()
        comment = text.find(b"<!--", at)
        while at < size:
            stop = text.find(b"\n", at)
            if stop < 0:
                stop = size
            line = text[at:stop]
            stripped = line.lstrip()
            if not stripped:
                self._flush(at)
                at = stop + 1
            elif -1 < comment < stop and (begin := self._comment_start(at, stop)) >= 0:
                at = self._comment(at, begin)
                comment = text.find(b"<!--", at)
            elif stripped[0] in _SPECIAL:
                at = self._special(at, stop, line, stripped)
                comment = text.find(b"<!--", at) if -1 < comment < at else comment
            else:
                self._plain(at)
                at = stop + 1
                comment = text.find(b"<!--", at) if -1 < comment < at else comment
        self._flush(size)

    def _front_matter(self) -> int:
        if not self.text.startswith(b"---"):
            return 0
        end = self.text.find(b"\n---", 3)
        if end < 0:
            return 0
        stop = self.text.find(b"\n", end + 1)
        stop = len(self.text) if stop < 0 else stop
        self.parts.append(("front", 0, stop, ""))
        return stop + 1

    # Lines.

    def _special(self, at: int, stop: int, line: bytes, stripped: bytes) -> int:
        """A line that may begin something, or a fence that begins on it; where the next line begins."""
        first = stripped[0]
        if first in _FENCING and (b"```" in (head := stripped[:14]) or b"~~~" in head):
            mark, said = fence_mark(line)
            if mark:
                return self._fence(at, stop, mark, said)
        if first == ord("#") and (level := heading_level(line)):
            self._flush(at)
            self.parts.append(("heading", at, stop, str(level)))
        elif first == ord(">"):
            self._continue("quote", at)
        elif first == ord("|"):
            self._continue("table", at)
        elif first in _ITEMS and is_item(line):
            self._flush(at)
            self._kind, self._start = "item", at
        elif self._kind == "paragraph" and first in b"=-" and not stripped.strip(b"=- "):
            # What looked like a paragraph was a heading.
            self._kind = ""
            self.parts.append(("heading", self._start, at, "2"))
        else:
            self._plain(at)
        return stop + 1

    def _plain(self, at: int) -> None:
        if self._kind not in {"paragraph", "item"}:
            self._flush(at)
            self._kind, self._start = "paragraph", at

    def _continue(self, kind: str, at: int) -> None:
        if self._kind != kind:
            self._flush(at)
            self._kind, self._start = kind, at

    def _flush(self, end: int) -> None:
        kind, start = self._kind, self._start
        if not kind:
            return
        self._kind = ""
        self.parts.append((kind, start, end, ""))
        if kind == "quote":
            stretch = self.text[start:end]
            self.flowing[start:end] = (b"\n" + stretch).replace(b"\n>", b"\n ")[1:]
        if kind != "table" and -1 < self.text.find(b"\n", start, end) < end - 1:
            self._join_lines(start, end)

    def _join_lines(self, start: int, end: int) -> None:
        stop = start + len(self.text[start:end].rstrip())
        self.flowing[start:stop] = self.flowing[start:stop].replace(b"\n", b" ")

    # What cannot be seen, and code.

    def _comment_start(self, at: int, stop: int) -> int:
        """Where on the line a comment begins; -1 where it only seems so: in inline code, or never closed."""
        begin = self.text.find(b"<!--", at, stop)
        if begin < 0:
            return -1
        before = self.text[at:begin]
        if before.count(b"`") % 2:
            return -1
        if self._last_closing < begin and before.strip():
            return -1
        return begin

    def _comment(self, at: int, begin: int) -> int:
        """An HTML comment, with what stands before and after it on its lines."""
        if self._kind == "" and self.text[at:begin].strip():
            self._kind, self._start = "paragraph", at
        self._flush(begin)
        end = self.text.find(b"-->", begin) if self._last_closing >= begin else -1
        end = len(self.text) if end < 0 else end + 3
        self.parts.append(("comment", begin, end, ""))
        self.facts.append(Fact("hidden", begin, end - begin, {"how": "comment"}))
        after = self.text.find(b"\n", end)
        after = len(self.text) if after < 0 else after
        if not self.text[end:after].strip():
            return after + 1
        if b"<!--" in self.text[end:after]:
            return end
        self._kind, self._start = "paragraph", end
        return after + 1

    def _fence(self, at: int, stop: int, mark: bytes, said: bytes) -> int:
        self._flush(at)
        body = min(stop + 1, len(self.text))
        end, after = self._fence_end(body, mark)
        info = said.decode("utf-8", "replace")
        if info.startswith("!"):
            self._code(body, end, "bash", LOADED)
            return after
        language = fence_language(info)
        if not language:
            language = "bash" if looks_like_shell(self.text[body:end]) else "prose"
        if language == "prose":
            self.parts.append(("prose", body, end, ""))
        else:
            self._code(body, end, language, language)
        return after

    def _fence_end(self, body: int, mark: bytes) -> tuple[int, int]:
        """Where the closing line begins, and the line after it: one with at least as many marks, and no others."""
        text, size = self.text, len(self.text)
        at = body
        while (found := text.find(mark, at)) >= 0:
            begin = max(text.rfind(b"\n", body, found) + 1, body)
            stop = text.find(b"\n", found)
            stop = size if stop < 0 else stop
            line = text[begin:stop].strip(b" \t>")
            if line.startswith(mark) and not line.strip(mark[:1]):
                return begin, stop + 1
            at = stop + 1
        return size, size

    def _code(self, start: int, end: int, language: str, said: str) -> None:
        self.parts.append(("fence", start, end, said))
        if language in READ:
            self.blocks.append(CodeBlock(start, end, language))
        if language == "bash" and any(self.text.find(one, start, end) >= 0 for one in _PROMPTS):
            for prompt in _PROMPT.finditer(self.text, start, end):
                self.flowing[prompt.start() : prompt.end()] = b" " * (prompt.end() - prompt.start())

    # Inline code.

    def _commands(self) -> Iterator[Command]:
        """Inline code of prose that is something to run."""
        starts = [part[1] for part in self.parts]
        for low, high in code_spans(self.text):
            if self.text[low - 1 : low] != b"!" and not may_be_command(self.text[low:high].strip(b"`")):
                continue
            index = bisect_right(starts, low) - 1
            if index < 0:
                continue
            kind, _, end, _ = self.parts[index]
            if kind not in _WITH_COMMANDS or low >= end:
                continue
            span = self.text[low : min(high, end)]
            inner = span.strip(b"`")
            loads = self.text[low - 1 : low] == b"!" and self._loads(low - 1)
            if loads or is_command(inner):
                begin = low + (len(span) - len(span.lstrip(b"`")))
                yield begin, begin + len(inner), loads

    def _loads(self, mark: int) -> bool:
        """The mark must begin a word: `Great!` before a code span is only joy."""
        return mark == 0 or self.text[mark - 1 : mark] in b" \t\n:-*("


def code_spans(text: bytes) -> Iterator[tuple[int, int]]:
    """Where inline code begins and ends, with its marks: one on each side, or two. It stays on its line."""
    at = text.find(b"`")
    line_end = -1
    while at >= 0:
        if line_end < at:
            line_end = text.find(b"\n", at)
            line_end = len(text) if line_end < 0 else line_end
        twice = text[at + 1 : at + 2] == b"`"
        close = text.find(b"``", at + 3, line_end) if twice else text.find(b"`", at + 1, line_end)
        if close < 0:
            at = text.find(b"`", at + 1)
            continue
        stop = close + (2 if twice else 1)
        yield at, stop
        at = text.find(b"`", stop)


def fence_mark(line: bytes) -> tuple[bytes, bytes]:
    """The marks with which a line begins a fence, and what is said behind them; no marks where it begins none."""
    rest = line.lstrip(b" \t>")
    if len(line) - len(rest) > DEEPEST_ITEM:
        return b"", b""
    if rest[:1] in _MARKS and rest[1:2].isspace():
        rest = rest[1:].lstrip()
    said = rest.lstrip(rest[:1])
    mark = rest[: len(rest) - len(said)]
    if len(mark) < SHORTEST_FENCE or mark[:1] not in b"`~" or b"`" in said:
        return b"", b""
    return mark, said.lstrip(b" \t")


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
    if stripped[:1] in _MARKS:
        return stripped[1:2].isspace()
    mark = stripped.split(None, 1)[0]
    if len(mark) == len(stripped):
        return False
    return 2 <= len(mark) <= 4 and mark[:-1].isdigit() and mark[-1:] in b".)"


def may_be_command(span: bytes) -> bool:
    """Whether its first word is one that begins commands; most inline code is told by that."""
    first = span.split(None, 1)[:1]
    return bool(first) and (first[0].lower() in COMMANDS or first[0].startswith((b"./", b"~/")))


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
