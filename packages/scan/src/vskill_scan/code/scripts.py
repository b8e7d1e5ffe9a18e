"""Ruby, Perl, PHP, Lua, PowerShell, Go, VBScript and awk, read token by token: their syntaxes differ, but in all of
them names are assigned, functions are called with or without brackets, and texts are joined. That is enough to follow
a secret to a request, and a download or a decoded text to what runs it. One pass, in time linear in the text.

A grammar for each of them was measured and not chosen: docs/adr/0022-scripts-by-tokens.md.
"""

import msgspec
import re2

from vskill_scan.code.script_calls import BARE, HOMES, Doing, doing_of
from vskill_scan.code.script_effects import CallInputs, CallPlace, ScriptEffects
from vskill_scan.code.script_tokens import MOST_TOKENS, ScriptToken, script_tokens
from vskill_scan.code.taint import (
    ASSEMBLED,
    EMPTY,
    FETCHED,
    NOTHING,
    Program,
    RunShell,
    Value,
    join_values,
    literal,
)

#: Brackets inside each other; deeper code is not followed, and the scan is not complete.
DEEPEST = 50

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_INNER_NAME = re2.compile(r"#\{([^}]{1,80})\}|\{\$([\w>\-]{1,60})\}|\$\{?([A-Za-z_]\w{0,60})")
_WORDS_MARK = re2.compile(r"^%[wWqQ][\[({|]")


class _Name(msgspec.Struct, frozen=True, gc=False):
    """What is known of a name by its spelling."""

    #: with dots between its parts, in lower case, without the marks of a variable
    dotted: str
    #: its first part, as written
    first: str
    #: what a function of that name does
    doing: Doing | None


def _read_name(name: str) -> _Name:
    parts = name.replace("::", ".").replace("->", ".").replace(":", ".")
    dotted = parts.lstrip("$@%&").lower()
    return _Name(dotted, parts.partition(".")[0], doing_of(dotted))


class ScriptCode:
    """Reads one script."""

    def __init__(self, program: Program, source: bytes, run_shell: RunShell, language: str) -> None:
        self._program = program
        self._run_shell = run_shell
        self._language = language
        self._tokens = self._read_tokens(source)
        self._at = 0
        self._depth = 0
        #: what the values of statements go to as well: the name that a block is assigned to
        self._collects: list[str] = []
        self._known: dict[str, _Name] = {}
        self._effects = ScriptEffects(program, run_shell, self._name_before)

    def _read_tokens(self, source: bytes) -> list[ScriptToken]:
        tokens: list[ScriptToken] = []
        for token in script_tokens(source, self._language):
            if token.kind == "comment":
                self._program.comments.add((token.start, token.end))
            elif len(tokens) == MOST_TOKENS:
                self._program.partial = True
                break
            else:
                tokens.append(token)
        return tokens

    def run(self) -> None:
        for _ in range(2):
            # Functions may stand below what calls them, and loops give back what they took.
            self._at = 0
            while self._at < len(self._tokens):
                before = self._at
                self._statement("")
                if self._at == before:
                    self._at += 1
            if not self._program.crosses_functions:
                return

    # Statements.

    def _peek(self) -> ScriptToken | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _statement(self, closing: str) -> Value:
        """One statement up to its end, or up to the bracket that closes what it stands in."""
        first = self._peek()
        if first is not None and first.text == "end" and self._collects:
            self._collects.pop()
        parts = self._sequence(closing, statement=True)
        value = join_values(parts, " ")
        if self._collects and value.tags:
            self._program.assign(self._collects[-1], Value(value.tags))
        return value

    def _sequence(self, closing: str, *, statement: bool = False) -> list[Value]:
        """The values between commas, up to the closing bracket or, in a statement, to its end."""
        try:
            self._depth += 1
            if not self._program.enter() or self._depth > DEEPEST:
                self._program.partial = True
                self._skip(closing)
                return []
            return self._values(closing, statement=statement)
        finally:
            self._depth -= 1
            self._program.leave()

    def _skip(self, closing: str) -> None:
        while (token := self._peek()) is not None and token.text != closing:
            self._at += 1

    def _values(self, closing: str, *, statement: bool) -> list[Value]:
        state = _Sequence()
        while (token := self._peek()) is not None:
            if token.kind == "close" and (token.text == closing or statement or closing):
                if not statement or token.text != closing:
                    self._at += token.text == closing
                break
            if token.kind == "end" and (statement or closing == "}"):
                self._at += 1
                if statement:
                    break
                state.push()
                continue
            self._at += 1
            self._take(token, state)
        return self._finish(state)

    def _take(self, token: ScriptToken, state: "_Sequence") -> None:
        match token.kind:
            case "string":
                state.add(self._text_of(token))
            case "name":
                self._on_name(token, state)
            case "member":
                state.current = self._call(token.text.lstrip(":.->"), token, state.current, state)
            case "open":
                self._on_open(token, state)
            case "sign":
                self._on_sign(token, state)

    def _finish(self, state: "_Sequence") -> list[Value]:
        state.push()
        if state.targets:
            value = join_values(state.values, " ")
            for name in state.targets:
                self._program.assign(name, value)
            if state.opens_block:
                self._collects.append(state.targets[-1])
        return state.values

    def _on_sign(self, token: ScriptToken, state: "_Sequence") -> None:
        following = self._peek()
        if token.text == ",":
            state.push()
        elif token.text == "=" and not (following is not None and following.text in {"=", "~", ">"}):
            if state.last_sign not in {"=", "!", "<", ">", "~"} and state.names:
                state.assign()
        elif token.text == "|":
            self._on_pipe(state)
        elif token.text == "." and following is not None and following.text == "(":
            # A method whose name is put together.
            self._at += 1
            name = join_values(self._sequence(")"), "").text
            state.current = self._call(name, token, state.current.tagged(ASSEMBLED), state)
        elif token.text == "&" and self._language == "powershell" and state.current is EMPTY:
            given = join_values(self._bare_arguments(), " ")
            self._effects.run(given, "scriptblock", CallPlace(token.start, self._end() - token.start))
            state.add(given)
        state.last_sign = token.text

    def _on_pipe(self, state: "_Sequence") -> None:
        """Parameters of a block, or in PowerShell what goes into the next command."""
        if state.opens_block or state.last_open:
            names: list[str] = []
            while (token := self._peek()) is not None and token.text != "|" and token.kind != "end":
                self._at += 1
                if token.kind == "name":
                    names.append(token.text)
            self._at += 1
            for name in names:
                self._program.assign(name, state.block_value)
        elif self._language == "powershell":
            state.piped = state.current
            self._program.assign("$_", state.current)
        elif self._language == "awk":
            self._pipe_command(state)

    def _pipe_command(self, state: "_Sequence") -> None:
        """`"command" | getline name` takes what a command writes, `print name | "command"` gives it something."""
        token = self._peek()
        if token is None:
            return
        given = join_values([*state.values, state.current])
        if token.text == "getline":
            self._at += 1
            output = self._run_shell(given.text.strip("?"), token.start, 0, tags=given.tags)
            target = self._peek()
            if target is not None and target.kind == "name":
                self._at += 1
                self._program.assign(target.text, Value(output.tags))
            state.current = Value(output.tags)
        elif token.kind == "string":
            self._run_shell(token.text[1:-1], token.start, len(token.text), tags=given.tags)

    def _on_open(self, token: ScriptToken, state: "_Sequence") -> None:
        block = token.text == "{"
        if block:
            state.block_value = state.current
            if self._language == "powershell":
                self._program.assign("$_", state.current)
        following = self._peek()
        if block and following is not None and following.text == "|":
            self._at += 1
            state.last_open = True
            self._on_pipe(state)
            state.last_open = False
        inner = join_values(self._block() if block else self._sequence(_CLOSING[token.text]), " ")
        if token.text == "[" and following is not None and following.kind == "name":
            # A type of PowerShell: what follows it is a member of it.
            state.type_name = following.text
        state.add(inner)

    def _block(self) -> list[Value]:
        values: list[Value] = []
        while (token := self._peek()) is not None:
            if token.text == "}":
                self._at += 1
                break
            before = self._at
            values.append(self._statement("}"))
            if self._at == before:
                self._at += 1
        return values

    # Names.

    def _on_name(self, token: ScriptToken, state: "_Sequence") -> None:
        name = token.text
        lower = name.lower()
        state.last_sign = ""
        if lower == "do":
            state.opens_block = True
            state.block_value = state.current
            following = self._peek()
            if following is not None and following.text == "|":
                self._at += 1
                self._on_pipe(state)
            return
        if lower == "as" and self._language == "php":
            state.binds = True
            return
        if lower == "in" and state.names:
            state.assign()
            return
        if state.binds:
            self._program.assign(name, Value(state.current.tags, state.current.text))
            return
        state.names.append(name)
        piped, state.piped = state.piped, NOTHING
        result = self._call(name, token, piped, state)
        state.current = result | Value(piped.tags) if piped is not NOTHING else state.current | result

    def _read_name(self, name: str) -> _Name:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = _read_name(name)
        return known

    def _look_up(self, name: str) -> Value:
        """What a variable holds; of one that nobody knows something stands in a text."""
        for known in (name, self._read_name(name).first):
            if known in self._program.names:
                return self._program.names[known]
        if name in {"STDIN", "STDOUT", "STDERR"}:
            return literal(name)
        plain = name.lstrip("$@%").lower()
        variable = plain.rpartition(":")[2]
        if variable in HOMES and ("env" in plain or name.isupper()):
            return Value(frozenset({"path:home"}), "~")
        return Value(text="?")

    def _call(self, name: str, token: ScriptToken, receiver: Value, state: "_Sequence") -> Value:
        """A name with what follows it: arguments in brackets, arguments without, or nothing."""
        known = self._read_name(name)
        dotted, doing = known.dotted, known.doing
        if token.kind == "member" and state.type_name:
            dotted = f"{state.type_name}.{dotted}".lower()
            state.type_name = ""
            doing = doing_of(dotted)
        following = self._peek()
        if doing is not None and following is not None and following.text.lower() == ".invoke":
            self._at += 1
            following = self._peek()
        own = Value(text="?") if token.kind == "member" else self._look_up(name)
        if dotted in _ENVIRONMENTS and following is not None and following.text in {"[", "{"}:
            return receiver | self._variable(following)
        if name in _WHOLE_ENVIRONMENT:
            doing = Doing.DUMP
        arguments = self._arguments(dotted, doing, following)
        if arguments is None or (dotted == "new" and receiver.tags):
            return join_values([receiver, own, *(arguments or ())])
        if doing is None and (callee := doing_of(self._program.look_up(name).text.lower())) is not None:
            # A function under another name.
            doing, own = callee, Value(frozenset({ASSEMBLED}))
        place = CallPlace(token.start, self._end() - token.start)
        result = self._effects.apply(doing, dotted, CallInputs(own, receiver, arguments), place)
        if doing is Doing.FETCH or (doing is Doing.READ and FETCHED in result.tags):
            # An object that is asked for its answer later.
            self._program.assign(known.first, Value(result.tags))
        return result

    def _arguments(self, name: str, doing: Doing | None, following: ScriptToken | None) -> list[Value] | None:
        """What a name is called with; None where it is not called."""
        if following is not None and following.text == "(":
            self._at += 1
            return self._sequence(")")
        if doing is not None and self._takes_bare(name, following):
            return self._bare_arguments()
        return [] if doing in _WITHOUT_ARGUMENTS else None

    def _end(self) -> int:
        return self._tokens[min(self._at, len(self._tokens)) - 1].end

    def _variable(self, opening: ScriptToken) -> Value:
        self._at += 1
        name = join_values(self._sequence(_CLOSING[opening.text]), "").text.strip("?")
        if name.lower() in HOMES:
            return Value(frozenset({"path:home"}), "~")
        return self._program.read_variable(name).tagged() if name else NOTHING

    def _takes_bare(self, name: str, following: ScriptToken | None) -> bool:
        if following is None or following.kind in {"end", "close"}:
            return False
        last = name.rpartition(".")[2]
        if self._language in {"powershell", "vbscript"}:
            return "-" in name or last in BARE or name in {"irm", "iwr", "iex", "gc", "gci", "curl", "wget"}
        if self._language == "lua" and (following.kind == "string" or following.text == "{"):
            return True
        if self._language == "perl" and following.text == "{":
            # A block whose failures are caught.
            return False
        return last in BARE and (following.kind in {"string", "name"} or following.text in "{[")

    def _bare_arguments(self) -> list[Value]:
        """Up to the end of the statement, a pipe, or the bracket around it."""
        state = _Sequence()
        while (token := self._peek()) is not None:
            if token.kind in {"end", "close"} or token.text == "|":
                break
            self._at += 1
            if token.kind == "name" and self._is_option():
                state.add(literal("-" + token.text))
                state.push()
                continue
            self._take(token, state)
            following = self._peek()
            if self._language == "powershell" and following is not None and following.start > self._end():
                state.push()
        state.push()
        return state.values

    def _is_option(self) -> bool:
        before = self._tokens[self._at - 2] if self._at > 1 else None
        return self._language == "powershell" and before is not None and before.text == "-"

    def _text_of(self, token: ScriptToken) -> Value:
        text = token.text
        if text.startswith("`") and self._language in {"ruby", "perl", "php"}:
            value = self._inner(text[1:-1])
            output = self._run_shell(value.text, token.start, len(text), tags=value.tags)
            return Value(value.tags | output.tags)
        if text.startswith("%"):
            return literal(_WORDS_MARK.sub("", text)[:-1])
        if text.startswith("[["):
            return literal(text[2:-2])
        return literal(text[1:-1]) if text.startswith("'") else self._inner(text[1:-1])

    def _inner(self, text: str) -> Value:
        """A text with the names in it."""
        if "$" not in text and "#{" not in text:
            return literal(text)
        parts: list[Value] = []
        at = 0
        for match in _INNER_NAME.finditer(text):
            parts.append(literal(text[at : match.start()]))
            name = next(one for one in match.groups() if one)
            held = self._program.names.get("$" + name) or self._look_up(
                name if match.group(1) else "$" + name
            )
            parts.append(Value(held.tags, held.text))
            at = match.end()
        return join_values([*parts, literal(text[at:])])

    def _name_before(self, start: int) -> str:
        """The handle that Perl's `open` fills: the first variable among its arguments."""
        for token in self._tokens[max(0, self._at - 24) : self._at]:
            if token.start > start and token.kind == "name" and token.text.startswith("$"):
                return token.text
        return ""


class _Sequence:
    """One sequence of values while it is read."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.current = EMPTY
        #: names since the statement began, and those that its value goes to
        self.names: list[str] = []
        self.targets: list[str] = []
        self.last_sign = ""
        self.last_open = False
        self.opens_block = False
        self.block_value = NOTHING
        self.piped = NOTHING
        self.binds = False
        self.type_name = ""

    def add(self, value: Value) -> None:
        self.current = self.current | value

    def push(self) -> None:
        if self.current is not EMPTY:
            self.values.append(self.current)
        self.current = EMPTY

    def assign(self) -> None:
        """What was read so far are the names that the rest goes to."""
        if not self.targets:
            self.values = []
        self.targets = self.names[-2:]
        self.current = EMPTY
        self.names = []


_ENVIRONMENTS = frozenset({"env", "_env", "_server"})
_WHOLE_ENVIRONMENT = frozenset({"%ENV", "$_ENV", "ENV"})
_WITHOUT_ARGUMENTS = frozenset({Doing.DUMP, Doing.CLIPBOARD, Doing.HOME, Doing.REVERSE})
