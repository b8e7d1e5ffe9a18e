"""Programs in languages whose values nobody follows: the commands that they start, by patterns in linear time. Hosts
and secrets are looked for as in any other code.

Their grammars would tell no more for a card, and take the square of hostile text (docs/adr/0028-fewer-rules.md).
"""

from collections.abc import Iterator

import msgspec
import re2

from vskill_scan.results.command_lines import CommandLine, command_lines

#: Of a call, in bytes and words.
LONGEST_CALL, MOST_WORDS = 400, 24

_STARTS = re2.compile(
    rb"(?i)\b(?:exec\.command(?:context)?|command::new|system|popen[23]?\w{0,3}|spawn|shell_exec|passthru|proc_open|"
    rb"os\.execute|process\.start|processstartinfo|processbuilder|open3\.capture[23]e?|getruntime\(\)\.exec|syscall\.exec|"
    rb"exec|do shell script|\.run)\s*[(\s]\s*[\"'%\[]|(?m:^|[=(,\s])`[a-z]"
)
_TEXT = re2.compile(rb"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`([^`\n]*)`|,\s*\n|([;\n}])")
#: Behind the name of a shell: the text that follows is a command.
_RUN_A_TEXT = ([b"-c"], [b"-lc"], [b"/c"], [b"/C"])
#: Where a command of PowerShell ends.
_PARTS = re2.compile(rb"[|;\n{}(]")
#: PowerShell's own names for what shells call otherwise.
_ALIASES = {
    **dict.fromkeys(("invoke-webrequest", "invoke-restmethod", "iwr", "irm", "start-bitstransfer"), "curl"),
    **dict.fromkeys(("invoke-expression", "iex"), "bash"),
    **dict.fromkeys(("start-process", "&"), "start"),
    "remove-item": "rm",
}
_OPTIONS = {"-outfile": "-o", "-recurse": "-r", "-body": "-d", "-infile": "-T", "-destination": "-o"}


def started_lines(source: bytes, language: str) -> Iterator[CommandLine]:
    """The commands that a program starts, each at the place of its call."""
    if language in {"powershell", "batch"}:
        yield from _powershell_lines(source)
        return
    for match in _STARTS.finditer(source):
        end = min(match.end() + LONGEST_CALL, len(source))
        # A text of the call begins with the last byte of the match.
        begin = match.end() - (2 if source[match.end() - 2 : match.end() - 1] == b"`" else 1)
        for line in _lines_in(source[begin:end]):
            yield msgspec.structs.replace(line, offset=match.start())


def _lines_in(call: bytes) -> list[CommandLine]:
    texts: list[bytes] = []
    for match in _TEXT.finditer(call):
        if match.group(4) is not None and texts:
            break
        texts += [part for part in match.groups()[:3] if part is not None]
    if len(texts) == 1 or texts[1:2] in _RUN_A_TEXT:
        return list(command_lines(texts[-1]))
    words = b" ".join(texts).decode("utf-8", "replace").split()[:MOST_WORDS]
    return [CommandLine(0, tuple(words))] if words else []


def _powershell_lines(source: bytes) -> Iterator[CommandLine]:
    """Its commands, and those of a batch file, by the names that other shells have for them."""
    at = 0
    for end in (*(match.start() for match in _PARTS.finditer(source)), len(source)):
        words = (
            source[at:end][:LONGEST_CALL]
            .replace(b'"', b"")
            .replace(b"'", b"")
            .decode("utf-8", "replace")
            .split()
        )
        if words and not words[0].startswith(("#", "$", "::", "rem")):
            plain = [_OPTIONS.get(word.lower(), word) for word in words[1:MOST_WORDS]]
            ends = source[end : end + 1].decode("ascii", "replace")
            yield CommandLine(at, (_ALIASES.get(words[0].lower(), words[0]), *plain), ends)
        at = end + 1
