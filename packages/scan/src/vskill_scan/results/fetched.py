"""What is downloaded and run: put straight into an interpreter, or kept as a file that another command runs by the same
name, on the same line, on another, or in another file of the skill."""

from collections.abc import Iterator

import msgspec

from vskill_core.capability import CapabilityContext
from vskill_scan.model import Layer
from vskill_scan.results import capability_words as known
from vskill_scan.results.card_names import addresses_in, plain_words, program_of, runs_its_input
from vskill_scan.results.command_lines import CommandLine
from vskill_scan.words import words

#: Programs that run or install a file that they are given.
_RUNNERS = known.SHELLS | frozenset(words("source . open start msiexec dpkg rpm installer"))
#: A file is rarely called with so many words before it.
_MOST_BEFORE = 2
_PATHS = ("./", "../", "/", "~/", "$")


class FilePlace(msgspec.Struct, frozen=True, gc=False):
    """Where a file is downloaded or run."""

    layer: Layer
    #: of the code around it
    block: int
    offset: int
    context: CapabilityContext


class FetchedFiles:
    """What was downloaded and what was run so far in one skill."""

    def __init__(self, own: frozenset[str]) -> None:
        """`own` are the names of the skill's files."""
        self._own = own
        self._fetched: dict[str, list[tuple[str, FilePlace]]] = {}
        self._run: list[tuple[str, FilePlace]] = []

    def read(self, line: CommandLine, program: str, place: FilePlace) -> None:
        if program in known.DOWNLOADERS:
            host = next(iter(addresses_in(line)), known.CHOSEN_AT_RUN_TIME)
            for name in _saved_names(line, program):
                self._fetched.setdefault(name, []).append((host, place))
        elif name := _run_name(line, program):
            self._run.append((name, place))

    def run(self) -> Iterator[tuple[str, str, FilePlace]]:
        """Name, host and place of each file that was downloaded and is run. The name of one of the skill's own files
        means that file, unless the same block of code downloads it."""
        for name, place in self._run:
            for host, came in self._fetched.get(name, ()):
                is_same = came.layer is place.layer and came.block == place.block
                if is_same or name not in self._own:
                    yield name, host, place


def _saved_names(line: CommandLine, program: str) -> Iterator[str]:
    """The files that a download is written to, without their folders."""
    keeps_name, before = program == "wget", ""
    for word in line.words[1:]:
        letter = "O" if program == "wget" else "o"
        if before in {">", ">>", "--output", "--output-document"} or _ends_option(before, letter):
            keeps_name = False
            yield _base(word)
        elif word.startswith(">") and word.strip(">"):
            yield _base(word.strip(">"))
        keeps_name = keeps_name or (
            program == "curl" and (word == "--remote-name" or _ends_option(word, "O"))
        )
        before = word
    if keeps_name:
        yield from (_base(word.partition("?")[0]) for word in line.words[1:] if "://" in word)


def _ends_option(word: str, letter: str) -> bool:
    return word.startswith("-") and not word.startswith("--") and word.endswith(letter)


def _run_name(line: CommandLine, program: str) -> str:
    """The file that a command runs; "" for a program that is installed."""
    first = line.words[0]
    if program not in _RUNNERS:
        return _base(first) if first.startswith(_PATHS) else ""
    given = list(plain_words(line.words[1 : _MOST_BEFORE + 2]))
    return _base(given[0]) if given else ""


def _base(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def run_at_once(before: CommandLine, line: CommandLine) -> str:
    """The host whose answer goes straight into an interpreter: by a pipe, or put into its command; "" for none."""
    programs = program_of(before), program_of(line)
    if before.ends == "|" and programs[0] in known.DOWNLOADERS:
        download, is_run = before, programs[1] in known.SHELLS and runs_its_input(line)
    else:
        download, is_run = line, before.ends in {"(", "`"} and programs[0] in known.EVALUATING
    if not is_run or program_of(download) not in known.DOWNLOADERS:
        return ""
    return next(iter(addresses_in(download)), known.CHOSEN_AT_RUN_TIME)
