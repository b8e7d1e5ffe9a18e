"""JavaScript and TypeScript: what their nodes mean. `tree_code` follows the values."""

from tree_sitter import Node

from vskill_scan.code.calls import Call
from vskill_scan.code.taint import EMPTY, NOTHING, Value, join_values, literal
from vskill_scan.code.tree_code import TreeCode
from vskill_scan.words import words

_PROMISED = frozenset({"then", "catch", "finally", "on", "once", "addListener", "forEach", "map"})
#: Functions whose last argument is called with what they read.
_CALLING_BACK = frozenset({"readFile", "readdir", "get", "request", "exec"})
_FUNCTIONS = frozenset({"arrow_function", "function_expression", "function"})
#: Around the whole environment: one variable of it, or what a child process is given.
_ENVIRONMENT_PASSED_ON = frozenset({"member_expression", "subscript_expression", "pair", "spread_element"})
_SAME_MODULE = {"fs/promises": "fs", "fs-extra": "fs", "node-fetch": "fetch"}


class JavaScriptCode(TreeCode):
    """Reads one tree."""

    bound = frozenset({"identifier", "member_expression", "shorthand_property_identifier_pattern"})
    entry = ("subscript_expression", "object")
    member = ("member_expression", "property")
    collections = frozenset({"array", "object", "new_expression", "regex", "as_expression"})
    telling_nothing = frozenset(words("existsSync log error warn isArray accessSync"))
    #: how many functions are being read, one inside the other
    _inside = 0

    # Statements.

    def on_import(self, node: Node) -> Value:
        source = node.child_by_field_name("source")
        module = _plain_module(self._text(source)[1:-1]) if source is not None else ""
        for clause in node.named_children:
            if clause.type == "import_clause":
                self._import_clause(clause, module)
        return NOTHING

    def _import_clause(self, clause: Node, module: str) -> None:
        for child in clause.named_children:
            if child.type == "identifier":
                self._aliases[self._text(child)] = module
            elif child.type == "namespace_import" and child.named_children:
                self._aliases[self._text(child.named_children[0])] = module
            else:
                self._members(child, module)

    def _members(self, pattern: Node, module: str) -> None:
        """`{ a, b as c }` and `{ a, b: c }`."""
        for child in pattern.named_children:
            names = [one for one in child.named_children if "identifier" in one.type] or [child]
            self._aliases[self._text(names[-1])] = f"{module}.{self._text(names[0])}"

    def on_assignment(self, node: Node) -> Value:
        target = node.child_by_field_name("name") or node.child_by_field_name("left")
        given = node.child_by_field_name("value") or node.child_by_field_name("right")
        if target is None or given is None:
            return NOTHING
        self._note_list(target, given)
        module = self._required_module(given)
        if module and target.type == "identifier":
            self._aliases[self._text(target)] = module
        elif module and target.type == "object_pattern":
            self._members(target, module)
        if given.type in _FUNCTIONS:
            self._define(self._text(target), given)
            return NOTHING
        value = self._value(given)
        self._bind(target, value)
        return value

    def _required_module(self, node: Node) -> str:
        """The module that `require("x")`, or a member of it, names."""
        if node.type == "await_expression" and node.named_children:
            return self._required_module(node.named_children[0])
        if node.type not in {"call_expression", "member_expression"}:
            return ""
        name = self._dotted_name(node)
        if name.startswith("<"):
            return name.replace("<", "").replace(">", "")
        is_member = node.type == "member_expression" and name.split(".")[0] in self._aliases
        return self._resolve(name) if is_member else ""

    def on_definition(self, node: Node) -> Value:
        name = node.child_by_field_name("name")
        self._define(self._text(name) if name is not None else "", node)
        return NOTHING

    def _define(self, name: str, node: Node) -> None:
        outer, self._function = self._function, name
        parameters = self._parameters(node)
        if parameters and name:
            self._program.parameters[name] = parameters
        body = node.child_by_field_name("body")
        if body is not None and (self._inside or self._program.worth(body.start_byte, body.end_byte)):
            self._inside += 1
            value = self._value(body)
            self._inside -= 1
            if body.type != "statement_block":
                self._give_back(value)
        self._function = outer

    def _parameters(self, function: Node) -> list[str]:
        given = function.child_by_field_name("parameters") or function.child_by_field_name("parameter")
        several = (given.named_children or [given]) if given is not None else []
        return [self._text(one).split(":")[0].split("=")[0].strip() for one in several]

    # Expressions.

    def on_member(self, node: Node) -> Value:
        name = self._resolve(self._dotted_name(node))
        if name == "process.env":
            return self._environment(node)
        if name.startswith("process.env."):
            return self._program.read_variable(name.rpartition(".")[2])
        return self._read_member(node)

    def _environment(self, node: Node) -> Value:
        """The whole environment; one variable of it is how honest programs are configured."""
        parent = node.parent
        if parent is not None and parent.type in _ENVIRONMENT_PASSED_ON:
            return NOTHING
        if parent is not None and parent.type == "variable_declarator":
            name = parent.child_by_field_name("name")
            if name is not None and name.type == "object_pattern":
                return NOTHING
        return self._program.dump_environment(node.start_byte, node.end_byte - node.start_byte)

    def on_subscript(self, node: Node) -> Value:
        return self._children(node).narrowed()

    def on_string(self, node: Node) -> Value:
        return literal(self._text(node)[1:-1])

    def on_template(self, node: Node) -> Value:
        parts = []
        for child in node.named_children:
            if child.type == "string_fragment":
                parts.append(literal(self._text(child)))
            else:
                value = self._children(child)
                parts.append(Value(value.tags, value.text))
        return join_values(parts)

    def on_pair(self, node: Node) -> Value:
        key, value = node.child_by_field_name("key"), node.child_by_field_name("value")
        if value is None:
            return NOTHING
        name = self._text(key) if key is not None else ""
        named = literal(name + "=") if name in {"method", "hostname", "host"} else EMPTY
        said = self._value(value)
        return named | (said.without_keys() if name == "headers" else said)

    def on_shorthand(self, node: Node) -> Value:
        name = self._text(node)
        value = self._program.look_up(name)
        return value.without_keys() if name == "headers" else value

    def on_call(self, node: Node) -> Value:
        function = node.child_by_field_name("function") or node.child_by_field_name("constructor")
        arguments = node.child_by_field_name("arguments")
        if function is None:
            return NOTHING
        name = self._resolve(self._dotted_name(function))
        last = name.rpartition(".")[2]
        receiver = NOTHING
        if function.type == "member_expression":
            base = function.child_by_field_name("object")
            receiver = self._value(base) if base is not None else NOTHING
        elif function.type not in {"identifier", "import", "super"}:
            receiver = self._value(function)
        given = list(arguments.named_children) if arguments is not None else []
        if last in _PROMISED:
            self._pass_promise(given, receiver)
        values = list(map(self._value, given))
        start, length = node.start_byte, node.end_byte - node.start_byte
        value = self._evaluate_call(Call(name, last, receiver, values, {}, start, length))
        if last in _CALLING_BACK and given and given[-1].type in _FUNCTIONS:
            self._pass_promise(given[-1:], value)
            self._value(given[-1])
        return value

    def _pass_promise(self, given: list[Node], receiver: Value) -> None:
        """What a callback is given is what the promise held."""
        for name in (name for function in given for name in self._parameters(function) if receiver.tags):
            self._program.assign(name, Value(receiver.tags))

    def _call_known(self, call: Call) -> Value | None:
        if call.name in {"path.join", "path.resolve", "join", "path.posix.join"}:
            return join_values(call.arguments, "/")
        if call.name in {"os.homedir", "homedir"}:
            return Value(frozenset({"path:home"}), "~")
        encoded = len(call.arguments) > 1 and call.arguments[1].text in {"base64", "hex", "base64url"}
        if call.name == "Buffer.from" and encoded:
            return self._program.decode(call.first, "Buffer", call.start, call.length)
        if call.name in {"require", "import"}:
            self._program.execute(call.first, call.name, call.start, call.length)
            return NOTHING
        if call.name in {"setTimeout", "setInterval"} and not call.first.text:
            return call.first
        return None

    # Names.

    def _base(self, node: Node) -> str:
        if node.type in {"identifier", "import", "super"}:
            return self._text(node)
        if node.type == "call_expression":
            function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
            name = self._text(function) if function is not None else ""
            if arguments is not None and name in {"require", "import"}:
                return f"<{_plain_module(self._children(arguments).text)}>"
        return ""

    def _resolve(self, name: str) -> str:
        return super()._resolve(name).replace("<", "").replace(">", "")


def _plain_module(name: str) -> str:
    plain = name.removeprefix("node:")
    return _SAME_MODULE.get(plain, plain)


JavaScriptCode.nodes = {
    **dict.fromkeys(
        words(
            "number true false null undefined regex type_annotation interface_declaration "
            "type_alias_declaration"
        ),
        TreeCode.on_plain,
    ),
    **dict.fromkeys(
        words(
            "statement_block expression_statement lexical_declaration variable_declaration if_statement "
            "else_clause for_statement while_statement do_statement try_statement catch_clause "
            "finally_clause switch_statement switch_body switch_case switch_default class_declaration "
            "class_body export_statement labeled_statement"
        ),
        TreeCode.on_block,
    ),
    "comment": TreeCode.on_comment,
    "import_statement": JavaScriptCode.on_import,
    **dict.fromkeys(
        words("variable_declarator assignment_expression augmented_assignment_expression"),
        JavaScriptCode.on_assignment,
    ),
    **dict.fromkeys(
        words(
            "function_declaration method_definition arrow_function function_expression "
            "generator_function_declaration"
        ),
        JavaScriptCode.on_definition,
    ),
    "return_statement": TreeCode.on_return,
    "shorthand_property_identifier": JavaScriptCode.on_shorthand,
    "member_expression": JavaScriptCode.on_member,
    "subscript_expression": JavaScriptCode.on_subscript,
    "string": JavaScriptCode.on_string,
    "template_string": JavaScriptCode.on_template,
    "array": TreeCode.on_list,
    "for_in_statement": TreeCode.on_for,
    "pair": JavaScriptCode.on_pair,
    **dict.fromkeys(words("call_expression new_expression"), JavaScriptCode.on_call),
}
