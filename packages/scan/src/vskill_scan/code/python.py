"""Python code: evaluates every expression of a tree roughly, with imports resolved, and lets `calls` say what each call
does. Broken files are read as far as they can be.
"""

from collections.abc import Callable

from tree_sitter import Node

from vskill_scan.code.calls import Call, effect_of
from vskill_scan.code.fold import Fold
from vskill_scan.code.pure_functions import FUNCTIONS
from vskill_scan.code.taint import (
    EMPTY,
    HOME_TREE,
    LONGEST_TEXT,
    NOTHING,
    TEXT,
    Program,
    RunShell,
    Value,
    join_values,
    literal,
)
from vskill_scan.code.worth_parsing import FOLDABLE
from vskill_scan.places import FOLDERS, is_broad
from vskill_scan.words import words

#: Names that are computed from computed names, one inside the other.
DEEPEST_NAME = 8


class PythonCode:
    """Reads one tree."""

    def __init__(self, program: Program, source: bytes, run_shell: RunShell) -> None:
        self._program = program
        self._source = source
        self._run_shell = run_shell
        self._aliases: dict[str, str] = {}
        self._function = ""
        self._naming = 0
        self._folds = FOLDABLE.search(source) is not None
        self._fold = Fold(source, lambda node: self._resolve(self._dotted_name(node)))

    def run(self, root: Node) -> Value:
        self.on_block(root)
        if self._program.crosses_functions:
            # Functions may be called before, or above, what they do is known.
            self.on_block(root)
        return NOTHING

    def on_block(self, node: Node) -> Value:
        for child in node.named_children:
            self._value(child)
        return NOTHING

    def _value(self, node: Node) -> Value:
        kind = node.type
        if kind == "identifier":
            return self._program.look_up(self._text(node))
        try:
            if not self._program.enter():
                return NOTHING
            handler = _NODES.get(kind)
            if handler is not None:
                return handler(self, node)
            return join_values(map(self._value, node.named_children)) if node.named_child_count else NOTHING
        finally:
            self._program.leave()

    # Statements.

    def on_comment(self, node: Node) -> Value:
        self._program.comments.add((node.start_byte, node.end_byte))
        return EMPTY

    def on_expression(self, node: Node) -> Value:
        """A text that nothing is done with is a comment."""
        children = node.named_children
        if len(children) == 1 and children[0].type == "string":
            return self.on_comment(node)
        return self.on_block(node)

    def on_import(self, node: Node) -> Value:
        module = node.child_by_field_name("module_name")
        prefix = self._text(module) + "." if module is not None else ""
        for name in node.children_by_field_name("name"):
            real, alias = name, name
            if name.type == "aliased_import":
                real = name.child_by_field_name("name") or name
                alias = name.child_by_field_name("alias") or name
            known = self._text(real)
            self._aliases[self._text(alias)] = prefix + known if prefix or real is not alias else known
        return NOTHING

    def on_assignment(self, node: Node) -> Value:
        left = node.child_by_field_name("left") or node.child_by_field_name("name")
        right = node.child_by_field_name("right") or node.child_by_field_name("value")
        if left is None or right is None:
            return NOTHING
        value = self._value(right)
        if left.type == "identifier":
            self._remember(node, left, right)
        if right.type in _COLLECTIONS:
            self._program.note_list(self._text(left), right.start_byte, right.end_byte)
        if left.type == "identifier" and right.type in _NAMED:
            name = self._dotted_name(right)
            if name and name.split(".")[0] in self._aliases:
                self._aliases[self._text(left)] = self._resolve(name)
        self._bind(left, value)
        return value

    def _remember(self, node: Node, left: Node, right: Node) -> None:
        """What a name is made of, and which module it is another name for."""
        name = self._text(left)
        if node.type == "augmented_assignment":
            self._fold.forget(name)
            return
        self._fold.bind(name, right)
        if right.type in {"call", "subscript"} and (meant := self._base(right)):
            self._aliases[name] = self._resolve(meant)

    def _folded(self, node: Node, value: Value) -> Value:
        """The value with the text that its expression comes to. What a decoder gives back is looked at by itself."""
        if not self._folds or (value.literal and value.text):
            return value
        text = self._fold.text(node)
        if text is None:
            return value
        if self._fold.hid:
            self._program.unpack(
                text, node.start_byte, "python" if "import" in text or "exec" in text else "bash"
            )
        return Value(value.tags, text[:TEXT], value.literal)

    def _bind(self, target: Node, value: Value) -> None:
        if target.type in {"identifier", "attribute"}:
            self._program.assign(self._text(target), value)
        elif target.type == "subscript":
            base = target.child_by_field_name("value")
            if base is not None:
                self._program.assign(self._text(base), Value(value.tags))
        else:
            for child in target.named_children:
                # Which of several values is the key cannot be told.
                self._bind(child, Value(value.tags, value.text).without_keys())

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
        name, parameters = node.child_by_field_name("name"), node.child_by_field_name("parameters")
        body = node.child_by_field_name("body")
        outer, self._function = self._function, self._text(name) if name is not None else ""
        if name is not None and parameters is not None:
            names = [self._parameter(one) for one in parameters.named_children]
            self._program.define(self._function, [one for one in names if one not in {"self", "cls", ""}])
        if body is not None and not outer:
            self._fold.define(self._function, self._program.parameters.get(self._function, []), body)
        if body is not None and (outer or self._program.worth(body.start_byte, body.end_byte)):
            self.on_block(body)
        self._function = outer
        return NOTHING

    def _parameter(self, node: Node) -> str:
        name = node if node.type == "identifier" else node.child_by_field_name("name")
        if name is None:
            name = next((child for child in node.named_children if child.type == "identifier"), None)
        return self._text(name) if name is not None else ""

    def on_return(self, node: Node) -> Value:
        value = join_values(map(self._value, node.named_children))
        if self._function and value.tags:
            self._program.assign(f"(){self._function}", Value(value.tags))
        return value

    # Expressions.

    def on_attribute(self, node: Node) -> Value:
        name = self._resolve(self._dotted_name(node))
        if name == "os.environ":
            return self._environment(node)
        known = self._program.look_up(self._text(node))
        if known is not NOTHING:
            return known
        base = node.child_by_field_name("object")
        return self._value(base).narrowed() if base is not None else NOTHING

    def _environment(self, node: Node) -> Value:
        """The whole environment; one variable of it is how honest programs are configured."""
        parent = node.parent
        if parent is not None and parent.type == "subscript":
            return NOTHING
        if parent is not None and parent.type == "attribute":
            member = parent.child_by_field_name("attribute")
            if member is not None and self._text(member) not in {"items", "values"}:
                return self._copy_value(parent, node) if self._text(member) == "copy" else NOTHING
        if parent is not None and parent.type in {
            "comparison_operator",
            "dictionary_splat",
            "keyword_argument",
        }:
            return NOTHING
        return self._program.dump_environment(node.start_byte, node.end_byte - node.start_byte)

    def _copy_value(self, _: Node, __: Node) -> Value:
        """A copy is what a child process is given."""
        return NOTHING

    def on_subscript(self, node: Node) -> Value:
        base = node.child_by_field_name("value")
        if base is not None and self._resolve(self._dotted_name(base)) == "os.environ":
            return self._program.read_variable(self._text(node.named_children[-1]).strip("\"'"))
        return self._folded(node, join_values(map(self._value, node.named_children)).narrowed())

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
                value = join_values(map(self._value, child.named_children))
                parts.append(Value(value.tags, value.text))
        return join_values(parts)

    def on_number(self, node: Node) -> Value:
        return EMPTY

    def on_list(self, node: Node) -> Value:
        return join_values(map(self._value, node.named_children), " ")

    def on_binary(self, node: Node) -> Value:
        """A path grows by `/`, a text by `+`."""
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        between = "/" if operator is not None and operator.type == "/" else ""
        return self._folded(
            node, join_values([self._value(one) for one in (left, right) if one is not None], between)
        )

    def on_call(self, node: Node) -> Value:
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is None:
            return NOTHING
        name = self._resolve(self._dotted_name(function))
        receiver = NOTHING
        if function.type == "attribute":
            base = function.child_by_field_name("object")
            receiver = self.on_attribute(function) if name.startswith("os.environ.") else NOTHING
            receiver = receiver | self._value(base) if base is not None else receiver
        elif function.type != "identifier":
            receiver = self._value(function)
        positional, keywords = self._arguments(arguments)
        start = node.start_byte
        call = Call(
            name, name.rpartition(".")[2], receiver, positional, keywords, start, node.end_byte - start
        )
        value = self._evaluate_call(call)
        if name in {"bytes", "bytearray"} and self._computes(arguments):
            value = self._program.decode(value, name, start, node.end_byte - start)
        pure = call.last in _FOLDED or name in FUNCTIONS or self._fold.knows(name)
        return self._folded(node, value) if pure else value

    def _computes(self, arguments: Node | None) -> bool:
        """Whether numbers are worked out one by one: bytes that are made of them were written as something else."""
        if arguments is None or arguments.type == "generator_expression":
            return arguments is not None
        first = arguments.named_children[0] if arguments.named_children else None
        if first is None or first.type != "call":
            return first is not None and first.type in {"list_comprehension", "generator_expression"}
        function = first.child_by_field_name("function")
        return function is not None and self._text(function) == "map"

    def _evaluate_call(self, call: Call) -> Value:
        if call.name in {"os.getenv", "os.environ.get"}:
            return self._program.read_variable(call.first.text)
        if call.name in {"os.path.join", "Path", "pathlib.Path", "PurePath"}:
            return join_values(call.arguments, "/")
        if call.name in {"Path.home", "pathlib.Path.home", "os.path.expanduser"} and call.first.text in {
            "",
            "~",
        }:
            return Value(frozenset({"path:home"}), "~", literal=False)
        if folder := FOLDERS.get(call.name):
            return literal(folder)
        if call.last in _TELL_NOTHING:
            return NOTHING
        if call.name in {"os.walk", "os.scandir"} or (
            call.last in {"rglob", "glob"} and call.first.text in {"*", "**/*"}
        ):
            walked = call.first if call.name.startswith("os.") else call.receiver
            if is_broad(walked.text):
                return Value(frozenset({HOME_TREE}))
        elsewhere = self._program.call(call.name, call.arguments)
        result = effect_of(call)(self._program, call, self._run_shell)
        if call.last == "get" or (call.last in {"split", "partition"} and call.first.text == "="):
            result = result.narrowed()
        returned = self._program.look_up(f"(){call.last}").tags | elsewhere
        return Value(result.tags | returned, result.text, result.literal) if returned else result

    def _arguments(self, node: Node | None) -> tuple[list[Value], dict[str, Value]]:
        positional: list[Value] = []
        keywords: dict[str, Value] = {}
        for child in node.named_children if node is not None else ():
            kind = child.type
            name = child.child_by_field_name("name") if kind == "keyword_argument" else None
            value = child.child_by_field_name("value") if name is not None else None
            if name is not None and value is not None:
                keywords[self._text(name)] = self._value(value)
            elif kind == "comment":
                self.on_comment(child)
            else:
                positional.append(self._value(child))
        return positional, keywords

    # Names.

    def _dotted_name(self, node: Node) -> str:
        """`a.b.c` of nested attributes; what hangs on a call or subscript begins with a dot."""
        written = self._text(node)
        if written.replace(".", "").isidentifier() and not written.startswith(_CONSTANTS):
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
        if node.type == "identifier":
            return self._text(node)
        self._naming += 1
        try:
            return self._computed(node) if self._naming <= DEEPEST_NAME else ""
        finally:
            self._naming -= 1

    def _computed(self, node: Node) -> str:
        """The name that a call or an entry of a table stands for; "" for none."""
        if node.type == "call":
            function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
            name = self._text(function) if function is not None else ""
            given = arguments.named_children if arguments is not None else []
            if self._resolve(name) in _IMPORTERS:
                return (self._fold.text(given[0]) if given else None) or ""
            if name == "getattr" and len(given) > 1 and (member := self._fold.text(given[1])):
                return self._member_of(given[0], member)
        if node.type == "subscript" and len(node.named_children) > 1:
            return self._entry(node)
        return ""

    def _member_of(self, base: Node, member: str) -> str:
        """A member under a name that is computed; those of the built-in functions need no module."""
        module = self._resolve(self._dotted_name(base))
        return member if module in _BUILT_IN else f"{module}.{member}" if module else ""

    def _entry(self, node: Node) -> str:
        """What `vars(os)["system"]`, `os.__dict__["system"]`, `globals()["exec"]` and `sys.modules["os"]` mean."""
        table, key = node.named_children[0], node.named_children[-1]
        written = self._text(table)
        inner = table.child_by_field_name("arguments")
        if written in {"globals()", "locals()", "vars()", "sys.modules"}:
            return self._fold.text(key) or ""
        if written.startswith("vars(") and inner is not None and inner.named_children:
            return self._member_of(inner.named_children[0], self._fold.text(key) or "?")
        owner = table.child_by_field_name("object") if written.endswith(".__dict__") else None
        return self._member_of(owner, self._fold.text(key) or "?") if owner is not None else ""

    def _resolve(self, name: str) -> str:
        first, dot, rest = name.partition(".")
        return self._aliases.get(first, first) + dot + rest

    def _text(self, node: Node) -> str:
        start, end = node.start_byte, node.end_byte
        if end - start > LONGEST_TEXT:
            end = start + LONGEST_TEXT
        return self._source[start:end].decode("utf-8", "replace")


_QUOTES = frozenset((b'"', b"'"))
_IMPORTERS = frozenset({"__import__", "importlib.import_module", "import_module", "importlib.__import__"})
_BUILT_IN = frozenset({"__builtins__", "builtins", "__builtin__"})
#: Methods whose texts are worked out.
_FOLDED = frozenset(
    words("join decode replace format translate encode strip lower upper joinpath expanduser")
)
#: What may have a name that is known from elsewhere.
_NAMED = frozenset({"identifier", "attribute", "call"})
_CONSTANTS = ("True", "False", "None", "...")
#: What these give back says nothing of what they were given.
_TELL_NOTHING = frozenset(words("exists isfile isdir is_file is_dir print len getenv isinstance"))
_COLLECTIONS = frozenset({"list", "tuple", "set", "dictionary", "call"})
_NODES: dict[str, Callable[[PythonCode, Node], Value]] = {
    **dict.fromkeys(
        words(
            "block if_statement elif_clause else_clause while_statement try_statement except_clause finally_clause "
            "with_statement with_clause class_definition decorated_definition"
        ),
        PythonCode.on_block,
    ),
    "comment": PythonCode.on_comment,
    "expression_statement": PythonCode.on_expression,
    "import_statement": PythonCode.on_import,
    "import_from_statement": PythonCode.on_import,
    "assignment": PythonCode.on_assignment,
    "augmented_assignment": PythonCode.on_assignment,
    "named_expression": PythonCode.on_assignment,
    "for_statement": PythonCode.on_for,
    "for_in_clause": PythonCode.on_for,
    **dict.fromkeys(
        words("list_comprehension set_comprehension dictionary_comprehension generator_expression"),
        PythonCode.on_comprehension,
    ),
    "as_pattern": PythonCode.on_as_pattern,
    "function_definition": PythonCode.on_definition,
    "return_statement": PythonCode.on_return,
    "yield": PythonCode.on_return,
    "attribute": PythonCode.on_attribute,
    "subscript": PythonCode.on_subscript,
    "string": PythonCode.on_string,
    "integer": PythonCode.on_number,
    "float": PythonCode.on_number,
    "true": PythonCode.on_number,
    "false": PythonCode.on_number,
    "none": PythonCode.on_number,
    "list": PythonCode.on_list,
    "tuple": PythonCode.on_list,
    "binary_operator": PythonCode.on_binary,
    "call": PythonCode.on_call,
}
