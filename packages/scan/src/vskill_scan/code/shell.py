"""Shell code: follows what flows through pipes, variables, substitutions and files from commands that read or fetch to
commands that send or run. Serves scripts, fenced and inline commands, and command lines inside other languages.
What each command does is in `shell_commands`.
"""

import itertools
from collections.abc import Callable

import re2
from tree_sitter import Node

from vskill_scan.code.shell_commands import ShellCommands, knows_command
from vskill_scan.code.shell_words import unwrap, variable_name
from vskill_scan.code.taint import (
    EMPTY,
    LONGEST_TEXT,
    NOTHING,
    Program,
    RunShell,
    Value,
    join_values,
    literal,
)
from vskill_scan.places import is_service_key
from vskill_scan.words import words

#: What stands for a variable without a value.
_DEFAULT = re2.compile(r"^\$\{\w+:?-([^}]*)\}$")
_REVERSE = ("/dev/tcp/", "/dev/udp/")


class Shell:
    """Reads one tree."""

    def __init__(self, program: Program, source: bytes, nested: RunShell) -> None:
        """`nested` reads a command line that stands as a text inside this one."""
        self._program = program
        self._source = source
        self._commands = ShellCommands(program, nested)

    def run(self, node: Node, stdin: Value = NOTHING) -> Value:
        """What a statement writes to its output."""
        try:
            if not self._program.enter():
                return NOTHING
            handler = _STATEMENTS.get(node.type)
            if handler is not None:
                return handler(self, node, stdin)
            total = NOTHING
            for child in node.named_children:
                total = Value(total.tags | self.run(child, stdin).tags)
            return total
        finally:
            self._program.leave()

    # Statements.

    def on_pipeline(self, node: Node, stdin: Value) -> Value:
        value = stdin
        for child in node.named_children:
            value = self.run(child, value)
        return value

    def on_redirected(self, node: Node, stdin: Value) -> Value:
        body = node.child_by_field_name("body")
        redirects = [child for child in node.children if child.type.endswith("_redirect")]
        for redirect in redirects:
            stdin = stdin | self._input(redirect)
        output = self.run(body, stdin) if body is not None else stdin
        for redirect in redirects:
            self._output(redirect, output)
        return output

    def _input(self, redirect: Node) -> Value:
        start = redirect.start_byte
        if redirect.type == "heredoc_redirect":
            return join_values(
                self._word(child) for child in redirect.named_children if child.type == "heredoc_body"
            )
        if redirect.type == "herestring_redirect":
            return join_values(self._word(child) for child in redirect.named_children)
        target = redirect.child_by_field_name("destination")
        if target is None or self._text(redirect).lstrip("0123456789")[:1] != "<":
            return EMPTY
        if target.type == "process_substitution":
            return self._word(target)
        return self._program.read_file(self._word(target), start)

    def _output(self, redirect: Node, output: Value) -> None:
        target = redirect.child_by_field_name("destination")
        if target is None or redirect.type != "file_redirect" or ">" not in self._text(redirect)[:4]:
            return
        place = self._word(target)
        if place.text.startswith(_REVERSE):
            self._program.fact("reverse.shell", redirect.start_byte, how="dev-tcp")
            self._program.send(place, output, "socket", redirect.start_byte)
            return
        self._program.write_file(place, output, redirect.start_byte, redirect.end_byte - redirect.start_byte)

    def on_assignment(self, node: Node, stdin: Value) -> Value:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is not None and value is not None:
            self._program.assign(self._text(name), self._word(value))
        return NOTHING

    def on_loop(self, node: Node, stdin: Value) -> Value:
        """Once, with a variable that is all of its words."""
        variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        if variable is not None:
            words = map(self._word, node.children_by_field_name("value"))
            self._program.assign(self._text(variable), join_values(words, " "))
        return NOTHING if body is None else self.run(body, stdin)

    def on_command(self, node: Node, stdin: Value) -> Value:
        name = node.child_by_field_name("name")
        written_to: list[Node] = []
        for child in node.named_children:
            kind = child.type
            if kind == "variable_assignment":
                self.on_assignment(child, stdin)
            elif kind.endswith("_redirect"):
                stdin = stdin | self._input(child)
                if kind == "file_redirect":
                    written_to.append(child)
        if name is None:
            return NOTHING
        output = NOTHING
        for line in self._lines([name, *node.children_by_field_name("argument")]):
            words = list(map(self._word, line))
            self._note_assembled(line[0], words[0].text)
            start, end = line[0].start_byte, line[-1].end_byte
            output = self._commands.run(unwrap(words), stdin, start, end - start)
            stdin = NOTHING
        for redirect in written_to:
            self._output(redirect, output)
        return output

    def _lines(self, words: list[Node]) -> list[list[Node]]:
        """The grammar sometimes runs commands on several lines together; only a backslash really joins
        lines."""
        lines = [words[:1]]
        for before, word in itertools.pairwise(words):
            between = self._source[before.end_byte : word.start_byte]
            if b"\n" in between and b"\\" not in between:
                lines.append([])
            lines[-1].append(word)
        return lines

    # Words.

    def _word(self, node: Node) -> Value:
        kind = node.type
        if kind == "word" and not node.named_child_count:
            return literal(self._text(node))
        match kind:
            case "simple_expansion" | "expansion":
                # The parser gives it the space that stands before it in a string.
                written = self._text(node).lstrip()
                name = variable_name(written)
                known = self._program.look_up(name)
                tags = known.tags if name in self._program.names else self._program.read_variable(name).tags
                default = _DEFAULT.match(written) if "-" in written else None
                text = known.text or (default.group(1) if default else "sh" if name == "SHELL" else written)
                return Value(tags, text, literal=known.literal)
            case "command_substitution" | "process_substitution":
                if is_service_key(name := self._text(node).strip("$() \t\n")):
                    # How a makefile names a variable.
                    return self._program.read_variable(name)
                outputs = [self.run(child) for child in node.named_children]
                return outputs[0] if len(outputs) == 1 else Value(join_values(outputs).tags)
            case "raw_string" | "ansi_c_string":
                return literal(self._text(node).lstrip("$").strip("'"))
        parts = [child for child in node.named_children if child.type in _PARTS]
        if not parts:
            return literal(self._text(node).strip("\"'"))
        return self._compound(node, parts)

    def _compound(self, node: Node, parts: list[Node]) -> Value:
        """Literal text between the parts is kept in order."""
        try:
            if not self._program.enter():
                return NOTHING
            total, at = EMPTY, node.start_byte
            for part in parts:
                total = total | literal(self._slice(at, part.start_byte).replace('"', "")) | self._word(part)
                at = part.end_byte
            return total | literal(self._slice(at, node.end_byte).replace('"', ""))
        finally:
            self._program.leave()

    def _text(self, node: Node) -> str:
        return self._slice(node.start_byte, node.end_byte)

    def _slice(self, start: int, end: int) -> str:
        if end - start > LONGEST_TEXT:
            end = start + LONGEST_TEXT
        return self._source[start:end].decode("utf-8", "replace")

    def _note_assembled(self, node: Node, command: str) -> None:
        """A command whose name is put together from variables. `python$VERSION` and `$FOLDER/curl` are not."""
        glued = node.named_children[0] if node.named_children else node
        if glued.type not in _GLUED or not knows_command(name := _program_name(command)):
            return
        if all(_program_name(self._word(part).text) != name for part in glued.named_children):
            self._program.fact("command.assembled", node.start_byte, node.end_byte - node.start_byte)


_GLUED = frozenset({"concatenation", "string"})


def _program_name(text: str) -> str:
    """The first word without its folder and its version."""
    return next(iter(text.split(None, 1)), "").strip("\"'").rpartition("/")[2].rstrip(".0123456789")


_PARTS = frozenset(
    words(
        "simple_expansion expansion command_substitution process_substitution string raw_string ansi_c_string "
        "concatenation string_expansion"
    )
)
_STATEMENTS: dict[str, Callable[[Shell, Node, Value], Value]] = {
    "pipeline": Shell.on_pipeline,
    "redirected_statement": Shell.on_redirected,
    "variable_assignment": Shell.on_assignment,
    "command": Shell.on_command,
    "for_statement": Shell.on_loop,
}
