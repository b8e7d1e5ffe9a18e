"""Batch files and AppleScript as the command lines that they run: variables are put in, what Windows writes otherwise
is written as a shell would, and `shell` reads the rest.
"""

from collections.abc import Callable, Iterator

import re2

#: Of the value of one variable, and of one line with all of them put in.
LONGEST_VALUE = 500
LONGEST_LINE = 4000

_VARIABLE = re2.compile(r"%%?~?(\w{1,40})%?")
_SET = re2.compile(r"(?i)^\s*@?set\s+\"?(?:/a\s+)?(\w{1,40})=([^\n\"]*)")
_FOR = re2.compile(r"(?i)^\s*@?for\s+(?:/\w+\s+)*%%(\w)\s+in\s*\(([^)]*)\)\s*do\s+(.*)$")
_IF = re2.compile(r"(?i)^\s*@?if\s+(?:not\s+)?(?:exist\s+(?:\"[^\"]*\"|\S+)|defined\s+\S+|\S+\s*==\s*\S+)\s+")
_SHELL_SCRIPT = re2.compile(rb"(?i)do\s+shell\s+script\s+((?:\"(?:[^\"\\]|\\.)*\"|[^\n\"])+)")
_TEXT = re2.compile(r'"((?:[^"\\]|\\.)*)"')
#: What a shell calls the folder; nothing is written there.
_TEMPORARY = "/" + "tmp"
_KNOWN = {
    "userprofile": "~", "homepath": "~", "home": "~", "appdata": "~/AppData/Roaming", "localappdata": "~/AppData/Local",
    "temp": _TEMPORARY, "tmp": _TEMPORARY,
}  # fmt: skip

#: A command line, where it stands, and whether its program is put together from parts.
CommandText = tuple[str, int, int, bool]


def batch_commands(source: bytes) -> Iterator[CommandText]:
    """The lines of a batch file."""
    names = dict(_KNOWN)
    at = 0
    for line in source.split(b"\n"):
        start, at = at, at + len(line) + 1
        text = line.decode("utf-8", "replace").strip().removeprefix("@")
        if not text or text.lower().startswith(("rem ", "::", "echo off")):
            continue
        if assigned := _SET.match(text):
            names[assigned.group(1).lower()] = _put_in(assigned.group(2), names)[:LONGEST_VALUE]
            continue
        if loop := _FOR.match(text):
            names[loop.group(1).lower()] = _put_in(loop.group(2), names)[:LONGEST_VALUE]
            text = loop.group(3)
        text = _IF.sub("", text)
        yield _put_in(text, names).replace("\\", "/")[:LONGEST_LINE], start, len(line), text.startswith("%")


def _put_in(text: str, names: dict[str, str]) -> str:
    """The text with the values of the variables that are known."""
    parts: list[str] = []
    at = 0
    for match in _VARIABLE.finditer(text):
        parts += (text[at : match.start()], names.get(match.group(1).lower(), match.group()))
        at = match.end()
    return "".join([*parts, text[at:]]).replace('""', '"')[:LONGEST_LINE]


def applescript_commands(source: bytes) -> Iterator[CommandText]:
    """What `do shell script` is given: its texts, with a gap for what stands between them."""
    for match in _SHELL_SCRIPT.finditer(source):
        given = match.group(1).decode("utf-8", "replace")
        texts = [one.group(1).replace('\\"', '"') for one in _TEXT.finditer(given)]
        yield " x ".join(texts)[:LONGEST_LINE], match.start(), match.end() - match.start(), False


COMMAND_READERS: dict[str, Callable[[bytes], Iterator[CommandText]]] = {
    "batch": batch_commands,
    "applescript": applescript_commands,
}
