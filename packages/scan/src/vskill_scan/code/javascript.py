"""JavaScript and TypeScript: evaluates every expression of a tree roughly, with imports and `require` resolved, and
lets `calls` say what each call does.
"""

from collections.abc import Callable

from tree_sitter import Node

from vskill_scan.code.calls import Call, effect_of
from vskill_scan.code.fold import Fold
from vskill_scan.code.pure_functions import FUNCTIONS
from vskill_scan.code.taint import (
    EMPTY,
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
from vskill_scan.words import words

_PROMISED = frozenset({"then", "catch", "finally", "on", "once", "addListener", "forEach", "map"})
#: Functions whose last argument is called with what they read.
_CALLING_BACK = frozenset({"readFile", "readdir", "get", "request", "exec"})
#: Methods whose texts are worked out.
_FOLDED = frozenset(
    {"join", "toString", "replace", "reverse", "concat", "slice", "fromCharCode", "atob", "from", "map"}
)


class JavaScriptCode:
    """Reads one tree."""

    def __init__(self, program: Program, source: bytes, run_shell: RunShell) -> None:
        self._program = program
        self._source = source
        self._run_shell = run_shell
        self._aliases: dict[str, str] = {}
        self._function = ""
        #: how many functions are being read, one inside the other
        self._inside = 0
        self._folds = FOLDABLE.search(source) is not None
        self._fold = Fold(source, lambda node: self._resolve(self._dotted_name(node)))

    def run(self, root: Node) -> Value:
        self.on_block(root)
        if self._program.crosses_functions:
            # Functions may be called before, or above, what they do is known.
            self.on_block(root)
        return NOTHING

    def _children(self, node: Node) -> Value:
        return join_values(map(self._value, node.named_children))

    def on_block(self, node: Node) -> Value:
        """Statements have no value."""
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
            return self._children(node) if node.named_child_count else NOTHING
        finally:
            self._program.leave()

    # Statements.

    def on_empty(self, node: Node) -> Value:
        return EMPTY

    def on_comment(self, node: Node) -> Value:
        self._program.comments.add((node.start_byte, node.end_byte))
        return EMPTY

    def on_import(self, node: Node) -> Value:
        source = node.child_by_field_name("source")
        module = self._module(self._string_text(source)) if source is not None else ""
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
            real, alias = self._text(names[0]), self._text(names[-1])
            self._aliases[alias] = f"{module}.{real}"

    def _module(self, name: str) -> str:
        plain = name.removeprefix("node:")
        return {"fs/promises": "fs", "fs-extra": "fs", "node-fetch": "fetch"}.get(plain, plain)

    def on_declarator(self, node: Node) -> Value:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or value is None:
            return NOTHING
        if value.type in _COLLECTIONS:
            self._program.note_list(self._text(name), value.start_byte, value.end_byte)
        return self._bind_assigned(name, value)

    def on_assignment(self, node: Node) -> Value:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return NOTHING
        return self._bind_assigned(left, right)

    def _bind_assigned(self, target: Node, node: Node) -> Value:
        module = self._required_module(node)
        if module and target.type == "identifier":
            self._aliases[self._text(target)] = module
        elif module and target.type == "object_pattern":
            self._members(target, module)
        if node.type in {"arrow_function", "function_expression", "function"}:
            self._define(self._text(target), node)
            return NOTHING
        value = self._value(node)
        if target.type == "identifier":
            self._fold.bind(self._text(target), node)
        self._bind(target, value)
        return value

    def _folded(self, node: Node, value: Value) -> Value:
        """The value with the text that its expression comes to. What a decoder gives back is looked at by itself."""
        if not self._folds or (value.literal and value.text):
            return value
        text = self._fold.text(node)
        if text is None:
            return value
        if self._fold.hid:
            language = (
                "javascript" if "(" in text and ("require" in text or "=>" in text or ";" in text) else "bash"
            )
            self._program.unpack(text, node.start_byte, language)
        return Value(value.tags, text[:TEXT], value.literal)

    def on_binary(self, node: Node) -> Value:
        return self._folded(node, self._children(node))

    def _bind(self, target: Node, value: Value) -> None:
        if target.type in {"identifier", "member_expression", "shorthand_property_identifier_pattern"}:
            self._program.assign(self._text(target), value)
        elif target.type == "subscript_expression":
            base = target.child_by_field_name("object")
            if base is not None:
                self._program.assign(self._text(base), Value(value.tags))
        else:
            for child in target.named_children:
                self._bind(child, Value(value.tags, value.text).narrowed())

    def _required_module(self, node: Node) -> str:
        """The module that `require("x")`, or a member of it, names."""
        name = self._dotted_name(node)
        if node.type == "await_expression" and node.named_children:
            return self._required_module(node.named_children[0])
        if node.type in {"call_expression", "member_expression"} and name.startswith("<"):
            return name.strip("<>").replace(">", "")
        first = name.split(".")[0]
        return self._resolve(name) if first in self._aliases and node.type == "member_expression" else ""

    def on_definition(self, node: Node) -> Value:
        name = node.child_by_field_name("name")
        self._define(self._text(name) if name is not None else "", node)
        return NOTHING

    def _define(self, name: str, node: Node) -> None:
        outer, self._function = self._function, name
        parameters = node.child_by_field_name("parameters") or node.child_by_field_name("parameter")
        if parameters is not None and name:
            several = parameters.named_children or [parameters]
            self._program.define(
                name, [self._text(one).split(":")[0].split("=")[0].strip() for one in several]
            )
        body = node.child_by_field_name("body")
        if body is not None and (self._inside or self._program.worth(body.start_byte, body.end_byte)):
            self._inside += 1
            value = self._value(body)
            self._inside -= 1
            if body.type != "statement_block" and name and value.tags:
                self._program.assign(f"(){name}", Value(value.tags))
        self._function = outer

    def on_for(self, node: Node) -> Value:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is not None and right is not None:
            self._bind(left, self._value(right))
        body = node.child_by_field_name("body")
        return self._value(body) if body is not None else NOTHING

    def on_return(self, node: Node) -> Value:
        value = self._children(node)
        if self._function and value.tags:
            self._program.assign(f"(){self._function}", Value(value.tags))
        return value

    # Expressions.

    def on_member(self, node: Node) -> Value:
        name = self._resolve(self._dotted_name(node))
        if name == "process.env":
            return self._environment(node)
        known = self._program.look_up(self._text(node))
        if known is not NOTHING:
            return known
        base = node.child_by_field_name("object")
        if base is not None and self._resolve(self._dotted_name(base)) == "process.env":
            return self._program.read_variable(name.rpartition(".")[2])
        return self._value(base).narrowed() if base is not None else NOTHING

    def _environment(self, node: Node) -> Value:
        """The whole environment; one variable of it is how honest programs are configured."""
        parent = node.parent
        if parent is not None and parent.type in {
            "member_expression",
            "subscript_expression",
            "pair",
            "spread_element",
        }:
            return NOTHING
        if parent is not None and parent.type == "variable_declarator":
            name = parent.child_by_field_name("name")
            if name is not None and name.type == "object_pattern":
                return NOTHING
        return self._program.dump_environment(node.start_byte, node.end_byte - node.start_byte)

    def on_subscript(self, node: Node) -> Value:
        return self._children(node).narrowed()

    def on_string(self, node: Node) -> Value:
        return literal(self._string_text(node))

    def on_template(self, node: Node) -> Value:
        parts = []
        for child in node.named_children:
            if child.type == "string_fragment":
                parts.append(literal(self._text(child)))
            else:
                value = self._children(child)
                parts.append(Value(value.tags, value.text))
        return join_values(parts)

    def on_array(self, node: Node) -> Value:
        return join_values(map(self._value, node.named_children), " ")

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
        receiver = NOTHING
        if function.type == "member_expression":
            base = function.child_by_field_name("object")
            receiver = self._value(base) if base is not None else NOTHING
        elif function.type not in {"identifier", "import", "super"}:
            receiver = self._value(function)
        given = [
            child
            for child in (arguments.named_children if arguments is not None else ())
            if child.type != "comment" or self.on_comment(child) is None
        ]
        last = name.rpartition(".")[2]
        if last in _PROMISED:
            self._pass_promise(given, receiver)
        call = Call(
            name,
            last,
            receiver,
            list(map(self._value, given)),
            {},
            node.start_byte,
            node.end_byte - node.start_byte,
        )
        value = self._evaluate_call(call)
        if last in _CALLING_BACK and given and given[-1].type in {"arrow_function", "function_expression"}:
            self._pass_promise(given[-1:], value)
            self._value(given[-1])
        return self._folded(node, value) if last in _FOLDED or name in FUNCTIONS else value

    def _pass_promise(self, given: list[Node], receiver: Value) -> None:
        """What a callback is given is what the promise held."""
        for function in given:
            parameters = function.child_by_field_name("parameters") or function.child_by_field_name(
                "parameter"
            )
            for one in (parameters.named_children or [parameters]) if parameters is not None else ():
                if receiver.tags:
                    self._program.assign(self._text(one).split(":")[0], Value(receiver.tags))

    def _evaluate_call(self, call: Call) -> Value:
        program = self._program
        if call.name in {"path.join", "path.resolve", "join", "path.posix.join"}:
            return join_values(call.arguments, "/")
        if call.name in {"os.homedir", "homedir"}:
            return Value(frozenset({"path:home"}), "~")
        if call.last in {"existsSync", "log", "error", "warn", "isArray", "accessSync"}:
            return NOTHING
        if (
            call.name == "Buffer.from"
            and len(call.arguments) > 1
            and call.arguments[1].text in {"base64", "hex", "base64url"}
        ):
            return program.decode(call.first, "Buffer", call.start, call.length)
        if call.name in {"require", "import"}:
            program.execute(call.first, call.name, call.start, call.length, dynamic=True)
            return NOTHING
        if call.name in {"setTimeout", "setInterval"} and not call.first.text:
            return call.first
        elsewhere = program.call(call.name, call.arguments)
        result = effect_of(call)(program, call, self._run_shell)
        returned = program.look_up(f"(){call.last}").tags | elsewhere
        return Value(result.tags | returned, result.text, result.literal) if returned else result

    # Names.

    def _dotted_name(self, node: Node) -> str:
        if node.type not in _NAMED:
            return ""
        written = self._text(node)
        if written.replace(".", "").isidentifier() and not written.startswith("this"):
            return written
        parts: list[str] = []
        while node.type == "member_expression":
            member = node.child_by_field_name("property")
            parts.append(self._text(member) if member is not None else "")
            base = node.child_by_field_name("object")
            if base is None:
                break
            node = base
        parts.append(self._base(node))
        return ".".join(reversed(parts))

    def _base(self, node: Node) -> str:
        if node.type in {"identifier", "import", "super"}:
            return self._text(node)
        if node.type == "call_expression":
            function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
            if (
                function is not None
                and arguments is not None
                and self._text(function) in {"require", "import"}
            ):
                return f"<{self._module(join_values(map(self._value, arguments.named_children)).text)}>"
        return ""

    def _resolve(self, name: str) -> str:
        first, dot, rest = name.partition(".")
        return (self._aliases.get(first, first) + dot + rest).replace("<", "").replace(">", "")

    def _string_text(self, node: Node) -> str:
        return self._text(node)[1:-1]

    def _text(self, node: Node) -> str:
        start, end = node.start_byte, node.end_byte
        if end - start > LONGEST_TEXT:
            end = start + LONGEST_TEXT
        return self._source[start:end].decode("utf-8", "replace")


#: What may have a name that is known from elsewhere.
_NAMED = frozenset({"identifier", "member_expression", "call_expression", "import", "super"})
_COLLECTIONS = frozenset({"array", "object", "new_expression", "regex", "as_expression"})
_NODES: dict[str, Callable[[JavaScriptCode, Node], Value]] = {
    **dict.fromkeys(
        words(
            "number true false null undefined regex type_annotation interface_declaration type_alias_declaration"
        ),
        JavaScriptCode.on_empty,
    ),
    **dict.fromkeys(
        words(
            "statement_block expression_statement lexical_declaration variable_declaration if_statement else_clause "
            "for_statement while_statement do_statement try_statement catch_clause finally_clause switch_statement "
            "switch_body switch_case switch_default class_declaration class_body export_statement labeled_statement"
        ),
        JavaScriptCode.on_block,
    ),
    "comment": JavaScriptCode.on_comment,
    "import_statement": JavaScriptCode.on_import,
    "variable_declarator": JavaScriptCode.on_declarator,
    "assignment_expression": JavaScriptCode.on_assignment,
    "augmented_assignment_expression": JavaScriptCode.on_assignment,
    **dict.fromkeys(
        (
            "function_declaration",
            "method_definition",
            "arrow_function",
            "function_expression",
            "generator_function_declaration",
        ),
        JavaScriptCode.on_definition,
    ),
    "return_statement": JavaScriptCode.on_return,
    "shorthand_property_identifier": JavaScriptCode.on_shorthand,
    "member_expression": JavaScriptCode.on_member,
    "subscript_expression": JavaScriptCode.on_subscript,
    "string": JavaScriptCode.on_string,
    "template_string": JavaScriptCode.on_template,
    "array": JavaScriptCode.on_array,
    "for_in_statement": JavaScriptCode.on_for,
    "binary_expression": JavaScriptCode.on_binary,
    "pair": JavaScriptCode.on_pair,
    "call_expression": JavaScriptCode.on_call,
    "new_expression": JavaScriptCode.on_call,
}
