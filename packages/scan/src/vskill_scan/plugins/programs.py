"""Where the code of a program comes from that a plugin starts: from its own folder, from the user's machine, or from
elsewhere when it starts, pinned or not. What only starts another program (`env`, `sudo`, `bash -c`) is looked through.
"""

import enum
import posixpath
import shlex
from collections.abc import Collection, Iterator, Sequence

import msgspec
import re2

from vskill_scan.plugins.forms import Invalid, inside
from vskill_scan.results.command_lines import ENDS, blank_quoted

#: Programs that fetch what they run, and options before which their package stands.
_RUNNERS = {"npx": "npm", "bunx": "npm", "pnpx": "npm", "uvx": "python", "pipx": "python"}
_LONG_RUNNERS = {
    ("npm", "exec"): "npm", ("npm", "x"): "npm", ("pnpm", "dlx"): "npm", ("yarn", "dlx"): "npm", ("bun", "x"): "npm",
    ("uv", "tool"): "python", ("pipx", "run"): "python", ("go", "run"): "go", ("deno", "run"): "deno",
    ("docker", "run"): "image", ("podman", "run"): "image",
}  # fmt: skip
_PACKAGE_OPTIONS = frozenset(("-p", "--package", "--from", "--spec", "--with"))
#: Options of runners that take the next word, which is then no package.
_WITH_A_WORD = frozenset(
    ("-e", "--env", "-v", "--volume", "--mount", "--name", "--network", "-w", "--workdir", "--python", "--index",
     "--index-url", "--registry", "-c", "--call", "-u", "--user", "--entrypoint", "--platform", "--env-file")
)  # fmt: skip
#: Programs that start the one behind them, and their options that take the next word.
_WRAPPERS = {
    "env": ("-u", "--unset", "-C", "--chdir"), "doas": ("-u", "-C"), "exec": ("-a",), "nice": ("-n",),
    "sudo": ("-u", "--user", "-g", "--group", "-h", "--host", "-p", "-C", "-D", "--chdir", "-r", "-t", "-T", "-U"),
    "timeout": ("-k", "-s"), "stdbuf": ("-i", "-o", "-e"), "ionice": ("-c", "-n"), "time": ("-f", "-o"),
    "xargs": ("-I", "-n", "-P", "-L", "-d", "-a", "-E", "-s"), "start": ("/d",), "cross-env": (), "nohup": (),
    "wsl": ("-d", "-u"),
    **dict.fromkeys(("setsid", "command", "builtin", "call", "corepack", "busybox", "!", "{"), ()),
    **dict.fromkeys(("if", "then", "else", "elif", "while", "until", "do"), ()),
}  # fmt: skip
#: Programs that run a text: those of one word behind an option with a `c`, and those of all words that follow one.
_SCRIPTED = frozenset(("sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "$shell", "${shell}"))
_SHELLS = _SCRIPTED | {"su", "runuser"}
_WORDY_SHELLS = frozenset(("cmd", "powershell", "pwsh"))
_TEXT_RUNNERS = _SHELLS | _WORDY_SHELLS | {"env", "eval"}
#: In such a text, the words that stand behind it.
_ARGUMENTS = re2.compile(r"\$\{?[@*01]")
_ENDING = re2.compile(r"\.(?:exe|cmd|bat|ps1)$")
#: Between the names of folders, as other systems write them; elsewhere it only keeps a sign from its meaning.
_BACKSLASH = re2.compile(r"\\(\w)")
#: Of one text, and texts in texts that are read.
LONGEST = 20_000
_DEPTH = 4
_PINNED = {
    "npm": re2.compile(r".@v?\d+\.\d+\.\d+[\w.+-]*$|#[0-9a-f]{40}$"),
    "python": re2.compile(
        r"==\d[\w.+!-]*$|.@\d+(?:\.\d+)+[\w.+-]*$|@[0-9a-f]{40}(?:#.*)?$|#sha256=[0-9a-f]{64}$"
    ),
    "go": re2.compile(r"@v\d+\.\d+\.\d+[\w.+-]*$"),
    "deno": re2.compile(r"@v?\d+\.\d+\.\d+(?:[/?].*)?$"),
    "image": re2.compile(r"@sha256:[0-9a-f]{64}$"),
}


class Origin(enum.StrEnum):
    """Where the code of a program comes from; what a reader must know first comes first."""

    FETCHED = "fetched when it starts, not pinned"
    MISSING = "not in the plugin"
    PINNED = "fetched when it starts, pinned"
    OWN = "in the plugin"
    MACHINE = "on the user's machine"


class StartedProgram(msgspec.Struct, frozen=True):
    """A program that a plugin starts."""

    origin: Origin
    #: the file in the plugin, the packages that are fetched, or the name of the program
    what: str


def commands_in(text: str) -> Iterator[list[str]]:
    """The words of each simple command of a shell text; none for what is too long to be cut into words."""
    if len(text) > LONGEST:
        yield []
    text = text[:LONGEST]
    written, at = text.encode("utf-8", "replace"), 0
    for segment in blank_quoted(written).translate(ENDS).split(b"\n"):
        begin, at = at, at + len(segment) + 1
        if segment.strip():
            yield _words(_BACKSLASH.sub(r"/\1", written[begin : at - 1].decode("utf-8", "replace")))


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        # A quote begins in one command and ends in another.
        return text.replace('"', "").replace("'", "").split()


def unwrapped(words: Sequence[str], depth: int = 0) -> Iterator[Sequence[str]]:
    """The commands that these words start in the end, without what only starts them; an empty one for what is too long,
    or lies too deep in texts, to be read."""
    if not words:
        yield ()
    at = 0
    while at < len(words):
        name = name_of(words[at])
        inner = _texts_of(name, words, at) if name in _TEXT_RUNNERS else None
        if inner is not None:
            for one in inner if depth < _DEPTH else [()]:
                yield from unwrapped(one, depth + 1)
            return
        if words[at].isdigit():
            # The end of `2>&1`.
            at += 1
        elif words[at].lstrip("0123456789").startswith(("<", ">")):
            at += 1 if words[at].strip("0123456789<>") else 2
        elif name in _WRAPPERS or _is_assignment(words[at]):
            at = _behind(name, words, at + 1)
        else:
            break
    words = words[at:]
    if words:
        yield words
    if "--" in words[1:-1] and depth < _DEPTH and not _runner(words)[0]:
        # Many programs start what stands behind it.
        yield from unwrapped(words[words.index("--", 1) + 1 :], depth + 1)


def _behind(name: str, words: Sequence[str], at: int) -> int:
    """Where what stands behind the options of a wrapper begins."""
    takes, signs = _WRAPPERS.get(name, ()), ("-", "/") if name == "start" else ("-",)
    while at < len(words) and (words[at].startswith(signs) or not words[at]):
        at += 2 if words[at] in takes else 1
    return at + (name == "timeout" and at < len(words) and words[at][:1].isdigit())


def _texts_of(name: str, words: Sequence[str], start: int) -> Iterator[Sequence[str]] | None:
    """The commands of the text that a shell is given; None where it is given none."""
    if name == "eval":
        return commands_in(" ".join(words[start + 1 :]))
    for at in range(start + 1, len(words)):
        word, option = words[at], words[at].lower()
        if name == "env":
            if not word.startswith("-") and words[at - 1] not in _WRAPPERS[name]:
                return None
            if word.startswith(("-S", "--split-string")):
                rest = word.removeprefix("--split-string").removeprefix("-S").removeprefix("=")
                return commands_in(" ".join([rest, *words[at + 1 :]]))
        if name == "cmd" and option.startswith(("/c", "/k", "/r")):
            return commands_in(" ".join([word[2:], *words[at + 1 :]]))
        if name in _WORDY_SHELLS and option[:2] in {"-c", "/c"} and "command".startswith(option[1:]):
            return commands_in(" ".join(words[at + 1 :]))
        if name in _SHELLS and word.startswith("-") and not word.startswith("--") and "c" in word:
            return _given_to(words[at + 1 :])
        if name in _SCRIPTED and not word.startswith(("-", "+")) and words[at - 1][1:] not in {"o", "O"}:
            return None
    return None


def _given_to(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """A text, and the words behind it, where it starts them."""
    text = words[0] if words else ""
    yield from commands_in(text)
    if _ARGUMENTS.search(text):
        yield from filter(None, (words[1:], words[2:]))


def name_of(word: str) -> str:
    return str(_ENDING.sub("", posixpath.basename(word.replace("\\", "/")).lower()))


def _is_assignment(word: str) -> bool:
    return "=" in word and word.partition("=")[0].isidentifier()


def program_of(words: Sequence[str], paths: Collection[str]) -> StartedProgram:
    """What one of these commands starts, in a plugin with these files. Invalid for a file that it has not, or cannot
    have."""
    if not words:
        return StartedProgram(Origin.FETCHED, "what it is told to")
    kind, rest = _runner(words)
    if kind:
        packages = [*_packages(rest, kind)]
        pinned = bool(packages) and all(_PINNED[kind].search(one) for one in packages)
        origin = Origin.PINNED if pinned else Origin.FETCHED
        return StartedProgram(origin, " ".join(packages) or "what it is told to")
    for word in words:
        path = inside(word)
        if path is None or not _is_file(path):
            continue
        if path not in paths:
            raise Invalid(
                f"starts {path[:80]!a}, which is not in the plugin", "add the file, or name the right one"
            )
        return StartedProgram(Origin.OWN, path)
    return StartedProgram(Origin.MACHINE, words[0])


def _is_file(path: str) -> bool:
    """Whether a word names a program, and not the folder that it works in."""
    return "." in posixpath.basename(path)[1:] or "/bin/" in f"/{path}"


def _runner(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """What kind of package is fetched, and the words behind the runner, which options may stand before."""
    program = name_of(words[0])
    for at, word in enumerate(words[1:], 1):
        if kind := _LONG_RUNNERS.get((program, word)):
            rest = words[at + 1 :]
            return kind, rest[1:] if rest[:1] == ["run"] else rest
        if not word.startswith("-"):
            break
    return _RUNNERS.get(program, ""), words[1:]


def _packages(words: Sequence[str], kind: str) -> Iterator[str]:
    """The packages that a runner fetches: those that options name, or the first word that is no option."""
    named = False
    given = iter(words)
    for word in given:
        option, equals, value = word.partition("=")
        if option in _PACKAGE_OPTIONS and (found := value if equals else next(given, "")):
            named = named or option != "--with"
            yield found
        elif word in _WITH_A_WORD:
            next(given, None)
        elif word == "run" and kind == "python":
            continue
        elif not word.startswith("-"):
            if not named:
                yield word
            return
