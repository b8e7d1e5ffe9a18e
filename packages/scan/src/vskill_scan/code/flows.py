"""What Python and the shell do with secrets, downloads and encoded texts, told statement by statement: where it comes
from is a tag of the names that it is given to, and a fact where it reaches something that matters.

It is deliberately blunt: names are not scoped, branches are not told apart, and all that stands in one statement
touches each other. It looks for code that takes a secret and sends it, not for proof.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

import re2

from vskill_scan.code import doing
from vskill_scan.code.statements import (
    KEY,
    LONGEST_TEXT,
    CodeStatement,
    PythonReader,
    ShellReader,
    ShellStatement,
    Value,
    python_statements,
    shell_statements,
)
from vskill_scan.limits import READ_BYTES
from vskill_scan.model import CodeBlock, Fact, Layer
from vskill_scan.places import (
    GIT_HOOKS,
    host_in,
    is_broad,
    is_foreign,
    is_service_key,
    persists_at,
    secret_at,
)
from vskill_scan.reading.languages import FOLLOWED
from vskill_scan.reading.outline import COMMANDS
from vskill_scan.results.command_lines import blank_quoted

#: Command lines inside other languages that are read, per layer.
MOST_COMMAND_LINES = 2000
MOST_FACTS = 10_000
#: Names that are looked for in a statement; of more, every statement is read.
MOST_LOOKED_FOR = 200
#: Quotes, brackets and ends of statements that are read in the time of one step.
SIGNS_READ, _SIGNS = 4, (b"'", b'"', b"`", b"(", b";", b"&&", b"|", b"\n")
#: Steps that one statement takes that is read, and each character that is put into it for a name.
STATEMENT_STEPS, INSERTED_STEPS = 4, 3
#: Places that one name's value may come from.
MOST_TAGS = 200
#: Of code that is run by code.
DEEPEST = 8
#: More code in one piece is not read.
MOST_CODE_BYTES = 512 * 1024
TOO_LARGE = f"not fully read: more than {MOST_CODE_BYTES} bytes of code in one piece"
TANGLED = "not fully read: its code is too tangled"

#: Spends steps; raises when none are left.
Check = Callable[[int], None]

FETCHED, DECODED, COVERED, SOCKET = "fetched", "decoded", "covered", "socket"
HOME_TREE, ENCRYPTED, SAVED = "tree:home", "encrypted", "saved"
SECRET, STORED, OUT = "secret:", "file:", "out:"
#: Files of which one entry may be read and sent, but not all.
_SETTINGS = SECRET + "agent-config"
_NOTHING, _NO_TAGS = Value(), frozenset[str]()
_RUNNABLE = frozenset((FETCHED, DECODED, SOCKET))
#: A variable, or what stands between two.
_PARTS = re2.compile(r"\$\{?(\w+)\}?")


def read_code(layer: Layer, check: Check = lambda _: None) -> None:
    """Adds the facts of the layer's code. `check` raises when there are no steps left; what was found until then
    stays."""
    blocks = [block for block in layer.blocks if block.language in FOLLOWED]
    # Between line breaks, so that what begins or ends a block begins or ends a line.
    signs = doing.telling_words(b"\n".join(layer.flowing[block.start : block.end] for block in blocks))
    if not signs:
        return
    # Blocks of one file continue each other: what one fence downloads the next may run.
    program = _Program(layer, check)
    try:
        for block in blocks:
            written = layer.flowing[block.start : block.end]
            hits = sorted(block.start + hit.end() - 1 for sign in signs for hit in sign.finditer(written))
            if not (hits or program.names_known(written)):
                continue
            check(len(written) // READ_BYTES + sum(map(written.count, _SIGNS)) // SIGNS_READ)
            if block.end - block.start > MOST_CODE_BYTES:
                layer.unread = TOO_LARGE
            else:
                program.read(block, hits)
    finally:
        layer.facts.extend(program.facts.values())


class _Program:
    """The code of one layer: its names, and the facts found so far."""

    def __init__(self, layer: Layer, check: Check) -> None:
        self._layer, self._check = layer, check
        self.facts: dict[tuple[object, ...], Fact] = {}
        self._names: dict[str, Value] = {}
        self._readers: dict[str, PythonReader | ShellReader] = {
            "python": PythonReader(self._names),
            "bash": ShellReader(self._names),
        }
        #: names and files with tags
        self._tagged: set[bytes] = set()
        #: whether any file was written
        self._stored = False
        self._left = MOST_COMMAND_LINES
        self._at = self._length = self._depth = 0

    def read(self, block: CodeBlock, hits: list[int]) -> None:
        """`hits` are the places of words that tell."""
        code, language = self._layer.flowing, block.language
        for start, end, written, documents in _statements(language, code, block.start, block.end):
            if not written.strip() and not documents:
                continue
            # It begins behind a line that goes on, too.
            stripped = code[start:end].lstrip(b"\\ \t\r\n")
            before = bisect_left(hits, start)
            self._at, self._length = end - len(stripped), len(stripped.rstrip())
            if (before < len(hits) and hits[before] <= end) or self.names_known(written):
                self._check(STATEMENT_STEPS)
                if language == "bash" and doing.hides_command(stripped):
                    self._fact("command.assembled")
                self._statement(language, written, _NO_TAGS, documents)
            elif doing.sets_a_name(language, written):
                self._give(language, self._said(language, written), _NO_TAGS)

    def names_known(self, written: bytes) -> bool:
        """Whether it names something that is worth following."""
        return len(self._tagged) > MOST_LOOKED_FOR or any(name in written for name in self._tagged)

    def _command(self, text: str, tags: frozenset[str], language: str = "bash") -> frozenset[str]:
        """Code that the code runs, with the tags of what is put into it; the tags of what it writes."""
        self._left -= 1
        code = text.encode("utf-8", "replace")
        if self._left < 0 or self._depth > DEEPEST:
            self._layer.unread = TANGLED
            return _NO_TAGS
        self._depth += 1
        found = [
            self._statement(language, written, tags, documents)
            for _, _, written, documents in _statements(language, code, 0, len(code))
        ]
        self._depth -= 1
        return _NO_TAGS.union(*found)

    def _fact(self, name: str, /, **attributes: str) -> None:
        key = (name, self._at, *sorted(attributes.items()))
        if len(self.facts) < MOST_FACTS:
            self.facts.setdefault(key, Fact(name, self._at, min(self._length, LONGEST_TEXT), attributes))
        else:
            self._layer.unread = TANGLED

    # One statement.

    def _said(self, language: str, code: bytes) -> CodeStatement:
        written = code.decode("utf-8", "replace").strip()
        said = self._readers[language].read(written)
        self._check(INSERTED_STEPS * max(0, len(said.text) - len(written)) + len(said.used))
        return said

    def _statement(
        self, language: str, code: bytes, given: frozenset[str], documents: Sequence[bytes] = ()
    ) -> frozenset[str]:
        """Reads one; the tags of what it comes to."""
        said = self._said(language, code)
        if language == "bash":
            plain = blank_quoted(said.text.encode("utf-8", "replace")).decode("utf-8", "replace")
            said = said._replace(plain=plain)
            runs = doing.takes_code(plain) if documents else ""
            for document in documents:
                if runs:
                    given |= self._command(document.decode("utf-8", "replace"), given, runs)
                else:
                    said = self._with_document(said, document)
        tags = given | self._carried(said) | self._sources(language, said)
        if language == "python":
            tags |= self._started(said.text, tags)
            if b"import" in code or "import" in said.text:
                self._imported(said.text)
        else:
            tags = tags.union(
                *(self._command(script, tags, of) for script, of in doing.scripts_in(said.text))
            )
            self._run_files(said.text)
            if doing.opens_shell(said.plain):
                self._fact("reverse.shell")
            if self._is_assembled(code.decode("utf-8", "replace").strip(), said.text):
                self._fact("command.assembled")
        self._check(len(tags))
        self._does(language, said, tags)
        self._write(language, said.text, tags)
        self._give(language, said, tags)
        return tags

    def _with_document(self, said: CodeStatement, document: bytes) -> CodeStatement:
        """With what it is given as input, and the outputs that are put into that."""
        inside = self._said("bash", document)
        outputs = [] if doing.LITERAL_MARK.search(said.text) else doing.OUTPUT.findall(inside.text)
        text, plain = f"{said.text}\n{inside.text}", "\n".join((said.plain, *outputs))
        return said._replace(text=text, plain=plain, used=[*said.used, *inside.used])

    def _does(self, language: str, said: CodeStatement, tags: frozenset[str]) -> None:
        """What a statement sends, runs and deletes."""
        if tags:
            self._sent(language, said, tags)
        for how in doing.run_by(language, said) if _RUNNABLE & tags else ():
            self._run(how, tags)
        for what in doing.removed(said.text):
            self._fact("delete.broad", what=what)
        if HOME_TREE in tags:
            is_lost = ENCRYPTED in tags and doing.WRITES.search(said.text)
            if is_lost or doing.UNLINKS.search(said.text):
                self._fact("delete.broad", what="~")

    def _carried(self, said: CodeStatement) -> frozenset[str]:
        """What the names and files in it hold."""
        tags: set[str] = set()
        for one in said.used:
            value = self._names.get(one.name)
            if value is not None and value.tags:
                is_entry = one.rest == ".get(" or (bool(one.rest) and not one.rest.endswith("("))
                tags |= value.tags - {_SETTINGS} if is_entry else value.tags
        if self._stored:
            for name in doing.FILE_NAME.findall(said.text):
                tags |= self._names.get(STORED + name, _NOTHING).tags
        return frozenset(tags - {_SETTINGS} if _SETTINGS in tags and doing.PICKS.search(said.text) else tags)

    def _sources(self, language: str, said: CodeStatement) -> frozenset[str]:
        tags: set[str] = set()
        text, plain = said.text, said.plain
        for what in dict.fromkeys(map(secret_at, doing.secret_stretches(language, said))):
            if what:
                self._fact("secret.read", what=what)
                tags.add(SECRET + what)
        if doing.ENVIRONMENT[language].search(plain) and not doing.CHOSEN.search(plain):
            self._fact("env.dump")
            tags.add(SECRET + "env")
        if doing.FETCHES[language].search(plain) or "urlopen(" in text:
            tags |= {FETCHED, f"{FETCHED}:{host_in(text) or 'unknown'}"}
        if doing.DECODES[language].search(plain):
            tags |= {DECODED, COVERED} if doing.covers(text) else {DECODED}
        if language == "python" and doing.connects(text):
            tags.add(SOCKET)
        if ".encrypt" in text:
            tags.add(ENCRYPTED)
        walked = doing.WALKS.search(text) if language == "python" else None
        if walked is not None and is_broad(walked.group(1) or walked.group(2)):
            tags.add(HOME_TREE)
        if _SETTINGS in tags and doing.PICKS.search(text):
            tags.discard(_SETTINGS)
        return frozenset(tags.union(KEY + name for name in self._own_keys(language, text)))

    def _own_keys(self, language: str, text: str) -> list[str]:
        """Keys of services that it takes from the environment, and not from a variable of its own."""
        found = doing.keys_in(language, text)
        return [
            name for name in found if is_service_key(name) and (language != "bash" or name not in self._names)
        ]

    def _sent(self, language: str, said: CodeStatement, tags: frozenset[str]) -> None:
        talks = doing.SENDS[language].search(said.plain) or doing.FETCHES[language].search(said.plain)
        text, host = said.text, host_in(said.text) or "unknown"
        if talks and (pipe := said.plain.find("|", talks.end())) >= 0 and language == "bash":
            # What is read behind the request does not go into it.
            before = said._replace(text=text[:pipe], plain=said.plain[:pipe])
            tags -= self._sources(language, said) - self._sources(language, before) - self._carried(said)
        secrets = sorted(tag.removeprefix(SECRET) for tag in tags if tag.startswith(SECRET))
        if secrets and (talks or doing.ASKS_NAMES.search(said.plain)):
            for what in secrets:
                self._fact("flow", **{"from": what, "to": host})
        keys = self._keys(language, text) if any(tag.startswith(KEY) for tag in tags) else []
        if talks and host != "unknown":
            for name in keys:
                if is_foreign(name, host):
                    self._fact("key.sent", name=name, to=host)
        target = doing.TARGET.search(text) if talks and COVERED in tags else None
        if target is not None and (
            language == "bash" or COVERED in self._names.get(target.group(1) or "", _NOTHING).tags
        ):
            self._fact("net.decoded")
        if len({name.partition("_")[0] for name in keys}) > 1 and doing.PACKS.search(text):
            self._fact("keys.packed")

    def _keys(self, language: str, text: str) -> list[str]:
        """Keys of services in it, but for those in headers: they say who asks."""
        said = doing.without_headers(text)
        held = {tag for name in doing.NAME.findall(said) for tag in self._names.get(name, _NOTHING).tags}
        named = {tag.removeprefix(KEY) for tag in held if tag.startswith(KEY)}
        return sorted(named.union(self._own_keys(language, said)))

    # What runs.

    def _run(self, how: str, tags: frozenset[str]) -> None:
        if FETCHED in tags:
            hosts = [tag.partition(":")[2] for tag in tags if tag.startswith(FETCHED + ":")]
            self._fact("exec.fetched", how=how, to=min(hosts, default="unknown"))
        if DECODED in tags:
            self._fact("exec.decoded", how=how)
        if SOCKET in tags:
            self._fact("reverse.shell")

    def _started(self, text: str, tags: frozenset[str]) -> frozenset[str]:
        """A command that a program starts; the tags of what that writes."""
        command = doing.started(text)
        if command is None:
            return _NO_TAGS
        if SAVED in tags:
            self._run("program", tags)
        elif {SOCKET, DECODED} & tags:
            self._run("command", tags - {FETCHED})
        return self._command(command, tags)

    def _run_files(self, text: str) -> None:
        """A file that was written before and runs as a program."""
        for name in doing.programs_in(text) if self._stored else ():
            self._run("program", self._names.get(STORED + name, _NOTHING).tags)

    def _imported(self, text: str) -> None:
        for name in doing.NAME.findall(text) if self._stored else ():
            self._run("import", self._names.get(f"{STORED}{name}.py", _NOTHING).tags)

    def _is_assembled(self, written: str, text: str) -> bool:
        """Whether the name of a command is put together from variables. `python$VERSION` and `$FOLDER/curl` are not."""
        first, run = (_program(one[:LONGEST_TEXT]) for one in (written, text))
        parts = [one for one in _PARTS.split(first) if one]
        said = [_program(self._names[one].text if one in self._names else one) for one in parts]
        return "$" in first and len(parts) > 1 and run.encode() in COMMANDS and run not in said

    # What is written.

    def _write(self, language: str, text: str, tags: frozenset[str]) -> None:
        places = [*doing.written_to(language, text)]
        if doing.WRITES.search(text):
            places += [tag.removeprefix(OUT) for tag in tags if tag.startswith(OUT)]
        for place in places:
            name = place.replace("\\", "/").rstrip("/").rpartition("/")[2]
            if what := persists_at(place):
                self._fact("persist", what=what)
                if DECODED in tags or doing.FETCHES_AND_RUNS.search(text):
                    self._fact("persist.fetched", what=what)
            if name in GIT_HOOKS and doing.REACHES_OUT.search(text.replace("\\n", "\n")):
                self._fact("hook.sends", what="git-hook")
            self._stored = True
            self._assign(STORED + name, Value(tags))
        if language == "bash" and (what := doing.scheduled(text)):
            self._fact("persist", what=what)

    def _give(self, language: str, said: CodeStatement, tags: frozenset[str]) -> None:
        if not doing.keeps_keys(said.value):
            tags = frozenset(tag for tag in tags if not tag.startswith(KEY))
        if language == "bash":
            for name, text in doing.shell_variables(said.text):
                self._assign(name, Value(tags, text))
            return
        if "urlretrieve(" in said.text or "wget.download(" in said.text:
            for one in said.used[1:]:
                self._assign(one.name, Value(tags | {SAVED}))
        if opened := doing.OPENED.search(said.text):
            tags |= {OUT + (opened.group(1) or opened.group(2))}
        text = doing.literal_of(said) if len(said.given) == 1 else ""
        for name in said.given:
            self._assign(name, Value(tags, text))

    def _assign(self, name: str, value: Value) -> None:
        if value.tags or doing.is_worth_following(value.text):
            self._tagged.add(name.removeprefix(STORED).encode("utf-8", "replace"))
        before = self._names.get(name, _NOTHING)
        tags = before.tags if before.tags >= value.tags else before.tags | value.tags
        if len(tags) > MOST_TAGS:
            self._layer.unread, tags = TANGLED, before.tags
        self._names[name] = Value(tags, value.text[:LONGEST_TEXT] or before.text)


def _statements(language: str, code: bytes, start: int, end: int) -> Iterator[ShellStatement]:
    if language == "bash":
        return shell_statements(code, start, end)
    return (
        ShellStatement(first, stop, code[first:stop]) for first, stop in python_statements(code, start, end)
    )


def _program(text: str) -> str:
    """The first word without its folder and its version."""
    return next(iter(text.split(None, 1)), "").strip("\"'").rpartition("/")[2].rstrip(".0123456789")
