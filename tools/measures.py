"""Figures of the code that should fall, or stay, as the product grows: `make measures`.

Each is counted from the files themselves, so two commits can be compared. `python -m tools.measures --names` also
prints what was counted. They are a ratchet: `tools/ratchet.toml` says what each may be at most, `make check` fails
where one is more, and `python -m tools.measures --lower` writes what has fallen.
"""

import argparse
import ast
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tools import callers
from tools.code_rules import PACKAGE, imports
from tools.files import PRODUCT, ROOT, module_name, texts
from tools.problem import Problem

RATCHET = "tools/ratchet.toml"
#: Whose lines are counted.
FOLDERS = ("src/", "packages/core/", "packages/scan/", "packages/client/", "bench/", "tools/")
#: A limit of lines is a multiple of this, so that a small change seldom has to raise it.
LINES_STEP = 100
#: What is longer than this is hard to see whole.
LONG_FILE, LONG_FUNCTION = 400, 40

#: Where SQL belongs.
ENGINES = tuple(f"{PACKAGE}ledger/{folder}/" for folder in ("kv", "broker", "database"))
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
    number: float
    names: tuple[str, ...] = ()

    @property
    def figure(self) -> str:
        return f"{self.number:,}" if isinstance(self.number, int) else f"{self.number:.2f}"

    @property
    def limit(self) -> str:
        """What the ratchet would say of it."""
        if not self.title.startswith("lines of "):
            return self.figure.replace(",", "_")
        return f"{int(-(-self.number // LINES_STEP) * LINES_STEP):_}"


def measure(contents: Mapping[str, str]) -> list[Measure]:
    """Every figure of these files, by path."""
    python = {path: text for path, text in contents.items() if path.endswith(".py")}
    trees = {path: ast.parse(text) for path, text in python.items() if path.startswith(PRODUCT)}
    known = _imported(trees)
    return [
        Measure("lines of all packages", sum(_lines(python, folder) for folder in PRODUCT)),
        *(Measure(f"lines of {folder.rstrip('/')}", _lines(python, folder)) for folder in FOLDERS),
        Measure("modules", len(trees)),
        Measure("most modules in a folder", max(Counter(map(_folder, trees)).values(), default=0)),
        Measure("settings", _settings(trees)),
        Measure("own modules imported per module, mean", _mean(map(len, known.values()))),
        _counted("circles between modules", _circles(known)),
        _counted(f"files over {LONG_FILE} lines", _long_files(python, trees)),
        _counted(f"functions over {LONG_FUNCTION} lines", _long_functions(trees)),
        _callerless(contents),
        Measure("exempt of them", len(callers.EXEMPT)),
        _counted("SQL statements outside the engines", _sql_outside(contents, trees)),
        _counted("class names in more than one module", _class_names(trees)),
        _counted("calls of require_env", _calls_of("require_env", trees)),
        _counted(f"calls with {MANY_KEYWORDS} or more keywords", _wide_calls(trees)),
    ]


def check(contents: Mapping[str, str]) -> Iterator[Problem]:
    """Every figure that is more than it may be."""
    most = tomllib.loads(contents.get(RATCHET, ""))
    for one in measure(contents):
        if one.title not in most:
            yield Problem(RATCHET, 1, f"'{one.title}' has no limit: write \"{one.title}\" = {one.limit}")
        elif round(one.number, 2) > most[one.title]:
            yield Problem(
                RATCHET,
                1,
                f"{one.title}: {one.figure}, more than {most[one.title]:,}: take something away ('make measures "
                "ARGS=--names' lists what counts), or raise the figure there with the reason beside it"
                + ("" if most[one.title] else f": {'; '.join(one.names)}"),
            )


def lower(contents: Mapping[str, str]) -> str:
    """The ratchet's file with every figure that has fallen."""
    lines = contents[RATCHET].splitlines()
    for one in measure(contents):
        for number, line in enumerate(lines):
            name, _, figure = line.partition(" = ")
            if name == f'"{one.title}"' and float(one.limit) < float(figure.partition("#")[0]):
                # The reason was for the higher figure.
                lines[number] = f"{name} = {one.limit}"
    return "\n".join(lines) + "\n"


def _lines(contents: Mapping[str, str], folder: str) -> int:
    return sum(len(text.splitlines()) for path, text in contents.items() if path.startswith(folder))


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _settings(trees: Mapping[str, ast.Module]) -> int:
    classes = (node for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef))
    fields = (node for one in classes if one.name == "Settings" for node in one.body)
    return sum(isinstance(field, ast.AnnAssign) for field in fields)


def _long_files(python: Mapping[str, str], trees: Mapping[str, ast.Module]) -> list[str]:
    return [path for path in trees if len(python[path].splitlines()) > LONG_FILE]


def _long_functions(trees: Mapping[str, ast.Module]) -> list[str]:
    return [
        f"{path}:{node.lineno} {node.name}"
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno >= LONG_FUNCTION
    ]


def _counted(title: str, names: Iterable[str]) -> Measure:
    found = tuple(names)
    return Measure(title, len(found), found)


def _callerless(contents: Mapping[str, str]) -> Measure:
    unused = (one for one in callers.find_unused(contents) if one.key not in callers.EXEMPT)
    names = (f"{one.path}:{one.line} {one.name}" for one in unused)
    return _counted("functions, methods, classes without a caller", names)


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
    """Names that more than one module defines, so that a word stands for two things."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, tree in trees.items():
        for name in {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}:
            places[name].append(path.removeprefix(PACKAGE))
    return [f"{name}: {', '.join(sorted(paths))}" for name, paths in sorted(places.items()) if len(paths) > 1]


def _imported(trees: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """The own modules that each module imports, at its top or within a function."""
    by_name = {module_name(path): tree for path, tree in trees.items()}
    return {
        name: {
            owner
            for _, full in imports(ast.walk(tree))
            if (owner := _module_of(full, set(by_name))) is not None
        }
        - {name}
        for name, tree in by_name.items()
    }


def _mean(counts: Iterable[int]) -> float:
    found = list(counts)
    return float(sum(found) / len(found)) if found else 0.0


def _circles(known: Mapping[str, set[str]]) -> list[str]:
    """Groups of modules of which each leads back to itself."""
    reached = {name: _reach(name, known) for name in known}
    circles = {
        tuple(sorted(two for two in reached[one] if one in reached[two]))
        for one in known
        if one in reached[one]
    }
    return [" ".join(circle) for circle in sorted(circles)]


def _reach(name: str, known: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    left = list(known[name])
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += known[one]
    return found


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
    parser.add_argument("--lower", action="store_true", help="write what has fallen into the ratchet")
    asked, contents = parser.parse_args(), dict(texts())
    for found in measure(contents):
        print(f"{found.title:<46}{found.figure:>16}")
        for name in found.names if asked.names else ():
            print(f"    {name}")
    if asked.lower:
        (ROOT / RATCHET).write_text(lower(contents), "utf-8")


if __name__ == "__main__":
    main()
