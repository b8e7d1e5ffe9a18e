"""Which changes are tried: mutmut's in every function, method and property of a module, without those to texts."""

import difflib
import json
import re
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import FunctionType
from typing import Any

import libcst as cst
from mutmut.mutation import file_mutation, mutators
from mutmut.utils.format_utils import mangled_name_from_mutant_name, parse_mutant_key

from tools.files import ROOT

SOURCES = Path("src/vskill_platform")
#: What a message says is no behaviour. The keywords of `dict(...)` are texts too.
TEXT_OPERATORS = (mutators.operator_string, mutators.operator_dict_arguments)
#: mutmut puts all mutants into one file for the type checker, and there these say nothing about a mutant.
TYPES = """\
[mypy]
strict = True
mypy_path = src
explicit_package_bases = True
namespace_packages = True
enable_error_code = possibly-undefined, truthy-bool
disable_error_code = has-type, no-redef, unused-ignore
ignore_missing_imports = True
"""
_PROPERTY = re.compile(r"^(\s+)@property$", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """One change of one function; all are named by what changes, so that a name outlives a shift of lines."""

    #: such as `domain.decision`
    module: str
    #: such as `_Case.score`
    function: str
    #: the lines before and after
    change: str
    #: its place among the changes of the function
    number: int
    #: the function with the change, as a module of its own
    source: str

    @property
    def name(self) -> str:
        return f"{self.module}.{self.function}"

    def build(self, namespace: Mapping[str, object]) -> FunctionType:
        """The function with the change, made in a copy of its module's namespace."""
        value: Any = dict(namespace)
        exec(compile(self.source, self.name, "exec"), value)  # noqa: S102 - our own source with a change
        for part in self.function.split("."):
            value = value[part] if isinstance(value, dict) else vars(value)[part]
        function = getattr(value, "__func__", value)
        if not isinstance(function, FunctionType):
            raise TypeError(f"{self.name} is not a function")
        return function


def drop_text_operators() -> None:
    """Mutmut has no setting for it."""
    kept = [entry for entry in mutators.mutation_operators if entry[1] not in TEXT_OPERATORS]
    mutators.mutation_operators[:] = kept  # type: ignore[index] # a list, which mutmut calls a sequence


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / SOURCES).with_suffix("").parts)


def function_hashes(path: Path) -> dict[str, str]:
    """Of each function's source, by its name."""
    module = cst.parse_module(path.read_text("utf-8"))
    return {name: sha256(_code(node).encode()).hexdigest() for name, node in _functions(module)}


def mutants_of(path: Path, module_name: str) -> list[Mutant]:
    """Every mutant of a module. mutmut skips functions with decorators, so it does not see that of a property."""
    source = _PROPERTY.sub(r"\1", path.read_text("utf-8"))
    module, mutations, _, _ = file_mutation.create_mutations(str(path), source)
    grouped = file_mutation.group_by_top_level_node(mutations)
    return [
        mutant
        for name, node in _functions(module)
        for mutant in _mutants_of_function(module_name, name, node, grouped.get(node, ()))
    ]


def _mutants_of_function(
    module: str, name: str, node: cst.FunctionDef, mutations: Sequence[file_mutation.Mutation]
) -> Iterator[Mutant]:
    before, seen = _code(node), Counter[str]()
    for number, mutation in enumerate(mutations, start=1):
        if _takes_a_text_away(mutation.original_node, mutation.mutated_node):
            continue
        changed = file_mutation.deep_replace(node, mutation.original_node, mutation.mutated_node)
        after = _code(changed)
        change = describe(before, after)
        seen[change] += 1
        if seen[change] > 1:
            change = f"{change} ({seen[change]})"
        *classes, _ = name.split(".")
        source = f"class {classes[0]}:\n{textwrap.indent(after, '    ')}" if classes else after
        yield Mutant(module, name, change, number, source)


def _takes_a_text_away(before: cst.CSTNode, after: cst.CSTNode) -> bool:
    """Whether only a text goes: an argument or an assigned value that is written out as a string."""
    if isinstance(before, cst.Assign | cst.AnnAssign):
        return _is_text(before.value)
    if isinstance(before, cst.Call) and isinstance(after, cst.Call) and before.func is after.func:
        kept = {id(argument) for argument in after.args}
        return all(_is_text(argument.value) for argument in before.args if id(argument) not in kept)
    return False


def _is_text(value: cst.BaseExpression | None) -> bool:
    if isinstance(value, cst.SimpleString):
        return "b" not in value.prefix
    return isinstance(value, cst.FormattedString | cst.ConcatenatedString)


def describe(before: str, after: str) -> str:
    """The lines that differ: `a < b => a <= b`."""
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    gone, come = (" ".join(line[2:].strip() for line in lines if line.startswith(sign)) for sign in "-+")
    return f"{gone or 'nothing'} => {come or 'nothing'}"


def _functions(module: cst.Module) -> Iterator[tuple[str, cst.FunctionDef]]:
    for statement in module.body:
        if isinstance(statement, cst.FunctionDef):
            yield statement.name.value, statement
        elif isinstance(statement, cst.ClassDef):
            for member in statement.body.body:
                if isinstance(member, cst.FunctionDef):
                    yield f"{statement.name.value}.{member.name.value}", member


def _code(node: "cst.CSTNode | object") -> str:
    assert isinstance(node, cst.FunctionDef)  # noqa: S101 - a replaced node stays what it is
    return cst.Module([node]).code.strip() + "\n"


def rejected_by_types(paths: list[Path], folder: Path) -> set[tuple[str, int]]:
    """Function and number of each mutant that mypy rejects. Properties are not asked about."""
    target = folder / "src" / SOURCES.name
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / SOURCES, target, ignore=shutil.ignore_patterns("*.pyc", "examples", "static"))
    spans = {}
    for path in paths:
        copy = target / path.relative_to(ROOT / SOURCES)
        mutated = file_mutation.mutate_file_contents(str(path), path.read_text("utf-8"))
        copy.write_text(mutated.code, "utf-8")
        spans[str(copy.relative_to(folder))] = (module_name(path), mutated.line_span_by_function_name)
    (folder / "mypy.ini").write_text(TYPES, "utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--output", "json", *spans]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"mutants: mypy could not read the mutants:\n{done.stdout}{done.stderr}")
    errors = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found = set()
    for error in errors:
        module, by_name = spans.get(error["file"], ("", {}))
        for generated, span in by_name.items():
            inside = span.start <= error["line"] <= span.end
            if error["severity"] == "error" and inside and not generated.endswith("_orig"):
                found.add(_place(module, generated))
    return found


def _place(module: str, generated: str) -> tuple[str, int]:
    function, class_name = parse_mutant_key(mangled_name_from_mutant_name(generated))
    name = f"{class_name}.{function}" if class_name else function
    return f"{module}.{name}", int(generated.rpartition("_")[2])
