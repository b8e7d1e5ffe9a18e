"""Python code: every expression of a tree is evaluated roughly, with imports resolved, and `calls` says what each call
does. Broken files are read as far as they can be.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar

from tree_sitter import Node

from vskill_scan.code.calls import Call, effect_of
from vskill_scan.code.taint import (
    EMPTY,
    HOME_TREE,
    LONGEST_TEXT,
    NOTHING,
    Program,
    RunShell,
    Value,
    decode,
    join_values,
    literal,
)
from vskill_scan.places import is_broad
from vskill_scan.words import words

_QUOTES = frozenset((b'"', b"'"))
_IMPORTERS = frozenset({"__import__", "importlib.import_module", "import_module"})
#: What may have a name that is known from elsewhere.
_NAMED = frozenset({"identifier", "attribute", "call"})
#: Around the whole environment: one variable of it, or what a child process is given.
_ENVIRONMENT_PASSED_ON = frozenset(
    {"subscript", "comparison_operator", "dictionary_splat", "keyword_argument"}
)
#: What these give back says nothing of what they were given.
_TELLING_NOTHING = frozenset(words("exists isfile isdir is_file is_dir print len isinstance"))


class PythonCode:
    """Reads one tree."""

    nodes: ClassVar[Mapping[str, Callable[["PythonCode", Node], Value]]]

    def __init__(self, program: Program, source: bytes, run_shell: RunShell) -> None:
        self._program = program
        self._source = source
        self._run_shell = run_shell
        self._aliases: dict[str, str] = {}
        self._in_function = False

    def run(self, root: Node) -> Value:
        return self.on_block(root)

    def _value(self, node: Node) -> Value:
        kind = node.type
        if kind == "identifier":
            return self._program.look_up(self._text(node))
        try:
            if not self._program.enter():
                return NOTHING
            reader = self.nodes.get(kind)
            if reader is not None:
                return reader(self, node)
            return self._children(node) if node.named_child_count else NOTHING
        finally:
            self._program.leave()

    def _children(self, node: Node) -> Value:
        return join_values(map(self._value, node.named_children))

    # Statements.

    def on_block(self, node: Node) -> Value:
        """Statements have no value."""
        for child in node.named_children:
            self._value(child)
        return NOTHING

    def on_import(self, node: Node) -> Value:
        module = node.child_by_field_name("module_name")
        prefix = self._text(module) + "." if module is not None else ""
        for name in node.children_by_field_name("name"):
            real, alias = name, name
            if name.type == "aliased_import":
                real = name.child_by_field_name("name") or name
                alias = name.child_by_field_name("alias") or name
            self._aliases[self._text(alias)] = prefix + self._text(real)
        return NOTHING

    def on_assignment(self, node: Node) -> Value:
        left = node.child_by_field_name("left") or node.child_by_field_name("name")
        right = node.child_by_field_name("right") or node.child_by_field_name("value")
        if left is None or right is None:
            return NOTHING
        value = self._value(right)
        if left.type == "identifier":
            self._remember(self._text(left), right)
        self._bind(left, value)
        return value

    def _remember(self, name: str, right: Node) -> None:
        """Which module a name is another name for."""
        meant = self._dotted_name(right) if right.type in _NAMED else ""
        if meant and (right.type == "call" or meant.split(".")[0] in self._aliases):
            self._aliases[name] = self._resolve(meant)

    def _bind(self, target: Node, value: Value) -> None:
        if target.type in {"identifier", "attribute"}:
            self._program.assign(self._text(target), value)
        elif target.type == "subscript":
            base = target.child_by_field_name("value")
            if base is not None:
                self._program.assign(self._text(base), Value(value.tags))
        else:
            for child in target.named_children:
                # Which of several values is the key, or the entry that matters, cannot be told.
                self._bind(child, Value(value.tags, value.text).without_keys().narrowed())

    def on_for(self, node: Node) -> Value:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is not None and right is not None:
            self._bind(left, self._value(right))
        for child in node.named_children:
            if child not in (left, right):
                self._value(child)
        return NOTHING

    def on_comprehension(self, node: Node) -> Value:
        """What its names stand for is known before what is made of them."""
        clauses = [child for child in node.named_children if child.type in {"for_in_clause", "if_clause"}]
        for clause in clauses:
            self._value(clause)
        return join_values(self._value(child) for child in node.named_children if child not in clauses)

    def on_as_pattern(self, node: Node) -> Value:
        value = self._value(node.named_children[0]) if node.named_children else NOTHING
        alias = node.child_by_field_name("alias")
        if alias is not None:
            self._bind(alias.named_children[0] if alias.named_children else alias, value)
        return value

    def on_definition(self, node: Node) -> Value:
        body = node.child_by_field_name("body")
        if body is not None and (self._in_function or self._program.worth(body.start_byte, body.end_byte)):
            outer, self._in_function = self._in_function, True
            self.on_block(body)
            self._in_function = outer
        return NOTHING

    # Expressions.

    def on_plain(self, _: Node) -> Value:
        return EMPTY

    def on_list(self, node: Node) -> Value:
        return join_values(map(self._value, node.named_children), " ")

    def on_attribute(self, node: Node) -> Value:
        """The environment, what is known of a member by its full name, or of the object that it belongs to."""
        if self._resolve(self._dotted_name(node)) == "os.environ":
            return self._environment(node)
        known = self._program.look_up(self._text(node))
        if known is not NOTHING:
            return known
        base = node.child_by_field_name("object")
        return self._value(base).narrowed() if base is not None else NOTHING

    def _environment(self, node: Node) -> Value:
        """The whole environment; one variable of it is how honest programs are configured, and a copy is what a child
        process is given."""
        parent = node.parent
        if parent is not None and parent.type == "attribute":
            member = parent.child_by_field_name("attribute")
            if member is not None and self._text(member) not in {"items", "values"}:
                return NOTHING
        if parent is not None and parent.type in _ENVIRONMENT_PASSED_ON:
            return NOTHING
        return self._program.dump_environment(node.start_byte, node.end_byte - node.start_byte)

    def on_subscript(self, node: Node) -> Value:
        base = node.child_by_field_name("value")
        if base is not None and self._resolve(self._dotted_name(base)) == "os.environ":
            return self._program.read_variable(self._text(node.named_children[-1]).strip("\"'"))
        return self._children(node).narrowed()

    def on_string(self, node: Node) -> Value:
        written = self._source[node.start_byte : node.end_byte]
        quote = written[:1]
        if quote in _QUOTES and written[1:2] != quote and not node.has_error:
            return literal(written[1 : min(len(written) - 1, LONGEST_TEXT + 1)].decode("utf-8", "replace"))
        parts = []
        for child in node.named_children:
            if child.type == "string_content":
                parts.append(literal(self._text(child)))
            elif child.type == "interpolation":
                value = self._children(child)
                parts.append(Value(value.tags, value.text))
        return join_values(parts)

    def on_binary(self, node: Node) -> Value:
        """A path grows by `/`, a text by `+`."""
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        between = "/" if operator is not None and operator.type == "/" else ""
        return join_values([self._value(side) for side in (left, right) if side is not None], between)

    def on_call(self, node: Node) -> Value:
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is None:
            return NOTHING
        name = self._resolve(self._dotted_name(function))
        receiver = NOTHING
        if function.type == "attribute":
            base = function.child_by_field_name("object")
            receiver = self._value(base) if base is not None else receiver
        elif function.type != "identifier":
            receiver = self._value(function)
        positional, keywords = self._arguments(arguments)
        start, length = node.start_byte, node.end_byte - node.start_byte
        call = Call(name, name.rpartition(".")[2], receiver, positional, keywords, start, length)
        value = self._evaluate_call(call)
        return decode(value) if name in {"bytes", "bytearray"} and self._computes(arguments) else value

    def _computes(self, arguments: Node | None) -> bool:
        """Whether numbers are worked out one by one: bytes that are made of them were written as something else."""
        if arguments is None or not arguments.named_children:
            return False
        first = arguments.named_children[0]
        return "generator_expression" in {arguments.type, first.type} or first.type == "list_comprehension"

    def _evaluate_call(self, call: Call) -> Value:
        if call.last in _TELLING_NOTHING:
            return NOTHING
        known = self._call_known(call)
        if known is not None:
            return known
        result = effect_of(call)(self._program, call, self._run_shell)
        if call.last == "get" or (call.last in {"split", "partition"} and call.first.text == "="):
            result = result.narrowed()
        return result

    def _call_known(self, call: Call) -> Value | None:
        """What the functions of the language itself give back; None for others."""
        if call.name in {"os.getenv", "os.environ.get"}:
            return self._program.read_variable(call.first.text)
        if call.name in {"os.path.join", "Path", "pathlib.Path", "PurePath"}:
            return join_values(call.arguments, "/")
        is_home = call.name in {"Path.home", "pathlib.Path.home", "os.path.expanduser"}
        if is_home and call.first.text in {"", "~"}:
            return Value(frozenset({"path:home"}), "~", literal=False)
        lists = call.last in {"rglob", "glob"} and call.first.text in {"*", "**/*"}
        if call.name in {"os.walk", "os.scandir"} or lists:
            walked = call.first if call.name.startswith("os.") else call.receiver
            if is_broad(walked.text):
                return Value(frozenset({HOME_TREE}))
        return None

    def _arguments(self, node: Node | None) -> tuple[list[Value], dict[str, Value]]:
        positional: list[Value] = []
        keywords: dict[str, Value] = {}
        for child in node.named_children if node is not None else ():
            kind = child.type
            name = child.child_by_field_name("name") if kind == "keyword_argument" else None
            value = child.child_by_field_name("value") if name is not None else None
            if name is not None and value is not None:
                keywords[self._text(name)] = self._value(value)
            elif kind != "comment":
                positional.append(self._value(child))
        return positional, keywords

    # Names.

    def _dotted_name(self, node: Node) -> str:
        """`a.b.c` of nested members; what hangs on a call begins with a dot."""
        written = self._text(node)
        if written.replace(".", "").isidentifier() and node.type in {"identifier", "attribute"}:
            return written
        parts: list[str] = []
        while node.type == "attribute":
            member = node.child_by_field_name("attribute")
            parts.append(self._text(member) if member is not None else "")
            base = node.child_by_field_name("object")
            if base is None:
                break
            node = base
        parts.append(self._base(node))
        return ".".join(reversed(parts))

    def _base(self, node: Node) -> str:
        """A name, or what `__import__("os")` and `getattr(os, "system")` stand for."""
        if node.type == "identifier":
            return self._text(node)
        try:
            return self._computed(node) if node.type == "call" and self._program.enter() else ""
        finally:
            if node.type == "call":
                self._program.leave()

    def _computed(self, node: Node) -> str:
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        name = self._resolve(self._text(function)) if function is not None else ""
        given = arguments.named_children if arguments is not None else []
        if name in _IMPORTERS and given:
            return self._value(given[0]).text
        if name == "getattr" and len(given) > 1 and (member := self._value(given[1]).text):
            base = self._resolve(self._text(given[0]))
            if given[0].type == "call":
                base = self._base(given[0])
            return member if base in {"__builtins__", "builtins"} else f"{base}.{member}"
        return ""

    def _resolve(self, name: str) -> str:
        first, dot, rest = name.partition(".")
        return self._aliases.get(first, first) + dot + rest

    def _text(self, node: Node) -> str:
        start, end = node.start_byte, node.end_byte
        return self._source[start : min(end, start + LONGEST_TEXT)].decode("utf-8", "replace")


PythonCode.nodes = {
    **dict.fromkeys(
        words(
            "block if_statement elif_clause else_clause while_statement try_statement except_clause finally_clause "
            "with_statement with_clause class_definition decorated_definition expression_statement"
        ),
        PythonCode.on_block,
    ),
    **dict.fromkeys(words("import_statement import_from_statement"), PythonCode.on_import),
    **dict.fromkeys(words("assignment augmented_assignment named_expression"), PythonCode.on_assignment),
    **dict.fromkeys(words("for_statement for_in_clause"), PythonCode.on_for),
    **dict.fromkeys(
        words("list_comprehension set_comprehension dictionary_comprehension generator_expression"),
        PythonCode.on_comprehension,
    ),
    "as_pattern": PythonCode.on_as_pattern,
    "function_definition": PythonCode.on_definition,
    "attribute": PythonCode.on_attribute,
    "subscript": PythonCode.on_subscript,
    "string": PythonCode.on_string,
    **dict.fromkeys(words("integer float true false none comment"), PythonCode.on_plain),
    **dict.fromkeys(words("list tuple"), PythonCode.on_list),
    "binary_operator": PythonCode.on_binary,
    "call": PythonCode.on_call,
}
