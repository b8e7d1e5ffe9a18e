"""The process that colours foreign code for pages, started by `highlight`.

Pygments matches with Python's `re`, which crafted text can keep busy for minutes. In this process that only costs the
file its colours: each file has a limit of CPU time, and the process has limits of its own.
"""

import resource
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import PurePosixPath
from types import FrameType

import msgspec
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Generic, Keyword, Name, Number, String, Token, _TokenType

from vskill_platform.machine.child_side import frame, limit_resource, receive

#: Processor time of one file, and of all.
FILE_S = 1.5
PROCESS_S = 6
MEMORY_BYTES = 512 * 1024 * 1024
#: Most pieces of one file; `highlight` can keep a file of this size.
MOST_PIECES = 50_000

#: Pieces of one line: a text and its kind.
Pieces = list[tuple[str, str]]

LANGUAGES = {
    **dict.fromkeys(("md", "markdown", "mdx"), "markdown"),
    **dict.fromkeys(("py", "pyi", "pyw"), "python"),
    **dict.fromkeys(("sh", "bash", "zsh", "env"), "bash"),
    **dict.fromkeys(("js", "mjs", "cjs", "jsx"), "javascript"),
    **dict.fromkeys(("ts", "tsx", "mts"), "typescript"),
    **dict.fromkeys(("yaml", "yml"), "yaml"),
    **dict.fromkeys(("html", "htm", "vue", "svelte"), "html"),
    **dict.fromkeys(("xml", "svg", "xsd"), "xml"),
    **dict.fromkeys(("c", "h"), "c"),
    **dict.fromkeys(("cc", "cpp", "hpp", "cxx"), "cpp"),
    **dict.fromkeys(("ini", "cfg", "conf", "properties"), "ini"),
    **dict.fromkeys(("diff", "patch"), "diff"),
    "json": "json", "jsonl": "json", "toml": "toml", "css": "css", "scss": "scss", "sql": "sql", "go": "go",
    "rs": "rust", "rb": "ruby", "java": "java", "kt": "kotlin", "swift": "swift", "php": "php", "pl": "perl",
    "lua": "lua", "r": "r", "ps1": "powershell", "bat": "batch", "cs": "csharp", "tf": "terraform", "fish": "fish",
    "dockerfile": "docker", "makefile": "make",
}  # fmt: skip
#: By what a first line `#!` names.
PROGRAMS = {
    "python": "python",
    "node": "javascript",
    "deno": "typescript",
    "ruby": "ruby",
    "perl": "perl",
    "sh": "bash",
}

KINDS: tuple[tuple[_TokenType, str], ...] = (
    (Comment, "comment"),
    (String, "string"),
    (Number, "number"),
    (Keyword, "keyword"),
    (Generic.Heading, "keyword"),
    (Generic.Subheading, "keyword"),
    (Generic.Strong, "keyword"),
    (Name.Function, "name"),
    (Name.Class, "name"),
    (Name.Tag, "name"),
    (Name.Attribute, "name"),
    (Name.Builtin, "name"),
    (Name.Decorator, "name"),
)


class OutOfTime(Exception):
    """The file's share of processor time is used up."""


def main(descriptor: int) -> None:
    _limit_process()
    with socket.socket(fileno=descriptor) as connection:
        message = receive(connection)
        if message is not None:
            files = msgspec.msgpack.decode(message, type=list[tuple[str, str]])
            connection.sendall(frame([colour(path, text) for path, text in files]))


def colour(path: str, text: str, seconds: float = FILE_S) -> list[Pieces] | None:
    """The lines of a text in pieces; None if the language is unknown, it takes too long, has too many pieces, or the
    lexer changed the text."""
    lexer = lexer_for(path, text)
    if lexer is None:
        return None
    # Some lexers recognise a comment only with its line end.
    ends = text.endswith("\n")
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        lines = list(_cut_lines(lexer, text if ends else f"{text}\n"))
    except OutOfTime:
        return None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    lines = lines if ends else lines[:-1]
    is_same = "\n".join("".join(piece for piece, _ in line) for line in lines) == text
    return lines if is_same and sum(map(len, lines)) <= MOST_PIECES else None


def lexer_for(path: str, text: str) -> Lexer | None:
    """The lexer by the file's extension, its name, or the program in its first line."""
    name = PurePosixPath(path).name.lower()
    language = LANGUAGES.get(name.rpartition(".")[2])
    if language is None and text.startswith("#!"):
        first = text.partition("\n")[0]
        language = next((found for program, found in PROGRAMS.items() if program in first), None)
    # A code block in Markdown may name any lexer, and some lexers change the text.
    options = {"handlecodeblocks": False} if language == "markdown" else {}
    return None if language is None else get_lexer_by_name(language, **options)


def _cut_lines(lexer: Lexer, text: str) -> Iterator[Pieces]:
    line: Pieces = []
    for _, token, value in lexer.get_tokens_unprocessed(text):
        kinds = (kind for parent, kind in KINDS if token in parent)
        kind = "" if token is Token.Text else next(kinds, "")
        first, *others = value.split("\n")
        _add(line, first, kind)
        for other in others:
            yield line
            line = []
            _add(line, other, kind)
    yield line


def _add(line: Pieces, text: str, kind: str) -> None:
    """Add a piece, merged with the last one if it has the same kind."""
    if text and line and line[-1][1] == kind:
        line[-1] = (line[-1][0] + text, kind)
    elif text:
        line.append((text, kind))


def _limit_process() -> None:
    """Set limits for the whole process, once: they end it if a file escapes its own limit."""
    limit_resource(resource.RLIMIT_CORE, 0, 0)
    limit_resource(resource.RLIMIT_AS, MEMORY_BYTES, MEMORY_BYTES)
    limit_resource(resource.RLIMIT_CPU, PROCESS_S, PROCESS_S)
    signal.signal(signal.SIGPROF, _stop)


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise OutOfTime


if __name__ == "__main__":
    main(int(sys.argv[1]))
