"""Figures of the code that should fall, or stay, as the product grows: `make measures`.

Each is counted from the files themselves, so two commits can be compared. `python -m tools.measures --names` also
prints what was counted.
"""

import argparse
import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tools import callers, names
from tools.callers import SOURCE
from tools.code_rules import PACKAGE, imports
from tools.files import texts

#: Where SQL belongs.
ENGINES = tuple(f"{PACKAGE}{folder}/" for folder in ("kv", "broker", "database"))
#: From this many keywords on, a call copies one struct into another more often than not.
MANY_KEYWORDS = 8
_SQL = re.compile(
    r"\s*(?:SELECT\s|INSERT\s+(?:OR\s+\w+\s+)?INTO\s|UPDATE\s+\S+\s+SET\s|DELETE\s+FROM\s|REPLACE\s+INTO\s"
    r"|WITH\s+(?:RECURSIVE\s+)?\w+.*\sAS\s|(?:CREATE|ALTER|DROP)\s+(?:UNIQUE\s+|TEMP\s+|VIRTUAL\s+|OR\s+REPLACE\s+)*"
    r"(?:TABLE|INDEX|TRIGGER|VIEW|FUNCTION|SCHEMA|SEQUENCE|DATABASE|TYPE)\s|PRAGMA\s|VACUUM\b|(?:BEGIN|COMMIT|ROLLBACK)(?=;|\Z|\s+"
    r"(?:IMMEDIATE|EXCLUSIVE|TRANSACTION|ISOLATION|READ)\b)|ATTACH\s|DETACH\s|COPY\s+\S+|DECLARE\s|FETCH\s|TRUNCATE\s|LOCK\s+TABLE|SET\s+\w+|LISTEN\s|NOTIFY\s"
    r"|ANALYZE\b|VALUES\s*\()",
    re.DOTALL,
)


@dataclass(frozen=True)
class Measure:
    """One figure, with what was counted where that has names."""

    title: str
    figure: str
    names: tuple[str, ...] = ()


def measure(contents: Mapping[str, str]) -> list[Measure]:
    """Every figure of these files, by path."""
    python = {path: text for path, text in contents.items() if path.endswith(".py")}
    trees = {path: ast.parse(text) for path, text in python.items() if path.startswith(PACKAGE)}
    return [
        Measure("lines of src", f"{_lines(python, SOURCE):,}"),
        Measure("lines of bench", f"{_lines(python, 'bench/'):,}"),
        _callerless(contents),
        _counted("SQL statements outside the engines", _sql_outside(contents, trees)),
        _counted("class names in more than one module", _class_names(trees)),
        Measure("own modules imported per module, mean", f"{_mean_imports(trees):.2f}"),
        _counted("calls of require_env", _calls_of("require_env", trees)),
        _counted(f"calls with {MANY_KEYWORDS} or more keywords", _wide_calls(trees)),
    ]


def _lines(contents: Mapping[str, str], folder: str) -> int:
    return sum(len(text.splitlines()) for path, text in contents.items() if path.startswith(folder))


def _counted(title: str, names: Iterable[str]) -> Measure:
    found = tuple(names)
    return Measure(title, f"{len(found):,}", found)


def _callerless(contents: Mapping[str, str]) -> Measure:
    unused = callers.find_unused(contents)
    names = [f"{one.path}:{one.line} {one.name}" for one in unused if one.key not in callers.EXEMPT]
    exempt = len(unused) - len(names)
    return Measure(
        "functions, methods, classes without a caller", f"{len(names)} ({exempt} exempt)", tuple(names)
    )


def _sql_outside(contents: Mapping[str, str], trees: Mapping[str, ast.Module]) -> list[str]:
    """Every string that is a statement; docstrings are not, and a `.sql` file counts its statements."""
    found = []
    for path, tree in trees.items():
        if not path.startswith(ENGINES):
            found += [f"{path}:{line}" for line in sorted(_statements(tree))]
    for path, text in contents.items():
        if path.startswith(PACKAGE) and path.endswith(".sql") and not path.startswith(ENGINES):
            found += [path] * text.count(";")
    return found


def _statements(tree: ast.Module) -> Iterable[int]:
    # Neither a part of a longer string nor a string that stands for itself, as a docstring does.
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    inside |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        first = node.values[0] if isinstance(node, ast.JoinedStr) and node.values else node
        if id(node) in inside or not isinstance(first, ast.Constant) or not isinstance(first.value, str):
            continue
        if _SQL.match(first.value):
            yield first.lineno


def _class_names(trees: Mapping[str, ast.Module]) -> list[str]:
    return [
        f"{name}: {', '.join(path.removeprefix(PACKAGE) for path, _ in places)}"
        for name, places in names.repeated_classes(trees).items()
    ]


def _mean_imports(trees: Mapping[str, ast.Module]) -> float:
    modules = {callers.module_name(path) for path in trees}
    counts = [
        len({_module_of(full, modules) for _, full in imports(ast.walk(tree))} - {None})
        for tree in trees.values()
    ]
    return sum(counts) / len(counts) if counts else 0.0


def _module_of(full: str, modules: set[str]) -> str | None:
    """The own module that an import names: itself, or the one that defines the name."""
    if full in modules:
        return full
    owner = full.rpartition(".")[0]
    return owner if owner in modules else None


def _calls(trees: Mapping[str, ast.Module]) -> Iterable[tuple[str, ast.Call]]:
    for path, tree in trees.items():
        yield from ((path, node) for node in ast.walk(tree) if isinstance(node, ast.Call))


def _calls_of(name: str, trees: Mapping[str, ast.Module]) -> list[str]:
    return [f"{path}:{call.lineno}" for path, call in _calls(trees) if ast.unparse(call.func) == name]


def _wide_calls(trees: Mapping[str, ast.Module]) -> list[str]:
    return [
        f"{path}:{call.lineno} {ast.unparse(call.func)}"
        for path, call in _calls(trees)
        if len([keyword for keyword in call.keywords if keyword.arg]) >= MANY_KEYWORDS
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", action="store_true", help="print what was counted, too")
    with_names = parser.parse_args().names
    for found in measure(dict(texts())):
        print(f"{found.title:<46}{found.figure:>16}")
        for name in found.names if with_names else ():
            print(f"    {name}")


if __name__ == "__main__":
    main()
