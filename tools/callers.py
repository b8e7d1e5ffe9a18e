"""Which functions, methods and classes of the product nothing in the product uses: the check that fails for each.

A syntax tree shows names, not types, so the answer errs on one side only. What stands at the top of a module is
followed through imports: `keys.sub` is that function and no other. A method or property has a user when its name is
read from any object anywhere, or stands in a template. A use inside of something unused does not count, so a chain of
functions that only tests enter is reported as a whole. Tests, benchmarks and tools are no users.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tools.code_rules import imports
from tools.files import PRODUCT, module_name
from tools.problem import Problem

_TEMPLATES = ("src/vskill_platform/web/templates/", "src/vskill_platform/notifications/")
_WORD = re.compile(r"[A-Za-z_]\w*")
#: Decorators that hand the function to a framework: the framework calls it.
_REGISTERING = frozenset({"command", "group"})

#: Frameworks that call the methods of classes made from theirs; our group of commands is click's.
_CALLING = ("asyncssh.", "click.", "uvicorn.", "markdown_it.", "vskill_client.group.PlatformGroup")
#: What may stand without a user, by module and name, each with its reason. It counts as a user of what it uses.
EXEMPT: dict[str, str] = {
    "vskill_platform.web.clients.mcp_server.McpServer": "web/clients/mcp loads the module by name when asked",
}


@dataclass(frozen=True)
class Definition:
    """A function or class at the top of a module, or a method of such a class."""

    path: str
    line: int
    module: str
    #: `Class.method` for a method.
    name: str

    @property
    def key(self) -> str:
        return f"{self.module}.{self.name}"

    @property
    def is_method(self) -> bool:
        return "." in self.name


@dataclass(frozen=True)
class _Use:
    """A name that is read: a full one, or the bare name of an attribute with a dot before it."""

    name: str
    #: Which definitions the use stands in, the outermost first.
    inside: tuple[str, ...]


def check(contents: Mapping[str, str], exempt: Mapping[str, str] = EXEMPT) -> Iterator[Problem]:
    """Every unused definition that is not exempt, and every exemption that is no longer needed."""
    unused = find_unused(contents, exempt)
    for definition in unused:
        if definition.key not in exempt:
            yield Problem(
                definition.path,
                definition.line,
                f"{definition.name} has no caller in src: delete it, or call it where users expect it",
            )
    for key in sorted(exempt.keys() - {definition.key for definition in unused}):
        yield Problem("tools/callers.py", 1, f"{key} has a caller or is gone: remove its exemption")


def find_unused(contents: Mapping[str, str], exempt: Mapping[str, str] = EXEMPT) -> list[Definition]:
    """All definitions of the package without a user, exempt ones included, by path and line."""
    modules = {
        module_name(path): _Module(path, module_name(path), text)
        for path, text in contents.items()
        if path.startswith(PRODUCT) and path.endswith(".py")
    }
    users = _users(modules)
    template_words = {
        word
        for path, text in contents.items()
        if path.startswith(_TEMPLATES) and not path.endswith(".py")
        for word in _WORD.findall(text)
    }
    definitions = [definition for module in modules.values() for definition in module.definitions]
    unused: set[str] = set()
    while True:
        found = {
            definition.key
            for definition in definitions
            if not (definition.is_method and definition.name.rpartition(".")[2] in template_words)
            and not _has_user(definition, users, unused)
        }
        if found - exempt.keys() == unused:
            break
        unused = found - exempt.keys()
    return sorted(
        (definition for definition in definitions if definition.key in found),
        key=lambda definition: (definition.path, definition.line),
    )


def _users(modules: Mapping[str, "_Module"]) -> dict[str, list[tuple[str, ...]]]:
    """By name: which definitions each of its uses stands in."""
    users: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for module in modules.values():
        for use in module.uses:
            for name in _resolve(use.name, modules):
                users[name].append(use.inside)
    return users


def _has_user(definition: Definition, users: Mapping[str, list[tuple[str, ...]]], unused: set[str]) -> bool:
    name = f".{definition.name.rpartition('.')[2]}" if definition.is_method else definition.key
    return any(
        definition.key not in inside and not unused.intersection(inside) for inside in users.get(name, ())
    )


def _resolve(name: str, modules: Mapping[str, "_Module"]) -> set[str]:
    """Where a full name is defined, through modules that only import it."""
    module, _, attribute = name.rpartition(".")
    if module not in modules or attribute not in modules[module].imported:
        return {name}
    return {
        defined for imported in modules[module].imported[attribute] for defined in _resolve(imported, modules)
    }


class _Module(ast.NodeVisitor):
    """What one module defines at its top, what it imports, and which names it reads where."""

    def __init__(self, path: str, name: str, text: str) -> None:
        self.path, self.name = path, name
        self.definitions: list[Definition] = []
        self.uses: list[_Use] = []
        tree = ast.parse(text, filename=path)
        #: By local name: two functions may import different things under one name.
        self.imported: dict[str, set[str]] = defaultdict(set)
        for local, full in imports(ast.walk(tree)):
            self.imported[local].add(full)
        self._inside: tuple[str, ...] = ()
        self._class: str | None = None
        self._is_called = False
        self._locals: list[set[str]] = []
        self.visit(tree)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for outer in (*node.decorator_list, node.args):
            self.visit(outer)
        if node.returns is not None:
            self.visit(node.returns)
        before = self._inside
        if not self._locals:
            self._define(node)
        self._locals.append(_local_names(node))
        owner, self._class = self._class, None
        for statement in node.body:
            self.visit(statement)
        self._class = owner
        self._locals.pop()
        self._inside = before

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - the name is the visitor's

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for outer in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(outer)
        before, owner = self._inside, self._class
        if not self._locals and owner is None:
            self._define(node)
            self._class = node.name
            bases = [name for base in node.bases for name in self._full_names(base)]
            self._is_called = any(base.startswith(_CALLING) for base in bases)
        for statement in node.body:
            self.visit(statement)
        self._inside, self._class = before, owner
        self._is_called = self._is_called and owner is not None

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and not any(node.id in names for names in self._locals):
            self._use(*self._full_names(node))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._use(f".{node.attr}", *self._full_names(node))
        self.visit(node.value)

    def _full_names(self, node: ast.expr) -> Iterator[str]:
        if isinstance(node, ast.Name):
            yield from self.imported.get(node.id, {f"{self.name}.{node.id}"})
        elif isinstance(node, ast.Attribute):
            yield from (f"{base}.{node.attr}" for base in self._full_names(node.value))

    def _use(self, *names: str) -> None:
        self.uses += [_Use(name, self._inside) for name in names]

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        name = f"{self._class}.{node.name}" if self._class else node.name
        is_dunder = node.name.startswith("__") and node.name.endswith("__")
        if is_dunder or _is_registered(node) or (self._class and self._is_called):
            return
        self.definitions.append(Definition(self.path, node.lineno, self.name, name))
        self._inside = (*self._inside, f"{self.name}.{name}")


def _is_registered(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Whether a decorator hands it to a framework (`@cli.command()`), which then calls it."""
    for decorator in node.decorator_list:
        function = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(function, ast.Attribute) and function.attr in _REGISTERING:
            return True
    return False


def _local_names(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """What is a parameter or is assigned in the function itself: reading it reads nothing at the module's top."""
    arguments = node.args
    every = (
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    )
    names = {argument.arg for argument in every if argument is not None}
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(inner.name)
        elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            names.add(inner.id)
        elif isinstance(inner, ast.ExceptHandler) and inner.name:
            names.add(inner.name)
        if not isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(inner))
    return names
