"""What a command line or a literal is called on a card: the program that it starts, the packages that it installs, and
the hosts and files that it names."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from vskill_scan.results import capability_words as known
from vskill_scan.results.command_lines import CommandLine, command_lines

LONGEST_PROGRAM = 40
LONGEST_HOST = 253


def host_name(written: str) -> str:
    """The host as the card names it; "" for one that is no other machine."""
    # Skills name the same hosts again and again. What is longer than a host is not worth remembering.
    return _read_host(written) if len(written) <= LONGEST_HOST else _read_host.__wrapped__(written)


@lru_cache(maxsize=4096)
def _read_host(written: str) -> str:
    host = known.UNKNOWN_PART.sub("*", written.lower()).strip(".-_")
    if not host or host in known.LOOPBACK or host in known.NAMESPACES:
        return ""
    if known.IP.match(host):
        return "" if host.startswith("127.") else host
    if not host.strip("*.-_"):
        return known.CHOSEN_AT_RUN_TIME
    return host if known.HOST.match(host) else ""


def path_name(written: bytes) -> str:
    path = written.decode("utf-8", "replace").replace("${HOME}", "~").replace("$HOME", "~")
    return path.rstrip("/.,\\")


def program_of(line: CommandLine) -> str:
    """The program that a command line starts; "" where the first word is none."""
    word = line.words[0]
    if word == known.CHOSEN_AT_RUN_TIME:
        return word
    if word.startswith("/dev/") or (word.startswith("$") and "/" not in word):
        return ""
    name = word.rpartition("/")[2].removesuffix(".exe")
    is_name = name[:1].islower() and len(name) <= LONGEST_PROGRAM and not name.strip(known.PROGRAM_LETTERS)
    return name if is_name or name in known.PROGRAMS_IN_CAPITALS else ""


def installed_by(line: CommandLine, manager: str) -> list[str]:
    """The packages that a command line installs, each with its installer."""
    words = list(line.words)
    if manager.startswith("python") and words[1:3] == ["-m", "pip"]:
        manager, words = "pip", words[2:]
    if manager in known.RUNNERS:
        packages = [word for word in plain_words(words[1:]) if word not in known.NOT_A_PACKAGE][:1]
    elif manager in known.MANAGERS and not known.MANAGERS[manager].isdisjoint(words[1:4]):
        verb = next(n for n, word in enumerate(words) if n and word in known.MANAGERS[manager])
        packages = [word for word in plain_words(words[verb + 1 :]) if word not in known.NOT_A_PACKAGE]
        packages = packages or ["the packages of this folder"]
    else:
        return []
    return [f"{name} ({manager})" for word in packages[: known.MOST_PACKAGES] if (name := _package(word))]


def plain_words(words: Sequence[str]) -> Iterator[str]:
    """Those that are neither options nor what belongs to one."""
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in known.REDIRECTS or word == "\\":
            return
        elif word.startswith("-"):
            skip = word in known.TAKES_A_WORD
        else:
            yield word


@lru_cache(maxsize=1024)
def _package(word: str) -> str:
    if word == "the packages of this folder":
        return word
    plain = known.VERSION.sub("", word, count=1)
    return plain if known.PACKAGE.match(plain) else ""


def sends_something(line: CommandLine, program: str) -> bool:
    """Whether a command that talks to a host sends more than its question."""
    if program in known.SENDERS:
        return True
    return program in known.ASKING and any(
        word in known.METHODS or (word.startswith(known.SENDING) and not (program == "wget" and word == "-T"))
        for word in line.words[1:]
    )


def removed_paths(line: CommandLine, program: str) -> Iterator[str]:
    """Paths outside the folder of the skill that a command deletes with everything in them."""
    options = "".join(word for word in line.words[1:] if word.startswith("-"))
    if program == "rm" and ("r" in options or "R" in options):
        for path in (path_name(word.encode()) for word in line.words[1:] if not word.startswith("-")):
            if path.startswith(known.OUTSIDE) and not path.startswith(known.THROWN_AWAY):
                yield path


def runs_its_input(line: CommandLine) -> bool:
    """An interpreter without a program of its own."""
    return all(word in known.READS_INPUT for word in line.words[1:2])


def addresses_in(line: CommandLine) -> list[str]:
    found = []
    for word in line.words[1:]:
        match = known.ADDRESS.search(word.encode()) if "://" in word else None
        if match and (host := host_name(match.group(1).decode("utf-8", "replace"))):
            found.append(host)
    return found or list(hosts_of(line, program_of(line)))


def hosts_of(line: CommandLine, program: str) -> Iterator[str]:
    """Hosts that a command line names without a scheme."""
    if any("://" in word for word in line.words):
        return
    if program in known.DOWNLOADERS and any(known.UNKNOWN_ADDRESS.match(word) for word in line.words[1:]):
        yield known.CHOSEN_AT_RUN_TIME
        return
    for word in plain_words(line.words[1:]):
        match = known.BARE_HOST.match(word.lower())
        if match is None:
            continue
        host = match.group(1)
        if host.rpartition(".")[2] not in known.FILE_ENDING or "@" in word:
            if name := host_name(host):
                yield name
            return


def argument_lines(argument: bytes, lists: dict[bytes, bytes]) -> list[CommandLine]:
    """The command line that a call is given, as far as it is a literal."""
    if (text := known.LITERAL.match(argument)) is not None:
        written = next(group for group in text.groups() if group is not None)
        rest = known.NEXT_LIST.match(argument, text.end())
        given = written.split() if rest is None else [written, *_literal_words(rest.group(1))]
        if rest is None and len(given) > 1:
            return list(command_lines(written))
        words = [word.decode("utf-8", "replace") for word in given]
        return [CommandLine(0, tuple(words))] if words else []
    if argument[:1] in {b"[", b"("}:
        words = [word.decode("utf-8", "replace") for word in _literal_words(argument[1:])]
        return [CommandLine(0, tuple(words))] if words else [_UNKNOWN]
    name = known.NAME.match(argument)
    program = lists.get(name.group()) if name is not None else None
    return [CommandLine(0, (program.decode("utf-8", "replace"),))] if program else [_UNKNOWN]


_UNKNOWN = CommandLine(0, (known.CHOSEN_AT_RUN_TIME,))


def _literal_words(written: bytes) -> list[bytes]:
    """The words of a list up to the first that is none."""
    words = []
    for item in written.partition(b"]")[0].split(b",")[: known.MOST_PACKAGES]:
        plain = item.strip()
        if plain == b"sys.executable":
            words.append(b"python")
        elif plain[:1] in {b'"', b"'", b"`"} and plain[-1:] == plain[:1]:
            words.append(plain[1:-1])
        else:
            break
    return [word for word in words if word]
