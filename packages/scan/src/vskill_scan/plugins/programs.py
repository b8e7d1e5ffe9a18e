"""Where the code of a program comes from that a plugin starts: from its own folder, from the user's machine, or from
elsewhere when it starts, pinned or not."""

import enum
import posixpath
from collections.abc import Collection, Iterator, Sequence

import msgspec
import re2

from vskill_scan.plugins.forms import Invalid, inside

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
_WRAPPERS = frozenset(("cmd", "cmd.exe", "/c", "/C", "env", "sudo", "exec", "nohup"))
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
    """Where the code of a program comes from."""

    OWN = "in the plugin"
    PINNED = "fetched when it starts, pinned"
    FETCHED = "fetched when it starts, not pinned"
    MACHINE = "on the user's machine"


class StartedProgram(msgspec.Struct, frozen=True):
    """A program that a plugin starts."""

    origin: Origin
    #: the file in the plugin, the packages that are fetched, or the name of the program
    what: str


def program_of(words: Sequence[str], paths: Collection[str]) -> StartedProgram:
    """What these words start, in a plugin with these files. Invalid for a file that it has not, or cannot have."""
    words = [*_unwrapped(words)] or [""]
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


def _unwrapped(words: Sequence[str]) -> Iterator[str]:
    begun = False
    for word in words:
        begun = begun or not (word in _WRAPPERS or ("=" in word and word.partition("=")[0].isidentifier()))
        if begun:
            yield word


def _runner(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    program = posixpath.basename(words[0].replace("\\", "/")).removesuffix(".cmd").removesuffix(".exe")
    long = _LONG_RUNNERS.get((program, words[1] if len(words) > 1 else ""))
    if long:
        rest = words[2:]
        return long, rest[1:] if rest[:1] == ["run"] else rest
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
