"""Flows between the files of one skill: a function of one file gives back a secret, another sends what it is given, and
a third joins the two. What functions give back, and what is passed to functions of other files, is remembered while
files are read; those that import them are then read again with that knowledge, until nothing new comes of it.

A skill in which no function gives back or is passed a secret, which is nearly every one, costs nothing here.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec
import re2

from vskill_scan.code.taint import WHOLE, Value
from vskill_scan.model import Fact, Layer

#: From file to file, how far.
ROUNDS = 4
_DEFAULT = re2.compile(
    rb"(?:module\.exports\s*=|export\s+default)\s+(?:async\s+)?(?:function\s+)?([A-Za-z_]\w*)"
)
Tags = frozenset[str]


class Knowledge(msgspec.Struct):
    """What other files tell about the functions that one file calls and defines."""

    #: by `()module.function`, what that gives back
    names: dict[str, Value] = {}
    #: by function, what it is given
    given: dict[str, list[Tags]] = {}

    def __bool__(self) -> bool:
        return bool(self.names or self.given)


#: Reads the code of a layer once more with what is known; gives back the facts.
ReadAgain = Callable[[Layer, Knowledge], list[Fact]]


def across_modules(layers: Sequence[Layer], read_again: ReadAgain) -> Iterator[tuple[int, Fact]]:
    """The facts that only several files together show, each with the number of its layer."""
    files = {number: stem_of(layer.path) for number, layer in enumerate(layers) if is_module(layer)}
    known: dict[int, Knowledge] = {}
    for _ in range(ROUNDS):
        changed = False
        for number, stem in files.items():
            told = _knowledge(layers, files, number, stem)
            if told and told != known.get(number):
                known[number] = told
                changed = True
                before = {
                    (fact.name, fact.offset, *sorted(fact.attributes.items()))
                    for fact in layers[number].facts
                }
                for fact in read_again(layers[number], told):
                    if (fact.name, fact.offset, *sorted(fact.attributes.items())) not in before:
                        yield number, fact
        if not changed:
            return


def _knowledge(layers: Sequence[Layer], files: dict[int, str], number: int, stem: str) -> Knowledge:
    told = Knowledge({}, {})
    for other, module in files.items():
        source = layers[other]
        if other == number:
            continue
        if source.returned and module.encode() in layers[number].text:
            for function, tags in source.returned.items():
                told.names[f"(){module}.{function}"] = Value(tags)
                if function == default_of(source):
                    told.names[f"(){module}.{WHOLE}"] = Value(tags)
        for (target, function), passed in source.passed.items():
            if target == stem:
                told.given[default_of(layers[number]) if function == WHOLE else function] = passed
    return told


def is_module(layer: Layer) -> bool:
    return (
        len(layer.blocks) == 1
        and layer.path.endswith((".py", ".js", ".mjs", ".cjs", ".ts"))
        and not layer.decoded
    )


def stem_of(path: str) -> str:
    """What a file is imported as; a package by the name of its folder."""
    folder, _, name = path.rpartition("/")
    stem = name.rpartition(".")[0]
    return folder.rpartition("/")[2] if stem in {"__init__", "index"} else stem


def default_of(layer: Layer) -> str:
    """The function that a module gives as a whole; "" for none."""
    match = _DEFAULT.search(layer.text)
    return match.group(1).decode() if match is not None else ""
