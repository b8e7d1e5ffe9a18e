"""Python code: what its nodes mean. `tree_code` follows the values."""

from tree_sitter import Node

from vskill_scan.code.calls import Call
from vskill_scan.code.taint import (
    HOME_TREE,
    LONGEST_TEXT,
    NOTHING,
    Value,
    join_values,
    literal,
)
from vskill_scan.code.tree_code import TreeCode
from vskill_scan.places import FOLDERS, is_broad
from vskill_scan.words import words

_QUOTES = frozenset((b'"', b"'"))
_IMPORTERS = frozenset({"__import__", "importlib.import_module", "import_module"})
#: What may have a name that is known from elsewhere.
_NAMED = frozenset({"identifier", "attribute", "call"})
#: Around the whole environment: one variable of it, or what a child process is given.
_ENVIRONMENT_PASSED_ON = frozenset(
    {"subscript", "comparison_operator", "dictionary_splat", "keyword_argument"}
)


class PythonCode(TreeCode):
    """Reads one tree."""

    bound = frozenset({"identifier", "attribute"})
    entry = ("subscript", "value")
    member = ("attribute", "attribute")
    collections = frozenset({"list", "tuple", "set", "dictionary", "call"})
    telling_nothing = frozenset(words("exists isfile isdir is_file is_dir print len isinstance"))

    # Statements.

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
            self._aliases[self._text(alias)] = prefix + self._text(real)
        return NOTHING

    def on_assignment(self, node: Node) -> Value:
        left = node.child_by_field_name("left") or node.child_by_field_name("name")
        right = node.child_by_field_name("right") or node.child_by_field_name("value")
        if left is None or right is None:
            return NOTHING
        value = self._value(right)
        self._note_list(left, right)
        if left.type == "identifier":
            self._remember(self._text(left), right)
        self._bind(left, value)
        return value

    def _remember(self, name: str, right: Node) -> None:
        """Which module a name is another name for."""
        meant = self._dotted_name(right) if right.type in _NAMED else ""
        if meant and (right.type == "call" or meant.split(".")[0] in self._aliases):
            self._aliases[name] = self._resolve(meant)

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
        if parameters is not None:
            names = [self._parameter(child) for child in parameters.named_children]
            self._program.parameters[self._function] = [
                one for one in names if one not in {"self", "cls", ""}
            ]
        if body is not None and (outer or self._program.worth(body.start_byte, body.end_byte)):
            self.on_block(body)
        self._function = outer
        return NOTHING

    def _parameter(self, node: Node) -> str:
        name = node if node.type == "identifier" else node.child_by_field_name("name")
        if name is None:
            name = next((child for child in node.named_children if child.type == "identifier"), None)
        return self._text(name) if name is not None else ""

    # Expressions.

    def on_attribute(self, node: Node) -> Value:
        if self._resolve(self._dotted_name(node)) == "os.environ":
            return self._environment(node)
        return self._read_member(node)

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
        if name in {"bytes", "bytearray"} and self._computes(arguments):
            value = self._program.decode(value, name, start, length)
        return value

    def _computes(self, arguments: Node | None) -> bool:
        """Whether numbers are worked out one by one: bytes that are made of them were written as something else."""
        if arguments is None or not arguments.named_children:
            return False
        first = arguments.named_children[0]
        return "generator_expression" in {arguments.type, first.type} or first.type == "list_comprehension"

    def _call_known(self, call: Call) -> Value | None:
        if call.name in {"os.getenv", "os.environ.get"}:
            return self._program.read_variable(call.first.text)
        if call.name in {"os.path.join", "Path", "pathlib.Path", "PurePath"}:
            return join_values(call.arguments, "/")
        is_home = call.name in {"Path.home", "pathlib.Path.home", "os.path.expanduser"}
        if is_home and call.first.text in {"", "~"}:
            return Value(frozenset({"path:home"}), "~", literal=False)
        if folder := FOLDERS.get(call.name):
            return literal(folder)
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
            elif kind == "comment":
                self.on_comment(child)
            else:
                positional.append(self._value(child))
        return positional, keywords

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


PythonCode.nodes = {
    **dict.fromkeys(
        words(
            "block if_statement elif_clause else_clause while_statement try_statement except_clause "
            "finally_clause with_statement with_clause class_definition decorated_definition"
        ),
        TreeCode.on_block,
    ),
    "comment": TreeCode.on_comment,
    "expression_statement": PythonCode.on_expression,
    **dict.fromkeys(words("import_statement import_from_statement"), PythonCode.on_import),
    **dict.fromkeys(words("assignment augmented_assignment named_expression"), PythonCode.on_assignment),
    **dict.fromkeys(words("for_statement for_in_clause"), TreeCode.on_for),
    **dict.fromkeys(
        words("list_comprehension set_comprehension dictionary_comprehension generator_expression"),
        PythonCode.on_comprehension,
    ),
    "as_pattern": PythonCode.on_as_pattern,
    "function_definition": PythonCode.on_definition,
    **dict.fromkeys(words("return_statement yield"), TreeCode.on_return),
    "attribute": PythonCode.on_attribute,
    "subscript": PythonCode.on_subscript,
    "string": PythonCode.on_string,
    **dict.fromkeys(words("integer float true false none"), TreeCode.on_plain),
    **dict.fromkeys(words("list tuple"), TreeCode.on_list),
    "binary_operator": PythonCode.on_binary,
    "call": PythonCode.on_call,
}
