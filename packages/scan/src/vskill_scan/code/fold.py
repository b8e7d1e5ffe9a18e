"""What a pure expression of Python or JavaScript comes to, by the tables of `pure_functions`.

Nothing of the skill is run. Trees are evaluated with a limit on steps and on bytes; whatever is not in the tables, or
grows beyond the limits, has no value.
"""

import codecs
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tree_sitter import Node

from vskill_scan.code.pure_functions import (
    FUNCTIONS,
    HIDING,
    LARGEST,
    METHODS,
    OPERATORS,
    WRONG,
    Unfoldable,
    bounded,
    concat_values,
    format_text,
    join_texts,
    plain_text,
)

#: Nodes of one program that are evaluated, and how deep.
MOST_STEPS = 20_000
DEEPEST = 60

Names = dict[str, Any]


class Fold:
    """Evaluates the expressions of one program."""

    def __init__(self, source: bytes, resolve: Callable[[Node], str]) -> None:
        """`resolve` gives the full name of a function's node, "" for one without."""
        self._source = source
        self._resolve = resolve
        self._steps = MOST_STEPS
        #: names by the expression that was assigned to them last
        self._assigned: dict[str, Node] = {}
        self._functions: dict[str, tuple[list[str], Node]] = {}
        self._busy: set[str] = set()
        self.hid = False

    def bind(self, name: str, expression: Node) -> None:
        self._assigned[name] = expression

    def knows(self, function: str) -> bool:
        """Whether the program defines this function."""
        return function in self._functions

    def forget(self, name: str) -> None:
        self._assigned.pop(name, None)

    def define(self, name: str, parameters: list[str], body: Node) -> None:
        self._functions[name] = (parameters, body)

    def text(self, node: Node) -> str | None:
        """The text that an expression comes to; None where that cannot be told. `hid` says whether a decoder was
        used."""
        self.hid = False
        try:
            value = self._value(node, {}, 0)
        except (Unfoldable, *WRONG):
            return None
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        return value if isinstance(value, str) else None

    def _value(self, node: Node, names: Names, depth: int) -> Any:
        self._steps -= 1
        if self._steps < 0 or depth > DEEPEST:
            raise Unfoldable
        handler = _NODES.get(node.type)
        if handler is None:
            raise Unfoldable
        value = handler(self, node, names, depth + 1)
        if isinstance(value, str | bytes | list) and len(value) > LARGEST:
            raise Unfoldable
        return value

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _field(self, node: Node, name: str) -> Node:
        child = node.child_by_field_name(name)
        if child is None:
            raise Unfoldable
        return child

    # Names and literals.

    def on_name(self, node: Node, names: Names, depth: int) -> Any:
        name = self._text(node)
        if name in names:
            return names[name]
        if name not in self._assigned or name in self._busy:
            raise Unfoldable
        self._busy.add(name)
        try:
            return self._value(self._assigned[name], {}, depth)
        finally:
            self._busy.discard(name)

    def on_number(self, node: Node, _: Names, __: int) -> Any:
        return int(self._text(node).replace("_", ""), 0)

    def on_string(self, node: Node, names: Names, depth: int) -> Any:
        written = self._text(node)
        quote = min((at for at in (written.find(mark) for mark in "\"'`") if at >= 0), default=-1)
        if quote < 0 or quote > 2:
            raise Unfoldable
        prefix = written[:quote].lower()
        if any(child.type in {"interpolation", "template_substitution"} for child in node.named_children):
            return self._interpolated(node, names, depth)
        size = 3 if written[quote : quote + 3] in {'"""', "'''"} else 1
        body = written[quote + size : len(written) - size]
        if "\\" in body and "r" not in prefix:
            body = codecs.escape_decode(body.encode())[0].decode("latin-1" if "b" in prefix else "utf-8")
        return body.encode("latin-1") if "b" in prefix else body

    def _interpolated(self, node: Node, names: Names, depth: int) -> str:
        parts: list[str] = []
        for child in node.named_children:
            if child.type in {"interpolation", "template_substitution"}:
                parts.append(plain_text(self._value(child.named_children[0], names, depth)))
            elif child.type in {"string_content", "string_fragment"}:
                parts.append(self._text(child))
        return join_texts(parts)

    def on_strings(self, node: Node, names: Names, depth: int) -> Any:
        return concat_values(
            self._value(node.named_children[0], names, depth),
            tuple(self._all(node.named_children[1:], names, depth)),
        )

    def on_list(self, node: Node, names: Names, depth: int) -> list[Any]:
        return list(self._all(node.named_children, names, depth))

    def _all(self, nodes: Iterable[Node], names: Names, depth: int) -> Iterator[Any]:
        for node in nodes:
            if node.type == "comment":
                continue
            if node.type in {"spread_element", "list_splat"}:
                yield from self._value(node.named_children[0], names, depth)
            else:
                yield self._value(node, names, depth)

    def on_inner(self, node: Node, names: Names, depth: int) -> Any:
        return self._value(node.named_children[0], names, depth)

    # Operators.

    def on_binary(self, node: Node, names: Names, depth: int) -> Any:
        left = self._value(self._field(node, "left"), names, depth)
        right = self._value(self._field(node, "right"), names, depth)
        sign = self._field(node, "operator").type
        if sign == "*":
            return self._repeat(left, right)
        if sign == "%":
            return (
                left % right
                if isinstance(left, int)
                else format_text(left.replace("%s", "{}"), _as_tuple(right))
            )
        if sign == "/":
            return f"{plain_text(left)}/{plain_text(right)}"
        if sign not in OPERATORS:
            raise Unfoldable
        if sign == "+" and isinstance(left, str) is not isinstance(right, str):
            return plain_text(left) + plain_text(right)
        return OPERATORS[sign](left, right)

    def _repeat(self, left: Any, right: Any) -> Any:
        size = (
            len(left) * right
            if hasattr(left, "__len__")
            else len(right) * left
            if hasattr(right, "__len__")
            else 0
        )
        if size > LARGEST:
            raise Unfoldable
        return left * right

    def on_unary(self, node: Node, names: Names, depth: int) -> Any:
        value = self._value(node.named_children[-1], names, depth)
        return (
            -value
            if self._text(node).startswith("-")
            else ~value
            if self._text(node).startswith("~")
            else value
        )

    def on_subscript(self, node: Node, names: Names, depth: int) -> Any:
        base, index = node.named_children[0], node.named_children[-1]
        value = self._value(base, names, depth)
        if index.type != "slice":
            return value[self._value(index, names, depth)]
        bounds: list[int | None] = [None, None, None]
        at = 0
        for child in index.children:
            if child.type == ":":
                at += 1
            else:
                bounds[at] = self._value(child, names, depth)
        if bounds[2] is not None and bounds[2] < 0:
            self.hid = True
        return value[slice(*bounds)]

    # Calls.

    def on_call(self, node: Node, names: Names, depth: int) -> Any:
        function = node.child_by_field_name("function") or self._field(node, "constructor")
        arguments = self._field(node, "arguments")
        if arguments.type == "generator_expression":
            given: list[Node] = [arguments]
        else:
            given = [one for one in arguments.named_children if one.type != "comment"]
        name = self._resolve(function)
        if name in {"map", "filter"} and len(given) == 2:
            return self._mapped(given[0], self._value(given[1], names, depth), names, depth)
        if name in FUNCTIONS:
            self.hid = self.hid or name in HIDING
            return FUNCTIONS[name](*self._all(given, names, depth))
        if name in self._functions:
            return self._run(*self._functions[name], list(self._all(given, names, depth)), depth)
        if function.type not in {"attribute", "member_expression"}:
            raise Unfoldable
        return self._method(function, given, names, depth)

    def _method(self, function: Node, given: list[Node], names: Names, depth: int) -> Any:
        base = self._field(function, "object")
        last = self._text(function.child_by_field_name("attribute") or self._field(function, "property"))
        value = self._value(base, names, depth)
        if last == "map" and len(given) == 1:
            return self._mapped(given[0], value, names, depth)
        if last not in METHODS:
            raise Unfoldable
        self.hid = self.hid or last == "reverse" or (last == "decode" and len(given) > 0)
        return METHODS[last](value, *self._all(given, names, depth))

    def _mapped(self, function: Node, members: Any, names: Names, depth: int) -> list[Any]:
        return [self._apply(function, [one], names, depth) for one in bounded(members)]

    def _apply(self, function: Node, given: list[Any], names: Names, depth: int) -> Any:
        if function.type in {"lambda", "arrow_function"}:
            parameters = function.child_by_field_name("parameters") or self._field(function, "parameter")
            wanted = [self._text(one) for one in parameters.named_children] or [self._text(parameters)]
            body = self._field(function, "body")
            return self._value(body, {**names, **dict(zip(wanted, given, strict=False))}, depth)
        name = self._resolve(function)
        if name in FUNCTIONS:
            self.hid = self.hid or name in HIDING
            return FUNCTIONS[name](*given)
        if name in self._functions:
            return self._run(*self._functions[name], given, depth)
        raise Unfoldable

    # Comprehensions and functions of the program's own.

    def on_comprehension(self, node: Node, names: Names, depth: int) -> list[Any]:
        body = self._field(node, "body")
        clauses = [one for one in node.named_children if one.type == "for_in_clause"]
        if len(clauses) != 1 or any(one.type == "if_clause" for one in node.named_children):
            raise Unfoldable
        target, source = self._field(clauses[0], "left"), self._field(clauses[0], "right")
        values = []
        for member in bounded(self._value(source, names, depth)):
            inner = {**names, **self._bound(target, member)}
            values.append(self._value(body, inner, depth))
        return values

    def _bound(self, target: Node, value: Any) -> Names:
        if target.type == "identifier":
            return {self._text(target): value}
        return {self._text(one): part for one, part in zip(target.named_children, value, strict=False)}

    def _run(self, parameters: list[str], body: Node, given: list[Any], depth: int) -> Any:
        """A function: assignments, loops over lists, `append`, and what it returns."""
        names: Names = dict(zip(parameters, given, strict=False))
        if body.type not in {"block", "statement_block"}:
            return self._value(body, names, depth + 1)
        returned = self._statements(body.named_children, names, depth + 1)
        if returned is None:
            raise Unfoldable
        return returned[0]

    def _statements(self, nodes: Iterable[Node], names: Names, depth: int) -> list[Any] | None:
        """What a `return` among the statements gives back, in a list; None where there is none."""
        for node in nodes:
            if node.type == "return_statement":
                return [self._value(node.named_children[0], names, depth)]
            if node.type == "for_statement":
                members = bounded(self._value(self._field(node, "right"), names, depth))
                for member in members:
                    names.update(self._bound(self._field(node, "left"), member))
                    if self._statements(self._field(node, "body").named_children, names, depth) is not None:
                        raise Unfoldable
            elif node.type == "expression_statement" and node.named_children:
                self._effect(node.named_children[0], names, depth)
            elif node.type != "comment":
                raise Unfoldable
        return None

    def _effect(self, node: Node, names: Names, depth: int) -> None:
        if node.type == "string":
            return
        if node.type in {"assignment", "augmented_assignment"}:
            name = self._text(self._field(node, "left"))
            value = self._value(self._field(node, "right"), names, depth)
            if node.type == "augmented_assignment":
                sign = self._text(self._field(node, "operator")).removesuffix("=")
                value = OPERATORS[sign](names[name], value)
            names[name] = value
            return
        function = self._field(node, "function")
        if function.type != "attribute" or self._text(self._field(function, "attribute")) != "append":
            raise Unfoldable
        target = names[self._text(self._field(function, "object"))]
        target.append(self._value(self._field(node, "arguments").named_children[0], names, depth))
        if len(target) > LARGEST:
            raise Unfoldable


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list) else (value,)


_NODES: dict[str, Callable[[Fold, Node, Names, int], Any]] = {
    "identifier": Fold.on_name,
    "integer": Fold.on_number,
    "number": Fold.on_number,
    "string": Fold.on_string,
    "template_string": Fold.on_string,
    "concatenated_string": Fold.on_strings,
    **dict.fromkeys(("list", "tuple", "array", "expression_list"), Fold.on_list),
    **dict.fromkeys(("parenthesized_expression", "await_expression"), Fold.on_inner),
    **dict.fromkeys(("binary_operator", "binary_expression"), Fold.on_binary),
    **dict.fromkeys(("unary_operator", "unary_expression"), Fold.on_unary),
    **dict.fromkeys(("subscript", "subscript_expression"), Fold.on_subscript),
    **dict.fromkeys(("call", "call_expression"), Fold.on_call),
    **dict.fromkeys(("list_comprehension", "generator_expression"), Fold.on_comprehension),
}
