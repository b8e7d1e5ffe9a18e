"""What a version can do, as far as the scan could read it: hosts, commands, files, secrets, installs, what outlives the
session, and what could not be read. One entry per thing, with its place: the capability card.

The scan makes a card, pages and clients show it, the attestation repeats it. Two cards are compared here, and the
pipeline asks a reviewer about capabilities that the live version does not have. A card lists only what our rules found:
something missing from it may still be there.
"""

import enum
from collections.abc import Collection, Iterable

import msgspec

#: Entries per kind; a last entry counts the rest.
MOST_OF_A_KIND = 60
MOST_LINKS = 20
LONGEST_VALUE = 160


class CapabilityKind(enum.StrEnum):
    """The sections of a card, in the order in which they are shown."""

    HOST = "host"
    COMMAND = "command"
    FILE = "file"
    SECRET = "secret"  # noqa: S105 - the name of a section, no secret
    INSTALL = "install"
    PERSISTENCE = "persistence"
    #: of a plugin: a program that a client starts, a server that it talks to, a command that runs at every such event
    PROGRAM = "program"
    SERVER = "server"
    HOOK = "hook"
    UNREAD = "unread"


class CapabilityContext(enum.StrEnum):
    """What the text around it is for, the strongest first."""

    #: a script, a settings file, or a command that runs when the skill is loaded
    CODE = "code"
    #: a command or code block in the text, which an agent is told to run, or an address that it is told to use
    INSTRUCTION = "instruction"
    #: an address in prose, data or a message: nothing runs it, and it never holds a version up
    LINK = "link"
    #: of what is unread: the data flow of a program that was read by patterns; it never holds a version up either
    PATTERNS = "patterns"


class CapabilityUse(enum.StrEnum):
    """What the skill does with it, where that can be told: what rules of a policy combine."""

    #: of a host: what comes from there is run
    RUNS = "runs"
    #: of a host: something is sent there
    SENDS = "sends"
    #: of a host: something must be installed from there first
    REQUIRES = "requires"
    #: of a host: a setting leads a service's keys or traffic there
    MOVES = "moves"
    #: it runs by itself, and fetches something
    STARTS = "starts"
    #: of a path: it is deleted with everything in it
    DELETES = "deletes"


class Lack(enum.StrEnum):
    """What a version can be without, as far as the scan could read it. Lists are filtered by it."""

    NETWORK = "network"
    SECRETS = "secrets"
    #: nothing is installed
    INSTALLS = "installs"
    #: prose only
    SCRIPTS = "scripts"
    #: no path outside its own folder
    FILES = "files"

    @property
    def words(self) -> str:
        """As people say it."""
        return _LACK_WORDS[self][0]

    @property
    def need(self) -> str:
        """What a version has that is not without it."""
        return _LACK_WORDS[self][1]


_LACK_WORDS = {
    Lack.NETWORK: ("no network found", "network"),
    Lack.SECRETS: ("no secrets", "secrets"),
    Lack.INSTALLS: ("no install step", "install step"),
    Lack.SCRIPTS: ("no scripts", "scripts"),
    Lack.FILES: ("only its folder", "files elsewhere"),
}


def describe_needs(without: Collection[str] | None) -> tuple[tuple[str, bool], ...]:
    """The two or three facts of a card in which skills differ most, each with whether the skill is without it; nothing
    where it was not read whole. What is rare, and worth a look, is told where it is there."""
    if without is None:
        return ()
    always = tuple(
        (one.words if one in without else one.need, one in without) for one in (Lack.NETWORK, Lack.SCRIPTS)
    )
    rare = next((one for one in (Lack.SECRETS, Lack.INSTALLS, Lack.FILES) if one not in without), None)
    return always if rare is None else (*always, (rare.need, False))


class SkillCapability(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a version can do, at the first place that says so."""

    kind: CapabilityKind
    #: the host, program, path, package, or what it is in words
    value: str
    file: str = ""
    #: from 1; 0 is the whole file
    line: int = 0
    context: CapabilityContext = CapabilityContext.CODE
    #: of a host: a shell command names it, or its file starts commands
    shell: bool = False
    #: in their order
    uses: tuple[CapabilityUse, ...] = ()

    @property
    def acts(self) -> bool:
        """Whether a machine or an agent acts on it."""
        return self.context not in (CapabilityContext.LINK, CapabilityContext.PATTERNS)

    @property
    def place(self) -> str:
        """Its file and line, as people write it."""
        return f"{self.file}:{self.line}" if self.line else self.file


_KINDS = {kind: rank for rank, kind in enumerate(CapabilityKind)}
_CONTEXTS = {context: rank for rank, context in enumerate(CapabilityContext)}


def make_card(found: Iterable[SkillCapability]) -> tuple[SkillCapability, ...]:
    """One entry per thing, at its strongest place, in an order that depends on the content alone.

    A kind with too many entries ends with one that counts the rest, so that a change in the rest still shows.
    """
    best: dict[tuple[CapabilityKind, str, str], SkillCapability] = {}
    for one in found:
        known = best.setdefault(_key(one), one)
        stronger = one if _CONTEXTS[one.context] < _CONTEXTS[known.context] else known
        in_shell = any(each.shell and each.acts for each in (one, known))
        uses = tuple(use for use in CapabilityUse if use in one.uses or use in known.uses)
        best[_key(one)] = msgspec.structs.replace(stronger, shell=in_shell, uses=uses)
    card: list[SkillCapability] = []
    for kind in CapabilityKind:
        entries = sorted((one for one in best.values() if one.kind is kind), key=_order)
        card += _limited([one for one in entries if one.acts], MOST_OF_A_KIND)
        card += _limited([one for one in entries if not one.acts], MOST_LINKS)
    return tuple(card)


def _limited(entries: list[SkillCapability], most: int) -> list[SkillCapability]:
    rest = entries[most:]
    if not rest:
        return entries
    uses = tuple(use for use in CapabilityUse if any(use in one.uses for one in rest))
    shell = any(one.shell for one in rest)
    counted = msgspec.structs.replace(rest[0], value=f"{len(rest)} more", shell=shell, uses=uses)
    return [*entries[:most], counted]


def _order(one: SkillCapability) -> tuple[bool, int, bool, str]:
    return not one.uses, _CONTEXTS[one.context], not one.shell, one.value


def new_capabilities(
    before: Iterable[SkillCapability], after: Iterable[SkillCapability]
) -> tuple[SkillCapability, ...]:
    """What only the second card has. Something that was only linked to and is now acted on is new, and so is what is
    now used in another way."""
    known = {_key(one): one for one in before}
    return tuple(one for one in after if (old := known.get(_key(one))) is None or _gains(old, one))


def _gains(old: SkillCapability, new: SkillCapability) -> bool:
    return (new.acts and not old.acts) or not set(new.uses) <= set(old.uses)


def _key(one: SkillCapability) -> tuple[CapabilityKind, str, str]:
    """Two entries with the same key are the same thing; each unreadable file is its own."""
    return one.kind, one.value, one.file if one.kind is CapabilityKind.UNREAD else ""
