"""What the languages have in common: a value with the tags of where it comes from, and a program that remembers which
names carry which tags, and reports facts when a tagged value reaches a place that matters.

It is deliberately blunt: names are not scoped, branches are not told apart, and everything that touches a tagged value
is tagged. It looks for code that takes a secret and sends it, not for proof.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec
import re2

from vskill_scan.model import Fact
from vskill_scan.places import GIT_HOOKS, host_in, is_foreign, is_service_key, persists_at, secret_at

#: Literals are remembered up to this length; more is never needed to tell a path or an address.
TEXT = 1000
#: Of one name, literal or word of a program, in bytes.
LONGEST_TEXT = 2000
#: Nesting beyond what people write; deeper code is not followed, and the scan is not complete.
DEEPEST = 120
MOST_FACTS = 10_000
#: Expressions between two looks at the budget.
STEPS = 512

#: Spends steps; raises when none are left.
Check = Callable[[int], None]
#: Whether code between two offsets is worth reading.
Worth = Callable[[int, int], bool]

#: A text of that length may hold an address.
ADDRESS = 16

FETCHED, DECODED, ENVIRONMENT = "fetched", "decoded", "env"
#: Decoded from a text that stands in the program.
COVERED = "covered"
#: What somebody at the other end of a socket says.
SOCKET = "socket"
#: The names of everything in the folder of the user.
HOME_TREE = "tree:home"
#: Ways to machines that the user logs in to, which deployment gives keys.
_OWN_MACHINES = frozenset({"ssh", "scp", "sftp", "rsync"})
#: A file that was opened to be written, by its path.
OUT = "out:"
SECRET, STORED, PATH, KEY = "secret:", "file:", "path:", "key:"
SOURCES = (SECRET, ENVIRONMENT)
NO_TAGS: frozenset[str] = frozenset()
#: Files of which one entry may be read and sent, but not all.
SETTINGS = frozenset({SECRET + "agent-config", SECRET + "dotenv"})


#: A text that, run as a command, runs whatever a server answers.
_FETCHES_AND_RUNS = re2.compile(
    r"(?i)\b(?:curl|wget|iwr|irm)\s[^\n|]{0,300}\|\s*(?:sudo\s+)?(?:(?:ba|z|da|k)?sh|python3?|node|perl|ruby|iex)\b|"
    r"\b(?:eval|source|(?:ba|z)?sh\s+-c)\s*[\"']?(?:\$\(|`|<\()\s*(?:curl|wget)\b|exec\(\s*\w[\w.]*urlopen\(|/dev/tcp/"
)
#: A text that, run as a command, talks to somebody.
_REACHES_OUT = re2.compile(
    r"(?i)(?:^|[^\w-])(?:curl|wget|ncat|nc|iwr|irm)\s[^\n]{0,200}[\w$]|/dev/tcp/|\burlopen\("
)


class Value(msgspec.Struct, frozen=True, gc=False):
    """What is known of an expression."""

    tags: frozenset[str] = NO_TAGS
    #: its literal parts, joined
    text: str = ""
    #: nothing in it is unknown
    literal: bool = False

    def __or__(self, other: "Value") -> "Value":
        return Value(self.tags | other.tags, (self.text + other.text)[:TEXT], self.literal and other.literal)

    def tagged(self, *tags: str) -> "Value":
        return Value(self.tags | frozenset(tags), self.text)

    @property
    def keys(self) -> list[str]:
        """The names of the services' keys in it."""
        return sorted(tag.removeprefix(KEY) for tag in self.tags if tag.startswith(KEY))

    def without_keys(self) -> "Value":
        """What goes into a header is how a service is asked."""
        if not self.tags:
            return self
        kept = frozenset(tag for tag in self.tags if not tag.startswith(KEY))
        return self if len(kept) == len(self.tags) else Value(kept, self.text, self.literal)

    def narrowed(self) -> "Value":
        """One entry of a file of settings, which is how an honest program is configured."""
        return Value(self.tags - SETTINGS, self.text, self.literal) if self.tags & SETTINGS else self

    @property
    def sensitive(self) -> list[str]:
        """What of it must not leave: kinds of secrets, and the environment."""
        return sorted(tag.removeprefix(SECRET) for tag in self.tags if tag.startswith(SOURCES))


class RunShell(Protocol):
    """Reads a command line as a shell would, or code of another language; gives back what that writes. `tags` are those
    of the text: what it sends, it sends with them."""

    def __call__(
        self, text: str, start: int, length: int, language: str = "bash", tags: frozenset[str] = NO_TAGS
    ) -> "Value": ...


NOTHING = Value()
EMPTY = Value(literal=True)


def literal(text: str) -> Value:
    return Value(NO_TAGS, text[:TEXT], literal=True)


def join_values(values: Iterable[Value], between: str = "") -> Value:
    tags = NO_TAGS
    texts: list[str] = []
    whole = True
    for value in values:
        if value.tags:
            tags = tags | value.tags
        texts.append(value.text)
        if not value.literal:
            whole = False
    return Value(tags, between.join(texts)[:TEXT], whole)


class Program:
    """One stretch of code being read: names, and the facts found so far."""

    def __init__(
        self,
        offset: int,
        names: dict[str, Value],
        worth: Worth | None = None,
        check: Check = lambda _: None,
    ) -> None:
        """`worth` tells whether a function between two offsets is worth reading; all are by default. `check` raises
        when there are no steps left."""
        self._offset = offset
        self.names = names
        self.worth = worth or (lambda _, __: True)
        self.check = check
        #: whether there was code that was not looked at
        self.partial = False
        #: the names of all files that were written
        self.written: set[str] = set()
        self.facts: dict[tuple[object, ...], Fact] = {}
        self._depth = 0
        self._steps = 0

    def enter(self) -> bool:
        """One step deeper; whether to go on. Every `enter` has its `leave`."""
        self._depth += 1
        self._steps += 1
        if not self._steps % STEPS:
            self.check(STEPS)
        if self._depth > DEEPEST:
            self.partial = True
        return self._depth <= DEEPEST

    def leave(self) -> None:
        self._depth -= 1

    def fact(self, name: str, start: int, length: int = 0, /, **attributes: str) -> None:
        key = (name, start, *sorted(attributes.items()))
        if len(self.facts) < MOST_FACTS:
            self.facts.setdefault(key, Fact(name, self._offset + start, min(length, TEXT), attributes))
        else:
            self.partial = True

    def assign(self, name: str, value: Value) -> None:
        """What a name may hold: flows are collected over the whole text."""
        before = self.names.get(name)
        if before is not None:
            value = Value(before.tags | value.tags, value.text or before.text, value.literal)
        self.names[name] = value

    def look_up(self, name: str) -> Value:
        return self.names.get(name, NOTHING)

    # What code can do, whatever its language.

    def read_file(self, path: Value, start: int, length: int = 0) -> Value:
        tags = set(path.tags - {tag for tag in path.tags if tag.startswith(PATH)})
        if what := secret_at(path.text):
            self.fact("secret.read", start, length, what=what)
            tags.add(SECRET + what)
        if path.text:
            name = base_name(path.text)
            tags.add(STORED + name)
            tags |= self.look_up(STORED + name).tags
        return Value(frozenset(tags))

    def write_file(self, path: Value, content: Value, start: int, length: int = 0) -> None:
        if what := persists_at(path.text):
            self.fact("persist", start, length, what=what)
            if DECODED in content.tags or _FETCHES_AND_RUNS.search(content.text):
                self.fact("persist.fetched", start, length, what=what)
        if path.text:
            name = base_name(path.text)
            if name in GIT_HOOKS and _REACHES_OUT.search(content.text):
                self.fact("hook.sends", start, length, what="git-hook")
            self.store(name, content)

    def store(self, name: str, content: Value) -> None:
        """A file of this name now holds the content."""
        self.written.add(name)
        self.assign(STORED + name, Value(content.tags))

    def take_files(self, inner: "Program") -> None:
        """What a command line that this code runs has written down."""
        for name in inner.written:
            self.store(name, inner.look_up(STORED + name))

    def dump_environment(self, start: int, length: int = 0) -> Value:
        self.fact("env.dump", start, length)
        return Value(frozenset({ENVIRONMENT}))

    def read_variable(self, name: str) -> Value:
        """A variable of the environment."""
        return Value(frozenset({KEY + name})) if is_service_key(name) else NOTHING

    def pack(self, content: Value, how: str, start: int, length: int = 0) -> Value:
        """Making one text of a value. Keys of several services in one are there to be carried away together."""
        if len({name.partition("_")[0] for name in content.keys}) > 1:
            self.fact("keys.packed", start, length, how=how)
        return content

    def fetch(self, target: Value, how: str, start: int, length: int = 0) -> Value:
        """Getting something; an address that a secret was put into is a way of sending it."""
        host = host_in(target.text) or "unknown"
        self._note_keys(target, host, how, start, length)
        if target.sensitive:
            self.send(target, target, how, start, length)
        self.fact("net.fetch", start, length, to=host, how=how)
        return Value(frozenset({FETCHED, f"{FETCHED}:{host}"}))

    def send(self, target: Value, content: Value, how: str, start: int, length: int = 0) -> Value:
        host = host_in(target.text) or host_in(content.text) or "unknown"
        self.fact("net.send", start, length, to=host, how=how)
        self._note_keys(target | content, host, how, start, length)
        for what in (target | content).sensitive:
            self.fact("flow", start, length, **{"from": what, "to": host, "how": how})
        return Value(frozenset({FETCHED, f"{FETCHED}:{host}"}))

    def _note_keys(self, content: Value, host: str, how: str, start: int, length: int) -> None:
        for name in content.keys:
            if host != "unknown" and how not in _OWN_MACHINES and is_foreign(name, host):
                self.fact("key.sent", start, length, name=name, to=host, how=how)

    def note_target(self, target: Value, how: str, start: int, length: int = 0) -> None:
        """An address that was decoded from a text of the program itself was hidden from its reader."""
        if COVERED in target.tags:
            self.fact("net.decoded", start, length, how=how)

    def execute(self, content: Value, how: str, start: int, length: int = 0) -> None:
        """Running a value."""
        if FETCHED in content.tags:
            hosts = [tag.removeprefix(FETCHED + ":") for tag in content.tags if tag.startswith(FETCHED + ":")]
            self.fact("exec.fetched", start, length, how=how, to=min(hosts, default="unknown"))
        if DECODED in content.tags:
            self.fact("exec.decoded", start, length, how=how)
        if SOCKET in content.tags and not content.text:
            self.fact("reverse.shell", start, length, how="socket")


def decode(content: Value) -> Value:
    """What decoding makes of a value."""
    covered = {COVERED} if content.literal and len(content.text) >= ADDRESS else set()
    return Value(content.tags | {DECODED} | covered, content.text)


def base_name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]
