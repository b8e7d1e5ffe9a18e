"""One class name, one thing: a name that two modules of the product define is reported in each but the first."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping

from tools.files import PRODUCT
from tools.problem import Problem

Places = dict[str, list[tuple[str, int]]]


def check_class_names(contents: Mapping[str, str]) -> Iterator[Problem]:
    trees = {
        path: ast.parse(text)
        for path, text in contents.items()
        if path.startswith(PRODUCT) and path.endswith(".py")
    }
    for name, places in repeated_classes(trees).items():
        first = places[0][0]
        for path, line in places[1:]:
            message = f"{first} has a class {name} too: give this one a name that says what it is"
            yield Problem(path, line, message)


def repeated_classes(trees: Mapping[str, ast.Module]) -> Places:
    """Names that more than one module defines, with each module and line."""
    found: Places = defaultdict(list)
    for path, tree in sorted(trees.items()):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append((path, node.lineno))
    return {name: places for name, places in sorted(found.items()) if len({path for path, _ in places}) > 1}
