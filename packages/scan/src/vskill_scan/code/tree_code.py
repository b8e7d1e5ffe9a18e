"""What the readers of Python and JavaScript have in common: every expression of a tree is evaluated roughly, with
imports resolved, and `calls` says what each call does. Broken files are read as far as they can be.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from tree_sitter import Node

from vskill_scan.code.calls import Call, effect_of
from vskill_scan.code.taint import (
    EMPTY,
    LONGEST_TEXT,
    NOTHING,
    Program,
    RunShell,
    Value,
    join_values,
)

NodeReader = Callable[[Any, Node], Value]


class TreeCode:
    """Reads one tree. The languages' own classes know its nodes by name."""

    nodes: ClassVar[Mapping[str, NodeReader]]
    #: nodes that a name is bound to as they are written, and an entry of something with the field of that
    bound: ClassVar[frozenset[str]]
    entry: ClassVar[tuple[str, str]]
    #: a member of something, and the field of its name
    member: ClassVar[tuple[str, str]]
    collections: ClassVar[frozenset[str]]
    #: what these give back says nothing of what they were given
    telling_nothing: ClassVar[frozenset[str]]

    def __init__(self, program: Program, source: bytes, run_shell: RunShell) -> None:
        self._program = program
        self._source = source
        self._run_shell = run_shell
        self._aliases: dict[str, str] = {}
        self._function = ""

    def run(self, root: Node) -> Value:
        self.on_block(root)
        if self._program.crosses_functions:
            # Functions may be called before, or above, what they do is known.
            self.on_block(root)
        return NOTHING

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

    def on_comment(self, node: Node) -> Value:
        self._program.comments.add((node.start_byte, node.end_byte))
        return EMPTY

    def on_plain(self, _: Node) -> Value:
        return EMPTY

    def on_list(self, node: Node) -> Value:
        return join_values(map(self._value, node.named_children), " ")

    def on_for(self, node: Node) -> Value:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is not None and right is not None:
            self._bind(left, self._value(right))
        for child in node.named_children:
            if child not in (left, right):
                self._value(child)
        return NOTHING

    def on_return(self, node: Node) -> Value:
        value = self._children(node)
        self._give_back(value)
        return value

    def _give_back(self, value: Value) -> None:
        if self._function and value.tags:
            self._program.assign(f"(){self._function}", Value(value.tags))

    def _bind(self, target: Node, value: Value) -> None:
        if target.type in self.bound:
            self._program.assign(self._text(target), value)
        elif target.type == self.entry[0]:
            base = target.child_by_field_name(self.entry[1])
            if base is not None:
                self._program.assign(self._text(base), Value(value.tags))
        else:
            for child in target.named_children:
                # Which of several values is the key, or the entry that matters, cannot be told.
                self._bind(child, Value(value.tags, value.text).without_keys().narrowed())

    def _note_list(self, name: Node, value: Node) -> None:
        if value.type in self.collections:
            self._program.note_list(self._text(name), value.start_byte, value.end_byte)

    # Expressions.

    def _read_member(self, node: Node) -> Value:
        """What is known of a member by its full name, or of the object that it belongs to."""
        known = self._program.look_up(self._text(node))
        if known is not NOTHING:
            return known
        base = node.child_by_field_name("object")
        return self._value(base).narrowed() if base is not None else NOTHING

    def _evaluate_call(self, call: Call) -> Value:
        if call.last in self.telling_nothing:
            return NOTHING
        known = self._call_known(call)
        if known is not None:
            return known
        self._program.call(call.last, call.arguments)
        result = effect_of(call)(self._program, call, self._run_shell)
        if call.last == "get" or (call.last in {"split", "partition"} and call.first.text == "="):
            result = result.narrowed()
        returned = self._program.look_up(f"(){call.last}").tags
        return Value(result.tags | returned, result.text, result.literal) if returned else result

    def _call_known(self, call: Call) -> Value | None:
        """What the functions of the language itself give back; None for others."""
        raise NotImplementedError

    # Names.

    def _dotted_name(self, node: Node) -> str:
        """`a.b.c` of nested members; what hangs on a call begins with a dot."""
        written = self._text(node)
        if written.replace(".", "").isidentifier() and node.type in {"identifier", self.member[0]}:
            return written
        parts: list[str] = []
        while node.type == self.member[0]:
            member = node.child_by_field_name(self.member[1])
            parts.append(self._text(member) if member is not None else "")
            base = node.child_by_field_name("object")
            if base is None:
                break
            node = base
        parts.append(self._base(node))
        return ".".join(reversed(parts))

    def _base(self, node: Node) -> str:
        """The name of what a dotted name begins with; "" for none."""
        raise NotImplementedError

    def _resolve(self, name: str) -> str:
        first, dot, rest = name.partition(".")
        return self._aliases.get(first, first) + dot + rest

    def _text(self, node: Node) -> str:
        start, end = node.start_byte, node.end_byte
        return self._source[start : min(end, start + LONGEST_TEXT)].decode("utf-8", "replace")
